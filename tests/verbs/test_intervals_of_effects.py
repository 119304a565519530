"""An edge that was not found is no proof of an effect of zero, and curves have no slope."""

from __future__ import annotations

import numpy as np
import pytest

import isthmus as ist
from isthmus.arrays import Floats
from isthmus.errors import MismatchError
from isthmus.results import ZeroEffect

TIERS = ist.Knowledge(tiers=[["x"], ["y"], ["z"]])


@pytest.mark.long
def test_intervals_cover_weak_effects_that_the_search_misses() -> None:
    from scipy.stats import binom

    trials, covered, missed = 150, 0, 0
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=200)
        table = {"x": x, "y": 0.12 * x + rng.normal(size=200), "z": rng.normal(size=200)}
        solution = ist.learn(table, knowledge=TIERS)
        estimate = solution.effect("x", "y")
        low, high = estimate.interval()
        assert estimate.standard_error > 0
        covered += low <= 0.12 <= high
        missed += not solution.dag.has_edge("x", "y")
    assert missed > trials / 2
    least, most = (binom.ppf(share, trials, 0.95) for share in (0.0005, 0.9995))
    assert least <= covered <= most


def test_no_path_is_said_and_knowledge_is_named() -> None:
    rng = np.random.default_rng(0)
    table = {name: rng.normal(size=200) for name in "xyz"}
    solution = ist.learn(table, knowledge=TIERS)
    forward = solution.effect("x", "y")
    assert not forward.has_path
    assert "no directed path" in str(forward)
    backward = solution.effect("y", "x")
    assert backward.zero is ZeroEffect.KNOWLEDGE
    assert (backward.value, backward.interval()) == (0.0, (0.0, 0.0))
    assert "by background knowledge" in str(backward)
    given = ist.effect(table, ist.DAG([*"xyz"], [("x", "y")]), "y", "x")
    assert given.zero is ZeroEffect.GRAPH
    assert (given.value, given.interval()) == (0.0, (0.0, 0.0))
    assert "no directed path from y to x" in str(given)


def test_a_learned_direction_has_no_standard_error() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 500))
    solution = ist.learn({"a": a, "b": b, "c": a + b + rng.normal(size=500)})
    assert {("a", "c"), ("b", "c")} == set(solution.cpdag.directed)
    estimate = solution.effect("c", "a")
    assert estimate.zero is ZeroEffect.DIRECTION
    assert estimate.value == 0.0
    assert np.isnan([estimate.standard_error, *estimate.interval()]).all()
    assert "a → c" in str(estimate)


def test_paths_that_knowledge_leaves_open() -> None:
    nodes = ["x", "y", "u"]
    loose = ist.Knowledge(tiers=[["x"], ["y"]])  # u may be between y and x
    assert not loose.excludes_path(nodes, "y", "x")
    assert loose.excludes_path(["x", "y"], "y", "x")
    chain = ist.Knowledge(required=[("x", "u"), ("u", "y")])
    assert chain.excludes_path(nodes, "y", "x")
    assert not chain.excludes_path(nodes, "x", "y")


FORBIDDEN = (("x", "z"), ("z", "x"))


@pytest.mark.long
@pytest.mark.parametrize(
    "knowledge",
    [
        ist.Knowledge(roots=["x", "z"]),
        ist.Knowledge(tiers=[["x", "z"], ["y"]], forbidden=FORBIDDEN),
        ist.Knowledge(tiers=[["x"], ["z"], ["y"]], forbidden=FORBIDDEN),
    ],
)
def test_a_parent_that_knowledge_calls_unrelated_is_adjusted_for(knowledge: ist.Knowledge) -> None:
    from scipy.stats import binom

    trials, covered = 100, 0
    for seed in range(trials):
        x, z, rng = _dependent(seed)
        table = {"x": x, "z": z, "y": 0.4 * x + 0.6 * z + rng.normal(size=300)}
        estimate = ist.learn(table, knowledge=knowledge).effect("x", "y")
        assert estimate.adjustment == ("z",)
        low, high = estimate.interval()
        covered += low <= 0.4 <= high
    assert covered >= binom.ppf(0.0005, trials, 0.95)


@pytest.mark.long
def test_a_possible_mediator_is_replaced_by_its_parents() -> None:
    from scipy.stats import binom

    trials, covered = 100, 0
    for seed in range(trials):
        x, z, rng = _dependent(seed)
        w = z + 0.5 * rng.normal(size=300)  # x -> w is allowed, and was not found
        table = {"x": x, "z": z, "w": w, "y": 0.4 * x + 0.6 * w + rng.normal(size=300)}
        estimate = ist.learn(table, knowledge=ist.Knowledge(roots=["x", "z"])).effect("x", "y")
        assert "z" in estimate.adjustment
        assert "w" not in estimate.adjustment
        low, high = estimate.interval()
        covered += low <= 0.4 <= high
    assert covered >= binom.ppf(0.0005, trials, 0.95)


def test_the_past_as_roots_is_adjusted_for() -> None:
    rng = np.random.default_rng(0)
    noise = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 1000)
    rows = np.zeros((1000, 2))
    for t in range(1, 1000):
        rows[t] = rows[t - 1] @ [[0.5, 0.4], [0.0, 0.5]] + noise[t]
    series = ist.Series({"a": rows[:, 0], "b": rows[:, 1]}, lags=1)
    solution = ist.learn(series, knowledge=ist.Knowledge(roots=["a@1", "b@1"]))
    estimate = solution.effect("a@1", "b")
    assert estimate.adjustment == ("b@1",)
    assert estimate.value == pytest.approx(0.4, abs=0.15)


def _dependent(seed: int) -> tuple[Floats, Floats, np.random.Generator]:
    """Return two columns with a hidden common cause."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=300)
    x, z = hidden + 0.7 * rng.normal(size=(2, 300))
    return x, z, rng


@pytest.mark.parametrize("score", [ist.GP(), ist.AdditiveLeastSquares()])
def test_a_nonlinear_score_gets_no_linear_effect(score: object) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    search = ist.HillClimb() if isinstance(score, ist.GP) else ist.NotearsAdditive()
    table = {"x": x, "y": x**2 + 0.3 * rng.normal(size=200)}
    solution = ist.learn(table, score=score, search=search)  # type: ignore[call-overload]
    with pytest.raises(MismatchError, match=r"fit_gp\(\)\.curve"):
        solution.effect("x", "y")


def test_a_continuous_cause_of_a_discrete_effect_is_sent_to_queries() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=200)
    table = {
        "x": x,
        "y": x + rng.normal(size=200),
        "s": rng.choice(list("abc"), 200),
        "t": (x + rng.normal(size=200) > 0).astype(int),
    }
    with pytest.raises(MismatchError, match=r"query\('t', do=\{'x': value\}\)"):
        ist.learn(table).effect("x", "t")
    assert ist.learn(table).effect("x", "y").effect == "y"
    del table["s"]
    assert ist.learn(table, kinds={"t": "continuous"}).effect("x", "y").effect == "y"
