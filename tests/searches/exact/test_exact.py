"""Exact searches against enumeration, against each other, with proofs and near-best graphs."""

from __future__ import annotations

import itertools
from functools import cache, partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from tests.objectives.problems import discrete_score, gaussian_score
from tests.searches.watching import stopped

from isthmus.graphs import DAG, Knowledge
from isthmus.objectives import LocalScore, ScoreTable, list_parent_sets
from isthmus.scores import BIC, BDeu, GaussianBIC
from isthmus.searches import Search, SearchResult, drive
from isthmus.searches.astar import AStar, SubsetDP
from isthmus.searches.ilp import ILP
from isthmus.testing import check_search, enumerate_dags
from isthmus.watch import Ending

SCIP = pytest.mark.skipif(find_spec("pyscipopt") is None, reason="the extra [ilp] is not there")
EXACT = [AStar(), AStar(pattern=3), SubsetDP(), pytest.param(ILP(), marks=SCIP)]


def solve(
    search: Any, objective: LocalScore | ScoreTable, knowledge: Knowledge | None = None
) -> SearchResult:
    known = (knowledge or Knowledge()).bind(objective.nodes)
    found: SearchResult
    found, status = drive(
        partial(search.search, objective, known, np.random.default_rng(0)), "test"
    )
    assert status.ending is Ending.OPTIMAL, status
    assert found.gap == 0.0
    DAG.from_parents(objective.nodes, found.parents)
    expected = sum(objective.local(v, p) for v, p in enumerate(found.parents))
    assert found.score == pytest.approx(expected, rel=1e-10)
    return found


@pytest.mark.long
@pytest.mark.parametrize("search", EXACT, ids=repr)
def test_what_every_search_promises(search: Search[LocalScore]) -> None:
    check_search(search, reached=1.0)


@cache
def best_of_all(seed: int) -> tuple[LocalScore, float]:
    """A problem, and the best score of all graphs, which takes longer than a search."""
    local = discrete_score(BDeu(), seed, 100, 4)
    return local, max(local.total(dag) for dag in enumerate_dags(local.nodes))


@pytest.mark.long
@pytest.mark.parametrize("search", EXACT, ids=repr)
def test_best_of_543_graphs(search: Search[LocalScore]) -> None:
    for seed in range(10):
        local, best = best_of_all(seed)
        assert solve(search, local).score == pytest.approx(best, rel=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(24))
def test_random_problems(seed: int) -> None:
    score = (BIC(), BDeu(ess=5), GaussianBIC())[seed % 3]
    # Strong linear dependence makes dense integer programs: small ones here.
    d = 5 + seed % 3 if isinstance(score, GaussianBIC) else 5 + seed % 6
    make = gaussian_score if isinstance(score, GaussianBIC) else discrete_score
    local = make(score, seed, 50 + 20 * seed, d)
    reference = solve(SubsetDP(), local).score
    others: list[Search[LocalScore]] = [AStar(), AStar(pattern=4)]
    if find_spec("pyscipopt") is not None:
        others.append(ILP())
    for search in others:
        assert solve(search, local).score == pytest.approx(reference, rel=1e-12)


def tied_table(seed: int, d: int, *, part: float = 0.3, levels: int = 3) -> ScoreTable:
    """Some sets of up to two parents, with few different scores."""
    rng = np.random.default_rng(seed)
    lists: list[list[tuple[tuple[int, ...], float]]] = []
    for v in range(d):
        others = [u for u in range(d) if u != v]
        sets = [s for k in (1, 2) for s in itertools.combinations(others, k)]
        listed = [s for s in sets if rng.random() < part]
        lists.append([((), -3.0), *((s, float(rng.integers(0, levels))) for s in listed)])
    return ScoreTable.from_lists([f"x{v}" for v in range(d)], lists)


@pytest.mark.long
@pytest.mark.parametrize("search", EXACT, ids=repr)
def test_parent_sets_of_equal_score_are_not_taken_for_interchangeable(
    search: Search[LocalScore],
) -> None:
    # SCIP's detection of symmetries lost the best graph of four of these.
    for seed in range(30, 51):
        table = tied_table(seed, 7)
        best = solve(SubsetDP(), table).score
        assert solve(search, table).score == best


@pytest.mark.long
@pytest.mark.parametrize("search", EXACT, ids=repr)
def test_knowledge(search: Search[LocalScore]) -> None:
    knowledge = Knowledge(required=[("x0", "x2")], forbidden=[("x1", "x0")], roots=["x3"])
    for seed in range(5):
        local = discrete_score(BIC(), seed, 200, 4)
        allowed = [g for g in enumerate_dags(local.nodes) if knowledge.allows(g)]
        best = max(local.total(g) for g in allowed)
        assert solve(search, local, knowledge).score == pytest.approx(best)


@pytest.mark.parametrize("search", EXACT, ids=repr)
def test_a_table_instead_of_a_score(search: Search[LocalScore]) -> None:
    local = discrete_score(BIC(), 1, 300, 7)
    table = list_parent_sets(local)
    assert solve(search, table).score == pytest.approx(solve(search, local).score)


@pytest.mark.long
def test_a_proven_gap_at_the_limit() -> None:
    local = gaussian_score(GaussianBIC(), 3, 60, 12)
    best = solve(SubsetDP(), local).score
    begun = partial(
        AStar(pattern=2, max_states=2**14).search,
        local,
        Knowledge().bind(local.nodes),
        np.random.default_rng(0),
    )
    gaps = []
    for found in stopped(begun):
        if found.gap is not None:
            assert found.score <= best + 1e-7
            assert found.score + found.gap >= best - 1e-7
            gaps.append(found.gap)
    assert gaps
    assert gaps[0] >= gaps[-1]


@pytest.mark.parametrize("search", EXACT, ids=repr)
def test_out_of_time_before_all_parent_sets_are_listed(search: Search[LocalScore]) -> None:
    local = discrete_score(BDeu(), 3, 300, 20)
    known = Knowledge(required=[("x3", "x5"), ("x5", "x1")])
    begun = partial(search.search, local, known.bind(local.nodes), np.random.default_rng(0))
    found, status = drive(begun, "test", time_limit=0.05)
    assert status.ending is Ending.TIME_LIMIT
    dag = DAG.from_parents(local.nodes, found.parents)
    assert known.allows(dag)
    assert found.score == pytest.approx(local.total(dag))
    assert len(dag.edges) > 2
