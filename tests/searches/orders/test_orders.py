"""Searches over orders of score tables: against exact search and against slow versions."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.objectives.problems import discrete_rows, discrete_score, gaussian_score

import isthmus as ist
from isthmus.errors import ArgumentError, KnowledgeError
from isthmus.graphs import DAG, Knowledge
from isthmus.kernels._native import ScoreLines, TableRun
from isthmus.objectives import LocalScore, ScoreTable, list_parent_sets
from isthmus.objectives.table import TableBuilder
from isthmus.results import Ending
from isthmus.scores import BIC, BDeu, GaussianBIC
from isthmus.searches import Boss, Search, SearchResult, Watch, drive
from isthmus.searches.astar import AStar
from isthmus.searches.base import TableLines
from isthmus.searches.table_searches import ASOBS, OBS, OrderSearchState
from isthmus.testing import check_search

pytestmark = pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")

SEARCHES: list[Any] = [OBS(starts=200), ASOBS(), ASOBS(kicks=0, starts=60), Boss(starts=50)]


def solve(
    search: Any,
    objective: LocalScore | ScoreTable,
    knowledge: Knowledge | None = None,
    seed: int = 0,
) -> SearchResult:
    known = (knowledge or Knowledge()).bind(objective.nodes)
    found: SearchResult
    found, status = drive(
        partial(search.search, objective, known, np.random.default_rng(seed)), "test"
    )
    assert status.ending is Ending.CONVERGED
    DAG.from_parents(objective.nodes, found.parents)
    expected = sum(objective.local(v, p) for v, p in enumerate(found.parents))
    assert found.score == pytest.approx(expected, rel=1e-10)
    return found


def problem(seed: int) -> LocalScore:
    score = (BIC(), BDeu(ess=5), GaussianBIC())[seed % 3]
    make = gaussian_score if isinstance(score, GaussianBIC) else discrete_score
    return make(score, seed, 50 + 20 * seed, 5 + seed % 6)


@pytest.mark.long
@pytest.mark.parametrize("search", SEARCHES[:3], ids=repr)
def test_what_every_search_promises(search: Search[LocalScore]) -> None:
    check_search(search, reached=1.0)


@pytest.mark.long
@pytest.mark.parametrize("search", SEARCHES, ids=repr)
def test_small_problems_are_solved_to_the_optimum(search: Any) -> None:
    reached = 0
    for seed in range(30):
        local = problem(seed)
        table = list_parent_sets(local)
        known = Knowledge().bind(local.nodes)
        exact, _ = drive(partial(AStar().search, table, known, np.random.default_rng(0)), "exact")
        assert exact.gap == 0.0
        found = solve(search, table)
        # The table lists what it scores, and the score itself agrees.
        again = sum(local.local(v, p) for v, p in enumerate(found.parents))
        assert found.score == pytest.approx(again, rel=1e-10)
        assert found.score <= exact.score + 1e-7
        reached += found.score >= exact.score - 1e-7
    assert reached == 30


@pytest.mark.long
@pytest.mark.parametrize("search", SEARCHES, ids=repr)
def test_same_seed_same_graph_and_knowledge(search: Any) -> None:
    known = Knowledge(required=[("x0", "x2"), ("x2", "x5")], forbidden=[("x1", "x0")], roots=["x3"])
    for seed in range(5):
        local = discrete_score(BIC(), seed, 200, 8)
        table = list_parent_sets(local, knowledge=known.bind(local.nodes))
        found = solve(search, table, known, seed)
        assert found.parents == solve(search, table, known, seed).parents
        assert known.allows(DAG.from_parents(table.nodes, found.parents))
        exact, _ = drive(
            partial(AStar().search, table, known.bind(table.nodes), np.random.default_rng(0)),
            "exact",
        )
        assert found.score == pytest.approx(exact.score)
    with pytest.raises(KnowledgeError, match="required"):
        solve(search, list_parent_sets(local), known)


@pytest.mark.parametrize("search", [OBS(starts=3), ASOBS(starts=1), Boss(starts=2)], ids=repr)
def test_through_the_front_doors(search: Any) -> None:
    rows = discrete_rows(5, 500, 9)
    kinds = dict.fromkeys(rows, ist.Kind.DISCRETE)
    direct = ist.learn(rows, score=ist.BIC(), search=search, kinds=kinds)
    assert ist.score(rows, direct.dag, ist.BIC(), kinds=kinds) == pytest.approx(direct.score)
    table = ist.parent_sets(rows, score=ist.BIC(), kinds=kinds)
    listed = ist.solve(table, search=search)
    assert listed.score == pytest.approx(ist.solve(table).score)
    assert direct.score <= listed.score + 1e-7
    assert sorted(listed.details.order) == sorted(rows)
    assert listed.details.complete


@pytest.mark.timing
@pytest.mark.parametrize("search", [OBS, ASOBS, Boss], ids=repr)
def test_any_time(search: Any) -> None:
    table = list_parent_sets(gaussian_score(GaussianBIC(), 1, 300, 14), max_parents=4)
    once = ist.solve(table, search=search(starts=1))
    stopped = ist.solve(table, search=search(starts=10**9), time_limit=0.3)
    assert stopped.status.ending is Ending.TIME_LIMIT
    assert stopped.status.seconds < 5.0
    # More of the same: the first start is the same one.
    assert stopped.score >= once.score - 1e-7
    at_once = ist.solve(table, search=search(), time_limit=0.0)
    assert table.total(at_once.dag) == pytest.approx(at_once.score)


@pytest.mark.parametrize("search", [OBS(), ASOBS()], ids=repr)
def test_out_of_time_while_parent_sets_are_listed(search: Search[LocalScore]) -> None:
    local = discrete_score(BDeu(), 3, 300, 20)
    begun = partial(search.search, local, Knowledge().bind(local.nodes), np.random.default_rng(0))
    found, status = drive(begun, "test", time_limit=0.01)
    assert status.ending is Ending.TIME_LIMIT
    assert found.score == pytest.approx(sum(local.local(v, p) for v, p in enumerate(found.parents)))


def slow_total(table: ScoreTable, order: list[int]) -> float:
    return sum(table.best(v, order[:i])[1] for i, v in enumerate(order))


def at(table: ScoreTable, order: Any) -> TableRun:
    run = TableRun(ScoreLines(table.starts, table.sets, table.scores), np.asarray(order))
    Watch().run(run.step)
    return run


@pytest.mark.long
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_a_window_goes_to_its_best_place(seed: int, size: int) -> None:
    d = 9
    table = list_parent_sets(problem(3 * seed) if seed % 2 else discrete_score(BIC(), seed, 200, d))
    d = len(table.nodes)
    order = np.random.default_rng(seed).permutation(d)
    for first in range(d):
        run = at(table, order)
        begin = order.tolist().index(first)
        run.sweep(np.array([first]), size)
        Watch().run(run.step)
        base = slow_total(table, order.tolist())
        best = base
        if begin + size <= d:
            window = order.tolist()[begin : begin + size]
            others = [v for v in order.tolist() if v not in window]
            best = max(
                slow_total(table, [*others[:place], *window, *others[place:]])
                for place in range(len(others) + 1)
            )
        after = run.order.tolist()
        assert run.gained == pytest.approx(best - base, abs=1e-7)
        assert slow_total(table, after) == pytest.approx(best, abs=1e-7)
        assert [table.scores[line] for line in run.lines] == pytest.approx(
            [table.best(v, after[: after.index(v)])[1] for v in range(d)]
        )


@pytest.mark.parametrize("seed", range(12))
def test_acyclic_selection(seed: int) -> None:
    table = list_parent_sets(discrete_score(BIC(), seed, 200, 9))
    order = np.random.default_rng(seed).permutation(9).tolist()
    chosen: dict[int, tuple[int, ...]] = {}

    def ancestors(v: int) -> set[int]:
        found, waiting = set(), [v]
        while waiting:
            at = waiting.pop()
            found.add(at)
            waiting += [p for p in chosen.get(at, ()) if p not in found]
        return found

    total = 0.0
    for v in reversed(order):
        below = {u for u in range(9) if v in ancestors(u)}
        parents, score = table.best(v, [u for u in range(9) if u not in below])
        chosen[v] = parents
        total += score
    run = at(table, order)
    run.select()
    Watch().run(run.step)
    after = slow_total(table, run.order.tolist())
    assert sorted(run.order.tolist()) == list(range(9))
    place = {v: i for i, v in enumerate(run.order.tolist())}
    assert all(place[p] < place[v] for v, parents in chosen.items() for p in parents)
    assert total >= slow_total(table, order) - 1e-7
    assert after >= total - 1e-7


@pytest.mark.long
def test_more_than_64_variables() -> None:
    rows = discrete_rows(4, 300, 70)
    kinds = dict.fromkeys(rows, ist.Kind.DISCRETE)
    table = ist.parent_sets(rows, score=ist.BIC(), kinds=kinds, max_parents=2)
    scores = {}
    for search in (OBS(starts=2), ASOBS(starts=1), Boss(starts=2)):
        solution = ist.solve(table, search=search)
        score = ist.score(rows, solution.dag, ist.BIC(), kinds=kinds)
        assert score == pytest.approx(solution.score)
        scores[type(search)] = solution.score
    assert scores[ASOBS] >= scores[OBS]


def test_a_quota_gives_the_same_table_every_time_and_the_whole_one_where_it_suffices() -> None:
    local = discrete_score(BIC(), 7, 1000, 14)
    full = list_parent_sets(local)

    def limited(quota: int) -> tuple[ScoreTable, int]:
        builder = TableBuilder(local, quota=quota)
        while not builder.step():
            pass
        return builder.table(), builder.scored

    one, scored = limited(300)
    two, _ = limited(300)
    assert np.array_equal(one.sets, two.sets)
    assert np.array_equal(one.scores, two.scores)
    assert not one.complete
    # Batches of a thousand, or one level of the list, may overshoot.
    assert scored <= 14 * 5000
    for child in range(14):
        for parents, score in itertools.islice(one.parent_sets(child), 5):
            assert score == pytest.approx(local.local(child, parents), abs=1e-9)
    enough, _ = limited(10**9)
    assert enough.complete
    assert np.array_equal(enough.sets, full.sets)


def test_options_that_make_no_sense() -> None:
    for options in ({"starts": 0}, {"tabu": -1}, {"patience": -1}):
        with pytest.raises(ArgumentError, match="OBS was given"):
            OBS(**options)
    for options in ({"starts": 0}, {"window": 0}, {"kicks": -1}):
        with pytest.raises(ArgumentError, match="ASOBS was given"):
            ASOBS(**options)


def test_missing_sets_are_looked_for_along_an_order() -> None:
    for seed, most in itertools.product(range(3), (None, 2)):
        local = gaussian_score(GaussianBIC(), seed, 300, 10)
        known = Knowledge(required=[("x1", "x2")], forbidden=[("x3", "x4")]).bind(local.nodes)
        rng = np.random.default_rng(seed)
        orders = OrderSearchState(
            local, known, rng, Watch(), max_parents=most, max_parent_sets=None
        )
        orders.prepare()
        poor = orders.table.restrict(known, 1)
        orders._stage.table = replace(poor, complete=False)
        orders._lines = TableLines(orders.table, Watch())
        assert orders.can_refine
        order = orders.draw()
        run = orders.begin(order)
        before = run.total
        assert orders.refine(run)
        while orders.refine(orders.begin(order)):
            pass
        state = orders.begin(order)
        assert state.total > before + 1.0
        for place, v in enumerate(order.tolist()):
            parents = set(orders.table.members(int(state.lines[v])))
            score = local.local(v, sorted(parents))
            assert orders.table.scores[state.lines[v]] == pytest.approx(score, rel=1e-10)
            assert set(np.flatnonzero(known.required[:, v]).tolist()) <= parents
            assert not known.forbidden[sorted(parents), v].any()
            open_ = [u for u in order[:place].tolist() if not known.forbidden[u, v]]
            changed = [parents ^ {u} for u in open_ if not known.required[u, v]]
            for other in changed:
                if most is None or len(other) <= max(most, len(parents)):
                    assert local.local(v, sorted(other)) <= score + 1e-6
