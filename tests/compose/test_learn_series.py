"""Learning from series: time is known without being told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import isthmus as ist
from isthmus.errors import KnowledgeError


def series(seed: int, n: int = 200) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    x = np.zeros((n, 3))
    for t in range(1, n):
        x[t] = 0.5 * x[t - 1] + rng.normal(size=3)
        x[t, 1] += 0.8 * x[t, 0]
    return x


def backwards(dag: ist.DAG, source: ist.Series) -> list[tuple[str, str]]:
    lag_of = source.schema().lag_of
    return [(a, b) for a, b in dag.edges if lag_of[a].steps < lag_of[b].steps]


@pytest.mark.parametrize(
    "search", [None, ist.HillClimb(), ist.XGES(), ist.Boss(), ist.NotearsAdditive()]
)
def test_no_edge_goes_back_in_time(search: Any) -> None:
    for seed in range(4):
        source = ist.Series(series(seed), lags=1)
        solution = ist.learn(source, search=search)
        assert solution.dag.edges
        assert backwards(solution.dag, source) == []


def test_time_directs_edges_of_the_class() -> None:
    source = ist.Series(series(0, 1000), lags=1)
    assert {("x0@1", "x0"), ("x2@1", "x2")} <= set(ist.learn(source).cpdag.directed)


def test_time_holds_beside_tiers_of_the_user() -> None:
    source = ist.Series(series(0), lags=1)
    names = source.schema().names
    given = ist.Knowledge(tiers=[["x1", "x1@1"], ["x0", "x0@1"]])
    solution = ist.learn(source, knowledge=given)
    assert backwards(solution.dag, source) == []
    assert ("x0", "x1") not in solution.dag.edges
    own = ist.Knowledge(tiers=[names[3:], names[:3]])
    assert ist.learn(source, knowledge=own).dag == ist.learn(source).dag


def test_an_edge_back_in_time_cannot_be_required() -> None:
    source = ist.Series(series(0), lags=1)
    with pytest.raises(KnowledgeError, match="later tier"):
        ist.learn(source, knowledge=ist.Knowledge(required=[("x0", "x0@1")]))


def test_parent_sets_know_time() -> None:
    source = ist.Series(series(0), lags=1)
    table = ist.parent_sets(source, score=ist.GaussianBIC(), max_parents=2)
    assert backwards(ist.solve(table).dag, source) == []
