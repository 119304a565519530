"""Forecasts of several steps: against the closed form of a vector autoregression and of a chain."""

from __future__ import annotations

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import ArgumentError, MismatchError, SchemaError
from isthmus.networks import DiscreteNetwork, GaussianNetwork


def autoregression() -> tuple[ist.Series, np.ndarray, np.ndarray, np.ndarray]:
    """Return a series, the weights of one and two steps earlier, and of noise within a step."""
    one = np.array([[0.5, 0.0], [0.4, 0.3]])
    two = np.array([[0.2, 0.0], [0.0, 0.2]])
    noise = np.array([[1.0, 0.0], [0.8, 0.5]])  # y has 0.8 x of the same step
    rng = np.random.default_rng(1)
    rows = [np.array([3.0, -2.0]), np.array([4.0, -3.0])]
    for _ in range(800):
        rows.append(one @ rows[-1] + two @ rows[-2] + noise @ rng.normal(size=2))
    return ist.Series(dict(zip("xy", np.array(rows).T, strict=True)), lags=2), one, two, noise


def test_moments_are_those_of_the_fitted_autoregression() -> None:
    series, *_ = autoregression()
    network = ist.learn(series).fit()
    assert isinstance(network, GaussianNetwork)
    nodes = list(network.dag.nodes)
    weights = network.weights()
    place = {name: i for i, name in enumerate(["x", "y", "x@1", "y@1", "x@2", "y@2"])}
    # x_t = c + B0 x_t + B1 x_t-1 + B2 x_t-2 + e, in the form of a first-order recursion.
    blocks = np.zeros((3, 2, 2))
    for parent in nodes:
        for child in ("x", "y"):
            lag, source = divmod(place[parent], 2)
            blocks[lag, place[child], source] = weights[nodes.index(parent), nodes.index(child)]
    inverse = np.linalg.inv(np.eye(2) - blocks[0])
    matrix = np.block([[inverse @ blocks[1], inverse @ blocks[2]], [np.eye(2), np.zeros((2, 2))]])
    constant = np.concatenate([inverse @ [network.intercepts[v] for v in "xy"], np.zeros(2)])
    spread = np.zeros((4, 4))
    spread[:2, :2] = inverse @ np.diag([network.variances[v] for v in "xy"]) @ inverse.T
    last = dict(zip(series.schema().names, series.rows()[-1], strict=True))
    mean, covariance = np.array([last[v] for v in ("x", "y", "x@1", "y@1")]), np.zeros((4, 4))
    draws = 20_000
    forecast = ist.forecast(network, series, steps=5, draws=draws, seed=3)
    assert forecast["x"].shape == (5, draws)
    for t in range(5):
        mean, covariance = matrix @ mean + constant, matrix @ covariance @ matrix.T + spread
        found = np.stack([forecast["x"][t], forecast["y"][t]])
        deviation = np.sqrt(covariance.diagonal()[:2])
        assert (np.abs(found.mean(axis=1) - mean[:2]) < 4.5 * deviation / np.sqrt(draws)).all()
        error = np.abs(np.cov(found) - covariance[:2, :2]) / np.outer(deviation, deviation)
        assert (error < 4.5 * np.sqrt(2 / draws)).all()
    again = ist.forecast(network, series, steps=5, draws=draws, seed=3)
    assert (again["y"] == forecast["y"]).all()


def test_levels_follow_the_powers_of_the_transition_matrix() -> None:
    rng = np.random.default_rng(2)
    transition = np.array([[0.8, 0.2], [0.3, 0.7]])
    states = [0]
    for _ in range(1500):
        states.append(int(rng.random() < transition[states[-1], 1]))
    weather = np.array(["rain", "sun"])[states]
    series = ist.Series({"weather": weather}, lags=1)
    network = ist.learn(series).fit()
    assert isinstance(network, DiscreteNetwork)
    assert network.dag.edges == (("weather@1", "weather"),)
    forecast = ist.forecast(network, series, steps=4, draws=20_000)["weather"]
    fitted = network.tables["weather"]
    for t in range(4):
        expected = np.linalg.matrix_power(fitted, t + 1)[states[-1], 1]
        assert np.mean(forecast[t] == "sun") == pytest.approx(expected, abs=4.5 * 0.5 / 20_000**0.5)


def test_mixed_series_are_simulated_jointly() -> None:
    rng = np.random.default_rng(3)
    flag = np.repeat(rng.random(300) < 0.5, 5)
    river = np.where(flag, 2.0, -2.0) + rng.normal(scale=0.3, size=1500)
    series = ist.Series({"weather": np.where(flag, "rain", "sun"), "river": river}, lags=1)
    network = ist.learn(series).fit()
    forecast = ist.forecast(network, series, steps=3, draws=4000, seed=1)
    for step in range(3):
        wet = forecast["weather"][step] == "rain"
        assert 0.05 < wet.mean() < 0.95
        assert forecast["river"][step][wet].mean() == pytest.approx(2.0, abs=0.1)
        assert forecast["river"][step][~wet].mean() == pytest.approx(-2.0, abs=0.1)


def test_what_is_refused() -> None:
    series, *_ = autoregression()
    network = ist.learn(series).fit()
    shorter = ist.Series({v: series.rows()[:, i] for i, v in enumerate("xy")}, lags=1)
    with pytest.raises(SchemaError, match="x@2"):
        ist.forecast(network, shorter)
    with pytest.raises(MismatchError, match="lags"):
        ist.forecast(network, {"x": [1.0]})  # type: ignore[arg-type]
    with pytest.raises(MismatchError, match=r"solution.fit\(\)"):
        ist.forecast(ist.learn(series), series)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="steps"):
        ist.forecast(network, series, steps=0)


@pytest.mark.parametrize("time", [[0, 1, 2, 3, 60], None])
def test_gaps_and_several_realisations_are_refused(time: list[int] | None) -> None:
    """The last row behind a gap has no past, and the last unit depends on how units are sorted."""
    x = np.array([5.0, 4.0, 4.5, 3.0, 100.0])
    network = ist.fit(
        ist.Series({"x": np.sin(np.arange(50.0))}, lags=1), ist.DAG(["x", "x@1"], [("x@1", "x")])
    )
    table = {"x": x} if time is None else {"x": x, "t": np.array(time)}
    series = (
        ist.Series([table, {"x": x[:1]}], lags=1)
        if time is None
        else ist.Series(table, lags=1, time="t")
    )
    with pytest.raises(MismatchError, match="2 stretches"):
        ist.forecast(network, series)
