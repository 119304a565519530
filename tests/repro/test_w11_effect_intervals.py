"""w11: an edge that was not found is no proof of an effect of zero, and curves have no slope."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import isthmus as ist
from isthmus.errors import MismatchError
from isthmus.results import ZeroEffect

TIERS = ist.Knowledge(tiers=[["x"], ["y"], ["z"]])


def test_intervals_cover_weak_effects_that_the_search_misses() -> None:
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


@pytest.mark.parametrize("score", [ist.GP(), ist.AdditiveLeastSquares()])
def test_a_nonlinear_score_gets_no_linear_effect(score: object) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    search = ist.HillClimb() if isinstance(score, ist.GP) else ist.NotearsAdditive()
    table = {"x": x, "y": x**2 + 0.3 * rng.normal(size=200)}
    solution = ist.learn(table, score=score, search=search)  # type: ignore[arg-type]
    with pytest.raises(MismatchError, match=r"fit_gp\(\)\.curve"):
        solution.effect("x", "y")


def test_discrete_columns_are_sent_to_queries() -> None:
    rng = np.random.default_rng(0)
    solution = ist.learn({"a": rng.choice(["u", "v"], 50), "b": rng.choice(["u", "v"], 50)})
    with pytest.raises(MismatchError, match=r"`effect` needs continuous columns\..*do="):
        solution.effect("a", "b")
