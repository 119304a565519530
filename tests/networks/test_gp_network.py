"""Gaussian-process networks: curves and bands against the posterior over all rows."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import GraphError, MismatchError
from isthmus.fitting import fit_gp
from isthmus.networks import Effect, GaussianNetwork, GPNetwork

DAG = ist.DAG(["a", "b", "y"], [("a", "y"), ("b", "y")])


def table(n: int = 80, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    a, b = 2.0 * rng.normal(size=n) + 1.0, rng.normal(size=n)
    y = 10.0 * np.sin(a) + 5.0 * b + 3.0 * rng.normal(size=n) - 40.0
    return {"a": a, "b": b, "y": y}


def fitted(data: dict[str, Any], **options: Any) -> GPNetwork:
    return fit_gp(ist.WithFeatures(data, ist.Chebyshev(64, 5.0)).moments(), DAG, **options)


def test_curves_at_the_mode_against_the_posterior_over_rows() -> None:
    data = table()
    network = fitted(data, curve_draws=0)
    at = np.linspace(-3.0, 5.0, 9)
    z = {name: (x - x.mean()) / x.std() for name, x in data.items()}
    n = len(z["y"])
    scales = {p: network.effects[p, "y"].length_scale / data[p].std() for p in ("a", "b")}
    noise = network.noises["y"] / data["y"].std()

    def kernel(p: str, u: Any, v: Any) -> Any:
        return np.exp(-((u[:, None] - v[None, :]) ** 2) / (2.0 * scales[p] ** 2))

    covariance = 1.0 + noise**2 * np.eye(n)
    covariance = covariance + kernel("a", z["a"], z["a"]) + kernel("b", z["b"], z["b"])
    here = np.concatenate([(at - data["a"].mean()) / data["a"].std(), z["a"]])
    cross = kernel("a", here, z["a"])
    mean = cross @ np.linalg.solve(covariance, z["y"])
    spread = kernel("a", here, here) - cross @ np.linalg.solve(covariance, cross.T)
    centring = np.concatenate([np.eye(9), np.full((9, n), -1.0 / n)], axis=1)
    unit = data["y"].std()
    curve = network.curve("a", "y", at)
    np.testing.assert_allclose(curve.mean, unit * centring @ mean, atol=1e-3)
    deviation = unit * np.sqrt(np.diagonal(centring @ spread @ centring.T))
    np.testing.assert_allclose(curve.upper - curve.mean, 1.959964 * deviation, rtol=1e-2)
    np.testing.assert_allclose(curve.mean - curve.lower, 1.959964 * deviation, rtol=1e-2)


@pytest.mark.long
def test_bands_hold_the_truth() -> None:
    """Over simulated tables, bands averaged over hyperparameters hold the curve about as stated."""
    inside = []
    for seed in range(15):
        data = table(seed=seed)
        at = np.linspace(-2.0, 4.0, 13)
        curve = fitted(data, seed=seed).curve("a", "y", at)
        truth = 10.0 * np.sin(at) - (10.0 * np.sin(data["a"])).mean()
        inside += [(curve.lower <= truth) & (truth <= curve.upper)]
    assert 0.88 <= np.mean(inside) <= 1.0


def test_prediction() -> None:
    data = table(400)
    network = fitted(data)
    residual = data["y"] - network.predict(data, "y")
    assert residual.std() == pytest.approx(3.0, rel=0.15)
    assert network.noises["y"] == pytest.approx(3.0, rel=0.15)
    assert abs(residual.mean()) < 0.05
    assert network.predict({}, "a") == pytest.approx([data["a"].mean()])


@pytest.mark.filterwarnings("ignore::isthmus.errors.NotesWarning")
def test_solutions_fit_their_curves() -> None:
    solution = ist.learn(table(150), score=ist.GP())
    network = solution.fit_gp()
    assert network.dag == solution.dag
    assert set(network.effects) == set(solution.dag.edges)
    again = pickle.loads(pickle.dumps(network))  # noqa: S301 - our own bytes
    first = network.dag.edges[0]
    np.testing.assert_array_equal(again.curve(*first).mean, network.curve(*first).mean)
    with pytest.raises(MismatchError, match="GP"):
        ist.learn(table()).fit_gp()
    with pytest.raises(GraphError, match="not an edge"):
        network.curve("a", "a")


def test_plot() -> None:
    pytest.importorskip("matplotlib")
    import matplotlib as mpl

    mpl.use("Agg")
    from isthmus.plots import plot_curves

    network = fitted(table())
    axes = plot_curves(network)
    assert [ax.get_xlabel() for ax in axes] == ["a", "b"]
    assert [ax.get_ylabel() for ax in axes] == ["effect on y"] * 2
    assert np.shape(axes[0].lines[0].get_xdata()) == (101,)
    with pytest.raises(GraphError, match="axes were given"):
        plot_curves(network, axes=axes[:1])
    single = plot_curves(network, edges=[("b", "y")])
    assert len(single) == 1
    empty = fit_gp(
        ist.WithFeatures(table(), ist.Chebyshev(16, 5.0)).moments(), ist.DAG(["a", "b"], [])
    )
    with pytest.raises(GraphError, match="no edges"):
        plot_curves(empty)


def test_straight_curves_answer_like_a_gaussian_network() -> None:
    dag = ist.DAG(["a", "b", "c"], [("a", "b"), ("a", "c"), ("b", "c")])
    slopes = {("a", "b"): 1.5, ("a", "c"): -0.5, ("b", "c"): 0.8}
    # One polynomial of degree one, which is straight within a hundred standard deviations.
    effects = {
        edge: Effect(0.0, 1.0, 100.0, np.array([0.0, 100 * s]), np.zeros((2, 2)), np.eye(2)[0], 1.0)
        for edge, s in slopes.items()
    }
    curves = GPNetwork(dag, {"a": 1.0, "b": 2.0, "c": 0.0}, {"a": 1.0, "b": 0.5, "c": 2.0}, effects)
    lines = GaussianNetwork(
        dag,
        {"a": 1.0, "b": 2.0, "c": 0.0},
        {"a": {}, "b": {"a": 1.5}, "c": {"a": -0.5, "b": 0.8}},
        {"a": 1.0, "b": 0.25, "c": 4.0},
    )
    rows = lines.sample(30, seed=1)
    for target in dag.nodes:  # exact, by quadrature
        np.testing.assert_allclose(
            curves.predict(rows, target), lines.predict(rows, target), atol=1e-6
        )
    few: dict[str, Any] = {"c": rows["c"][:5], "b": [None, *rows["b"][1:5]]}
    predicted = curves.predict(few, "a", simulations=20_000)
    np.testing.assert_allclose(predicted, lines.predict(few, "a"), atol=0.05)
    answer = curves.query(["a", "b"], {"c": (3.0, 0.5)}, seed=3)
    expected = lines.query(["a", "b"], {"c": (3.0, 0.5)})
    assert answer.error is not None
    assert (np.abs(answer.mean - expected.mean) < 4 * answer.error).all()
    done = curves.query("c", do={"b": 1.0})
    assert done.mean[0] == pytest.approx(0.3, abs=0.03)
