"""Columns that often have exactly one value get a probability for it, if that pays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.notes import noted

import isthmus as ist
from isthmus.errors import SchemaError
from isthmus.networks import ConditionalGaussian, Hurdle, MixedNetwork, ProbabilityTable

GRAPH = ist.DAG(["g", "gain"], [("g", "gain")])


def gains(n: int, seed: int = 0, sign: float = 1.0) -> dict[str, NDArray[Any]]:
    """Return groups, and amounts that are zero in most rows and else log-normal."""
    rng = np.random.default_rng(seed)
    g = rng.random(n) < 0.3
    away = rng.random(n) < np.where(g, 0.4, 0.05)
    amount = np.round(np.exp(rng.normal(8 + 0.5 * g, 0.7, n)))
    return {"g": np.where(g, "rich", "poor"), "gain": np.where(away, sign * amount, 0.0)}


def fitted(data: dict[str, NDArray[Any]], dag: ist.DAG = GRAPH) -> MixedNetwork:
    network = ist.fit(data, dag)
    assert isinstance(network, MixedNetwork)
    return network


def test_amounts_with_many_zeros_get_a_hurdle_of_logarithms() -> None:
    own = fitted(gains(4000)).conditionals["gain"]
    assert isinstance(own, Hurdle)
    assert (own.at, own.side, own.parents) == (0.0, 1, ("g",))
    assert isinstance(own.elsewhere, ProbabilityTable)
    np.testing.assert_allclose(own.elsewhere.probabilities[:, 1], [0.05, 0.4], atol=0.03)
    assert isinstance(own.rest, ConditionalGaussian)
    np.testing.assert_allclose(own.rest.intercepts, [8.0, 8.5], atol=0.15)


def test_amounts_below_zero_and_on_both_sides_of_it() -> None:
    below = fitted(gains(4000, sign=-1.0)).conditionals["gain"]
    assert isinstance(below, Hurdle)
    assert below.side == -1
    rng = np.random.default_rng(1)
    change = np.where(rng.random(2000) < 0.6, 0.0, np.round(rng.normal(0, 50, 2000)))
    both = fitted({"g": gains(2000)["g"], "gain": change}).conditionals["gain"]
    assert isinstance(both, Hurdle)
    assert both.side == 0
    assert both.rest.parents == ()  # what does not pay is left out


@pytest.mark.parametrize("digits", [0, 1, 8])
def test_normal_numbers_stay_normal_however_they_are_rounded(digits: int) -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        g = rng.random(1000) < 0.5
        data = {"g": np.where(g, "a", "b"), "gain": np.round(rng.normal(3.0 * g, 4, 1000), digits)}
        assert isinstance(fitted(data).conditionals["gain"], ConditionalGaussian)


def test_the_density_is_that_of_the_definition() -> None:
    from scipy import stats

    network, rows = fitted(gains(4000)), gains(50, seed=1)
    own = network.conditionals["gain"]
    assert isinstance(own, Hurdle)
    assert isinstance(own.elsewhere, ProbabilityTable)
    assert isinstance(own.rest, ConditionalGaussian)
    g = (rows["g"] == "rich").astype(int)
    away = own.elsewhere.probabilities[g, 1]
    spread = np.sqrt(np.broadcast_to(own.rest.variances, (2,))[g])
    centre = np.broadcast_to(own.rest.intercepts, (2,))[g]
    with np.errstate(divide="ignore"):
        density = stats.lognorm.pdf(rows["gain"], spread, scale=np.exp(centre))
    expected = np.where(rows["gain"] == 0, np.log(1 - away), np.log(away * density + 1e-300))
    codes = {"g": g}
    np.testing.assert_allclose(own.log_density(rows["gain"], codes), expected, rtol=1e-9)
    assert own.log_density(np.array([-1.0]), {"g": g[:1]})[0] == -np.inf


def test_rows_that_are_drawn_have_zeros_and_no_negative_amounts() -> None:
    drawn = fitted(gains(4000)).sample(20_000, seed=1)
    gain, rich = drawn["gain"], drawn["g"] == "rich"
    assert gain.min() == 0.0
    assert np.mean(gain[rich] == 0) == pytest.approx(0.6, abs=0.04)
    assert np.mean(gain[~rich] == 0) == pytest.approx(0.95, abs=0.02)
    assert np.median(gain[gain > 0]) == pytest.approx(np.exp(8.3), rel=0.2)


def test_probabilities_of_a_parent_follow_bayes() -> None:
    network: Any = fitted(gains(4000))
    own, prior = network.conditionals["gain"], network.conditionals["g"]
    values = np.array([0.0, 800.0, 9000.0])
    logs = np.array(
        [own.log_density(values, {"g": np.full(3, k)}) for k in (0, 1)]
    ).T + prior.log_density(np.array([0, 1]), {})
    expected = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
    found = network.predict_probabilities({"gain": values}, "g")
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    for value, chances in zip(values, expected, strict=True):  # in closed form
        answer = network.query("g", evidence={"gain": value})
        assert answer["rich"] == pytest.approx(chances[1], abs=1e-9)
        assert answer.sampling_error is not None


def test_amounts_that_are_seen_leave_other_answers_exact() -> None:
    """A number given the amount and an unknown group, against sums over the groups."""
    data = gains(4000)
    rng = np.random.default_rng(4)
    data["z"] = 2.0 * (data["g"] == "rich") + data["gain"] / 1000 + rng.normal(size=4000)
    network: Any = fitted(
        data, ist.DAG(["g", "gain", "z"], [("g", "gain"), ("g", "z"), ("gain", "z")])
    )
    z = network.conditionals["z"]
    assert isinstance(z, ConditionalGaussian)
    for value in (0.0, 3000.0):
        chances = network.predict_probabilities({"gain": [value]}, "g")[0]
        means = z.mean({"g": np.arange(2), "gain": np.full(2, value)}, 2)
        answer = network.query("z", evidence={"gain": value})
        assert not answer.simulated
        assert answer.mean[0] == pytest.approx(chances @ means)
        done = network.query("z", do={"gain": value})
        shares = network.query("g").values
        assert done.mean[0] == pytest.approx(shares @ means)


def test_the_expected_amount_is_that_of_simulated_rows() -> None:
    """Of a hurdle with a discrete, a continuous and a hurdle child."""
    rng = np.random.default_rng(2)
    data = gains(3000)
    gain = data["gain"] / 1000
    data |= {
        "gain": gain,
        "taxed": np.where(rng.random(3000) < 1 / (1 + np.exp(2 - gain)), "yes", "no"),
        "spent": gain + rng.normal(size=3000),
        "left": np.where(rng.random(3000) < 0.5, 0.0, np.round(np.exp(0.2 * gain), 2)),
    }
    edges = [("gain", child) for child in ("taxed", "spent", "left")]
    network: Any = fitted(data, ist.DAG([*data], [("g", "gain"), *edges]))
    seen = {"g": "rich", "taxed": "yes", "spent": 3.0, "left": 0.0}
    found = network.predict({v: [x] for v, x in seen.items()}, "gain")[0]
    answer = network.query("gain", evidence=seen, simulations=400_000)
    assert found == pytest.approx(float(answer.mean[0]), rel=0.02)


def test_files_and_reports_keep_hurdles(tmp_path: Path) -> None:
    network = fitted(gains(1000))
    ist.io.write_json(network, tmp_path / "n.json")
    again = ist.io.read_json(tmp_path / "n.json")
    assert isinstance(again, MixedNetwork)
    rows = gains(100, seed=3)
    np.testing.assert_array_equal(again.log_densities(rows), network.log_densities(rows))
    noise = np.random.default_rng(5).normal(size=1000)
    with noted("one value"):
        solution = ist.learn(gains(1000) | {"x": noise})
    solution.report(tmp_path / "r.html")
    assert "whether gain is not 0" in (tmp_path / "r.html").read_text("utf8")
    solution.save(tmp_path / "s.isthmus")
    loaded = ist.Solution.load(tmp_path / "s.isthmus").fit(gains(1000) | {"x": noise})
    assert isinstance(loaded.conditionals["gain"], Hurdle)


def test_parts_that_do_not_fit_together_are_refused() -> None:
    own = fitted(gains(1000)).conditionals["gain"]
    assert isinstance(own, Hurdle)
    assert isinstance(own.elsewhere, ProbabilityTable)
    table = ProbabilityTable((False, True), (), np.array([0.5, 0.5]))
    strange = ProbabilityTable(("a", "b"), (), np.array([0.5, 0.5]))
    normal = ConditionalGaussian(("g",), (), np.zeros(2), np.zeros((2, 0)), np.ones(2))
    for changes in ((table, normal, 0), (strange, normal, 0), (own.elsewhere, normal, 2)):
        with pytest.raises(SchemaError):
            Hurdle(0.0, *changes)
