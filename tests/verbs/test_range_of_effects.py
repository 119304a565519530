"""The range of an effect is that over the whole class, not over its first 1,000 members."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import isthmus as ist
from isthmus.results import effects


def complete(d: int, n: int = 2000) -> dict[str, np.ndarray]:
    """Return a table of a linear model in which every pair of variables has an edge."""
    rng = np.random.default_rng(1)
    x = np.zeros((n, d))
    for i in range(d):
        x[:, i] = x[:, :i] @ np.full(i, 0.35) + rng.normal(size=n)
    return {f"x{i}": x[:, i] for i in range(d)}


@pytest.mark.long
def test_the_range_over_all_members_of_a_complete_graph() -> None:
    table = complete(8)
    solution = ist.learn(table, score=ist.GaussianBIC(penalty_discount=0))
    assert len(solution.cpdag.undirected) == 28  # 40,320 members
    covariance = np.cov(np.stack(list(table.values())))
    for cause, effect in ((7, 0), (0, 7), (3, 4)):
        values = [0.0]
        others = [k for k in range(8) if k not in (cause, effect)]
        for size in range(7):
            for given in combinations(others, size):
                rows = [cause, *given]
                block = covariance[np.ix_(rows, rows)]
                values.append(float(np.linalg.solve(block, covariance[rows, effect])[0]))
        estimate = solution.effect(f"x{cause}", f"x{effect}")
        assert not estimate.identified
        assert estimate.possible[0] == pytest.approx(min(values), abs=1e-9)
        assert estimate.possible[-1] == pytest.approx(max(values))
        assert f"between {estimate.possible[0]:.4g} and {estimate.possible[-1]:.4g}" in str(
            estimate
        )


def test_undirected_edges_elsewhere_do_not_hide_the_own_one() -> None:
    rng = np.random.default_rng(0)
    table: dict[str, np.ndarray] = {}
    for k in range(12):
        a = rng.normal(size=1000)
        table |= {f"a{k}": a, f"b{k}": a + rng.normal(size=1000)}
    solution = ist.learn(table)
    for k in range(12):
        for cause, effect in ((f"a{k}", f"b{k}"), (f"b{k}", f"a{k}")):
            estimate = solution.effect(cause, effect)
            assert not estimate.identified
            assert np.isnan(estimate.value)
            assert estimate.possible[0] == 0.0
            assert "not identified" in str(estimate)


def test_a_range_that_is_too_costly_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (effects, effects):
        monkeypatch.setattr(module, "MAX_PARENT_SETS", 20)
    solution = ist.learn(complete(6), score=ist.GaussianBIC(penalty_discount=0))
    estimate = solution.effect("x0", "x5")
    assert not estimate.identified
    assert estimate.possible == ()
    assert estimate.interval() == (-np.inf, np.inf)
    assert "was not computed" in str(estimate)


def test_the_answer_is_the_same_for_any_order_of_the_columns() -> None:
    table = complete(5, 300)
    answers = []
    for names in (list(table), list(table)[::-1]):
        solution = ist.learn({name: table[name] for name in names})
        answers.append(solution.effect("x1", "x3"))
    assert answers[0].identified == answers[1].identified
    assert answers[0].possible == pytest.approx(answers[1].possible)
    assert answers[0].interval() == pytest.approx(answers[1].interval())
