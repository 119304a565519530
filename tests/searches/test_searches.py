"""Searches against enumeration, against slow versions, and under knowledge."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np
import pytest
import tests.searches.slow as slow
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.errors import ArgumentError
from isthmus.graphs import DAG, Knowledge
from isthmus.objectives import LocalScore, PythonLocalScore
from isthmus.scores import BGe, GaussianBIC
from isthmus.searches import (
    OBS,
    XGES,
    AStar,
    Boss,
    HillClimb,
    Progress,
    Search,
    SearchResult,
    SubsetDP,
    drive,
)
from isthmus.statistics import Moments, Schema
from isthmus.testing import enumerate_dags
from isthmus.watch import Ending

NAMES = tuple("abcdefghij")


def objective(seed: int, d: int, n: int = 200, edges: int | None = None) -> LocalScore:
    x, _ = slow.linear_data(seed, n, d, d if edges is None else edges)
    return GaussianBIC().bind(Moments.from_array(Schema.continuous(NAMES[:d]), x))


def run(
    search: Search[LocalScore],
    local: LocalScore,
    knowledge: Knowledge | None = None,
    seed: int = 0,
) -> SearchResult:
    bound = (knowledge or Knowledge()).bind(local.nodes)
    begun = partial(search.search, local, bound, np.random.default_rng(seed))
    found, status = drive(begun, "test")
    assert status.ending is Ending.CONVERGED
    DAG.from_parents(local.nodes, found.parents)
    expected = sum(local.local(v, p) for v, p in enumerate(found.parents))
    assert found.score == pytest.approx(expected, rel=1e-10)
    return found


@pytest.mark.long
@pytest.mark.parametrize("search", [Boss(starts=5), HillClimb(tabu=10, patience=30)])
def test_four_nodes_against_all_543_graphs(search: Search[LocalScore]) -> None:
    reached = 0
    for seed in range(20):
        local = objective(seed, 4, edges=4)
        best = max(local.total(dag) for dag in enumerate_dags(local.nodes))
        found = run(search, local)
        assert found.score <= best + 1e-9
        reached += found.score >= best - 1e-9
    assert reached >= 19


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6))
def test_boss_ends_where_no_variable_wants_to_move(seed: int) -> None:
    d = 7
    local = objective(seed, d, edges=12)
    found = run(Boss(), local, seed=seed)
    nothing = [frozenset[int]()] * d
    # The order is not returned; any order of the graph found must be as good, and a best one.
    order = [
        local.nodes.index(v)
        for v in DAG.from_parents(local.nodes, found.parents).topological_order()
    ]
    total = slow.order_score(local.local, order, nothing, nothing)
    assert total == pytest.approx(found.score, rel=1e-10)
    for v in range(d):
        others = [w for w in order if w != v]
        for place in range(d):
            moved = [*others[:place], v, *others[place:]]
            assert slow.order_score(local.local, moved, nothing, nothing) <= total + 1e-5


@pytest.mark.parametrize("seed", range(6))
def test_hill_climbing_ends_where_no_edge_helps(seed: int) -> None:
    local = objective(seed, 7, edges=12)
    found = run(HillClimb(tabu=0), local)
    for parents in slow.single_edge_changes(found.parents):
        total = sum(local.local(v, sorted(p)) for v, p in enumerate(parents))
        assert total <= found.score + 1e-6


@pytest.mark.parametrize("seed", range(4))
def test_tabu_is_never_worse_than_plain_climbing(seed: int) -> None:
    local = objective(seed, 10, edges=22)
    plain = run(HillClimb(tabu=0, restarts=0), local).score
    assert run(HillClimb(tabu=10, patience=20, restarts=0), local).score >= plain - 1e-9


def test_tabu_gets_past_some_local_optima() -> None:
    better = 0
    for seed in range(10):
        local = objective(seed, 10, edges=22)
        plain = run(HillClimb(tabu=0, restarts=0), local).score
        better += run(HillClimb(tabu=20, patience=50, restarts=0), local).score > plain + 1e-6
    assert better > 0


@pytest.mark.long
@given(
    seed=st.integers(0, 1000),
    required=st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=4),
    forbidden=st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=10),
    cut=st.integers(0, 6),
    boss=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_knowledge_is_obeyed(
    seed: int,
    required: set[tuple[int, int]],
    forbidden: set[tuple[int, int]],
    cut: int,
    boss: bool,
) -> None:
    # Required edges go up in the index, so they are acyclic and in keeping with the tiers.
    must = {(a, b) for a, b in required if a < b}
    never = {(a, b) for a, b in forbidden if a != b} - must
    tiers = [t for t in (NAMES[:cut], NAMES[cut:6]) if t]
    knowledge = Knowledge(
        required=[(NAMES[a], NAMES[b]) for a, b in must],
        forbidden=[(NAMES[a], NAMES[b]) for a, b in never],
        tiers=tiers,
    )
    local = objective(seed, 6, edges=9)
    search: Search[LocalScore] = Boss() if boss else HillClimb()
    found = run(search, local, knowledge, seed)
    assert knowledge.allows(DAG.from_parents(local.nodes, found.parents))


@pytest.mark.long
@pytest.mark.parametrize("search", [Boss(starts=8), HillClimb(tabu=10, patience=30)])
def test_best_graph_under_knowledge_is_found(search: Search[LocalScore]) -> None:
    knowledge = Knowledge(required=[("c", "a")], forbidden=[("a", "b")], roots=["d"])
    reached = 0
    for seed in range(10):
        local = objective(seed, 4, edges=4)
        allowed = [g for g in enumerate_dags(local.nodes) if knowledge.allows(g)]
        best = max(local.total(g) for g in allowed)
        reached += run(search, local, knowledge).score >= best - 1e-9
    assert reached >= 9


@pytest.mark.parametrize("search", [Boss(max_parents=1), HillClimb(max_parents=1)])
def test_max_parents(search: Search[LocalScore]) -> None:
    found = run(search, objective(1, 8, edges=16))
    assert max(len(p) for p in found.parents) == 1


@pytest.mark.parametrize("search", [Boss(starts=2), HillClimb()])
def test_a_python_score_gives_the_same_graph(search: Search[LocalScore]) -> None:
    compiled = objective(3, 8, edges=14)
    python = PythonLocalScore(compiled.nodes, compiled.local, equivalent=True)
    one, other = run(search, compiled, seed=5), run(search, python, seed=5)
    assert one.parents == other.parents


def test_same_seed_same_graph() -> None:
    local = objective(3, 10, edges=25)
    assert run(Boss(), local, seed=4) == run(Boss(), local, seed=4)


@pytest.mark.long
def test_the_graph_does_not_depend_on_the_number_of_threads() -> None:
    local = objective(3, 10, edges=25)
    known = Knowledge(forbidden=[(local.nodes[0], local.nodes[1])])
    one, two = (run(Boss(independent_starts=True, jobs=k), local, known, seed=4) for k in (1, 2))
    assert one == two


@pytest.mark.parametrize("search", [Boss(), Boss(independent_starts=True, jobs=2), HillClimb()])
def test_an_error_in_a_score_reaches_the_user(search: Search[LocalScore]) -> None:
    def broken(child: int, parents: tuple[int, ...]) -> float:
        if len(parents) > 1:
            raise ZeroDivisionError("the score of the user")
        return float(len(parents))

    local = PythonLocalScore(NAMES[:5], broken, equivalent=False)
    with pytest.raises(ZeroDivisionError, match="the score of the user"):
        run(search, local)


@pytest.mark.parametrize("search", [Boss(), HillClimb()])
def test_one_variable(search: Search[LocalScore]) -> None:
    assert run(search, objective(0, 1, edges=0)).parents == ((),)


@pytest.mark.parametrize("search", [Boss(starts=3), HillClimb()])
def test_interruption_gives_the_best_so_far(search: Search[LocalScore]) -> None:
    local = objective(2, 10, edges=25)
    calls = itertools.count()

    def interrupted(child: int, parents: tuple[int, ...]) -> float:
        if next(calls) == 250:
            raise KeyboardInterrupt
        return local.local(child, parents)

    python = PythonLocalScore(local.nodes, interrupted, equivalent=True)
    begun = partial(search.search, python, Knowledge().bind(local.nodes), np.random.default_rng(0))
    found, status = drive(begun, "test")
    assert status.ending is Ending.INTERRUPTED
    assert not status.finished
    DAG.from_parents(local.nodes, found.parents)
    empty = sum(local.local(v, ()) for v in range(10))
    assert found.score >= empty


@pytest.mark.timing
def test_time_limit_and_progress() -> None:
    local = objective(2, 10, edges=25)
    begun = partial(
        Boss(starts=10**6).search, local, Knowledge().bind(local.nodes), np.random.default_rng(0)
    )
    seen: list[Progress] = []
    found, status = drive(begun, "boss", time_limit=0.6, report=seen.append)
    assert status.ending is Ending.TIME_LIMIT
    assert 0.6 <= status.seconds < 5.0
    assert seen
    assert seen[-1].score <= found.score + 1e-9
    assert "sweep" in seen[-1].text


def test_many_starts_are_never_worse() -> None:
    local = BGe().bind(
        Moments.from_array(Schema.continuous(NAMES), slow.linear_data(8, 100, 10, 25)[0])
    )
    scores = [run(Boss(starts=n), local, seed=1).score for n in (1, 2, 5, 10, 40)]
    assert scores == sorted(scores)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize(
    "search",
    [
        Boss(),
        Boss(independent_starts=True, jobs=2),
        HillClimb(),
        XGES(),
        SubsetDP(),
        AStar(),
        OBS(),
    ],
)
def test_a_score_that_is_no_number_is_named(search: Search[Any], value: float) -> None:
    def broken(child: int, parents: tuple[int, ...]) -> float:
        return value if len(parents) == 1 and child == 2 else -float(len(parents))

    local = PythonLocalScore(NAMES[:5], broken, equivalent=True)
    with pytest.raises(ArgumentError, match=f"score of {NAMES[2]!r} with the parents"):
        run(search, local)


def test_options_without_meaning_are_refused() -> None:
    with pytest.raises(ArgumentError, match="n_best"):
        AStar(bayes_factor=20.0)
    with pytest.raises(ArgumentError, match=r"pattern .*at least 1"):
        AStar(pattern=0)
    with pytest.raises(ArgumentError, match="at most"):
        Boss(max_parents=10**20)
    with pytest.raises(ArgumentError, match="number of threads"):
        Boss(jobs=0)
