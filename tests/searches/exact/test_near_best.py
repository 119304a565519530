"""The best graphs in order, by A* and by integer programs, against all graphs there are."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache, partial
from importlib.util import find_spec
from itertools import islice
from typing import Any

import numpy as np
import pytest
from tests.objectives.problems import discrete_score
from tests.searches import watching
from tests.searches.exact.test_exact import solve, tied_table

from isthmus.errors import ArgumentError, MismatchError
from isthmus.graphs import DAG, Knowledge
from isthmus.objectives import LocalScore, PythonLocalScore, ScoreTable, list_parent_sets
from isthmus.scores import BIC, BDeu
from isthmus.searches import SearchResult, Watch, drive
from isthmus.searches.astar import AStar
from isthmus.searches.ilp import ILP, ClusterConstraints
from isthmus.searches.near_best import decompose, graphs_around
from isthmus.testing import enumerate_dags
from isthmus.watch import Ending

SCIP = pytest.mark.skipif(find_spec("pyscipopt") is None, reason="the extra [ilp] is not there")
both = pytest.mark.parametrize("make", [AStar, pytest.param(ILP, marks=SCIP)])


def totals(local: LocalScore) -> list[float]:
    return sorted((local.total(g) for g in enumerate_dags(local.nodes)), reverse=True)


@cache
def problem(score: BIC | BDeu, seed: int, n: int, d: int) -> tuple[LocalScore, list[float]]:
    """A problem, and the scores of all graphs, which take longer than a search."""
    local = discrete_score(score, seed, n, d)
    return local, totals(local)


def scores(found: SearchResult) -> list[float]:
    networks: Any = found.details.networks
    assert len({dag for dag, _ in networks}) == len(networks)
    return [score for _, score in networks]


@pytest.mark.long
@both
def test_the_best_graphs_in_order(make: Any) -> None:
    for seed in range(4):
        local, every = problem(BDeu(), seed, 60, 4)
        found = solve(make(n_best=100), local)
        networks: Any = found.details.networks
        assert len(networks) == len({dag for dag, _ in networks}) == 100
        assert [s for _, s in networks] == pytest.approx(every[:100])
        for dag, score in networks:
            assert local.total(dag) == pytest.approx(score)
        assert found.details.networks_bound == networks[-1][1]


@pytest.mark.long
@both
def test_the_best_of_29281_graphs(make: Any) -> None:
    local, every = problem(BIC(), 11, 40, 5)
    assert scores(solve(make(n_best=60), local)) == pytest.approx(every[:60])


@pytest.mark.long
@both
def test_all_graphs_there_are(make: Any) -> None:
    local = discrete_score(BDeu(), 5, 60, 3)
    found = solve(make(n_best=1000), local)
    assert scores(found) == pytest.approx(totals(local))
    assert len(scores(found)) == 25
    assert found.details.networks_bound == -math.inf


@both
def test_one_node(make: Any) -> None:
    local = discrete_score(BDeu(), 0, 50, 1)
    assert scores(solve(make(n_best=3), local)) == [local.local(0, ())]


@pytest.mark.long
@both
@pytest.mark.parametrize("factor", [3.0, 20.0, 150.0])
def test_all_graphs_within_a_bayes_factor(make: Any, factor: float) -> None:
    for seed in range(4):
        local, known = problem(BDeu(), seed, 80, 4)
        every = np.array(known)
        near = int((every >= every.max() - math.log(factor) - 1e-9).sum())
        found = solve(make(n_best=1000, bayes_factor=factor), local)
        assert len(scores(found)) == near
        assert min(scores(found)) >= every.max() - math.log(factor) - 1e-6
        bound: Any = found.details.networks_bound
        assert bound >= every[near]


@both
def test_near_best_graphs_of_a_larger_problem_score_what_they_say(make: Any) -> None:
    local = discrete_score(BIC(), 9, 400, 9)
    found = solve(make(n_best=20), local)
    networks: Any = found.details.networks
    assert networks[0][1] == pytest.approx(found.score)
    assert scores(found) == sorted(scores(found), reverse=True)
    for dag, score in networks:
        assert local.total(dag) == pytest.approx(score)


@pytest.mark.long
@SCIP
@pytest.mark.parametrize("seed", range(8))
def test_they_agree(seed: int) -> None:
    table = tied_table(seed, 4 + seed % 4, part=0.4, levels=2 + seed % 3)
    # What is scored here is whole numbers: the factor ends between two of them.
    for wanted in ({"n_best": 30}, {"n_best": 400, "bayes_factor": math.exp(1.5)}):
        one, other = (solve(make(**wanted), table) for make in (AStar, ILP))
        assert scores(one) == scores(other)
    local = discrete_score(BIC(), seed, 100, 6)
    one, other = (solve(make(n_best=25), local) for make in (AStar, ILP))
    assert scores(one) == pytest.approx(scores(other))


def test_graphs_around_a_graph() -> None:
    local = discrete_score(BDeu(), 1, 60, 4)
    (part,) = decompose(list_parent_sets(local, slack=1e6), Watch(), 1e6)
    empty = tuple(next(i for i, one in enumerate(lines) if not one[0]) for lines in part.lists)
    found = graphs_around(part, empty, 1000, Watch())
    # Every graph can be reached; each of them is one, and comes once.
    assert len(found) == len(set(found)) == 543
    for graph in found:
        masks = [lines[i][0] for lines, i in zip(part.lists, graph, strict=True)]
        DAG.from_parents(local.nodes, [[p for p in range(4) if mask >> p & 1] for mask in masks])
    few = graphs_around(part, empty, 5, Watch())
    values = [sum(part.lists[v][i][1] for v, i in enumerate(graph)) for graph in few]
    assert len(set(few)) == 5
    assert max(values) > local.total(DAG.from_parents(local.nodes, [()] * 4))


@both
def test_millions_of_graphs_that_are_equally_good(make: Any) -> None:
    local = PythonLocalScore(tuple("abcdef"), lambda child, parents: 0.0, equivalent=True)
    assert scores(solve(make(n_best=25), local)) == [0.0] * 25


@pytest.mark.long
@both
def test_the_next_best_of_one_component_come_before_two_losses_at_once(make: Any) -> None:
    # b may follow a, and d c, for a loss of 2; a may follow b for one of 3.5, more than the first
    # slack. The two losses of 2 make 4: no shorter list than wanted, and yet not the next best.
    losses: dict[tuple[int, tuple[int, ...]], float]
    losses = {(1, (0,)): -2.0, (3, (2,)): -2.0, (0, (1,)): -3.5}

    def value(child: int, parents: tuple[int, ...]) -> float:
        return losses.get((child, parents), -100.0 if parents else 0.0)

    local = PythonLocalScore(("a", "b", "c", "d"), value, equivalent=False)
    assert scores(solve(make(n_best=4), local)) == [0.0, -2.0, -2.0, -3.5]
    assert scores(solve(make(n_best=40), local)) == totals(local)[:40]


@pytest.mark.long
@SCIP
def test_a_component_of_more_than_64_nodes() -> None:
    # Each node may follow one of its neighbours on a line: two of them cannot follow each other.
    d, most = 70, 40
    rng = np.random.default_rng(0)
    values = rng.random((d, 3))
    lists: list[list[tuple[tuple[int, ...], float]]] = []
    best: dict[int, list[float]] = {0: [0.0]}
    for v in range(d):
        near = {0: (), 1: (v - 1,), 2: (v + 1,)}
        kinds = [k for k, others in near.items() if all(0 <= u < d for u in others)]
        lists.append([(near[k], float(values[v, k])) for k in kinds])
        best = {
            k: sorted(
                (
                    s + float(values[v, k])
                    for before, ends in best.items()
                    if (before, k) != (2, 1)
                    for s in ends
                ),
                reverse=True,
            )[:most]
            for k in kinds
        }
    expected = sorted((s for ends in best.values() for s in ends), reverse=True)[:most]
    table = ScoreTable.from_lists([f"x{v}" for v in range(d)], lists)
    found = solve(ILP(n_best=most), table)
    assert found.details.largest_component == d
    assert scores(found) == pytest.approx(expected)
    with pytest.raises(MismatchError, match=r"AStar .*at most 64"):
        solve(AStar(n_best=2), table)


@pytest.mark.long
@both
def test_knowledge_holds_for_all_of_them(make: Any) -> None:
    knowledge = Knowledge(required=[("x0", "x2")], forbidden=[("x1", "x0")], roots=["x3"])
    local = discrete_score(BIC(), 2, 200, 4)
    allowed = [local.total(g) for g in enumerate_dags(local.nodes) if knowledge.allows(g)]
    found = solve(make(n_best=1000), local, knowledge)
    assert scores(found) == pytest.approx(sorted(allowed, reverse=True))


def has_networks(found: SearchResult) -> bool:
    return bool(getattr(found.details, "networks", ()))


def stopped(
    search: Any, objective: LocalScore | ScoreTable, seed: int = 0
) -> Iterator[SearchResult]:
    """What a search gives if it is stopped sooner or later."""
    known = Knowledge().bind(objective.nodes)
    return watching.stopped(
        lambda watch: search.search(objective, known, np.random.default_rng(seed), watch)
    )


@pytest.mark.long
@both
def test_a_run_that_is_stopped_lists_what_is_proven(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isthmus.searches.ilp._SLICE", 0.004)
    local, every = problem(BDeu(), 1, 60, 4)
    lengths, proven = [], False
    for found in stopped(make(n_best=300), local):
        # Once the best graph is proven it is not lost, also when sets are listed again.
        assert not proven or found.gap == 0.0
        proven = found.gap == 0.0
        DAG.from_parents(local.nodes, found.parents)
        if found.gap is not None:
            assert found.score <= every[0] + 1e-7 <= found.score + found.gap + 2e-7
        if has_networks(found):
            listed = scores(found)
            assert listed == pytest.approx(every[: len(listed)])
            bound: Any = found.details.networks_bound
            assert bound >= every[len(listed)] - 1e-6
            lengths.append(len(listed))
    assert lengths
    assert lengths == sorted(lengths)
    # A* lists none before it knows all that the table at hand can give.
    assert len(set(lengths)) > 2 or make is AStar


@pytest.mark.long
@SCIP
def test_an_integer_program_that_is_stopped_lists_the_first_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("isthmus.searches.ilp._SLICE", 0.01)
    table = tied_table(4, 6, part=0.4)
    whole = scores(solve(AStar(n_best=150), table))
    some = [found for found in stopped(ILP(n_best=150), table) if has_networks(found)]
    counts = {len(scores(found)) for found in some}
    assert any(0 < count < len(whole) for count in counts)
    for found in some:
        assert scores(found) == whole[: len(scores(found))]


@pytest.mark.long
@SCIP
@pytest.mark.parametrize("calls", [1, 3, 10, 30])
def test_interrupted_while_scip_runs(calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isthmus.searches.ilp._SLICE", 0.01)
    table = tied_table(4, 6, part=0.4)
    whole = scores(solve(AStar(n_best=150), table))
    choice, seen = ClusterConstraints.choice, []

    def interrupted(self: ClusterConstraints, values: Any) -> tuple[int, ...]:
        seen.append(1)
        if len(seen) == calls:
            raise KeyboardInterrupt
        return choice(self, values)

    monkeypatch.setattr(ClusterConstraints, "choice", interrupted)
    run = partial(
        ILP(n_best=150).search, table, Knowledge().bind(table.nodes), np.random.default_rng(0)
    )
    found, status = drive(run, "test")
    assert status.ending is Ending.INTERRUPTED
    assert found.gap is not None
    assert found.score <= whole[0] <= found.score + found.gap
    listed = scores(found) if has_networks(found) else []
    assert listed == whole[: len(listed)]


@both
def test_a_time_limit(make: Any) -> None:
    local = discrete_score(BDeu(), 3, 300, 14)
    run = partial(
        make(n_best=200).search, local, Knowledge().bind(local.nodes), np.random.default_rng(0)
    )
    found, status = drive(run, "test", time_limit=0.2)
    assert status.ending is Ending.TIME_LIMIT
    dag = DAG.from_parents(local.nodes, found.parents)
    assert found.score == pytest.approx(local.total(dag))
    for graph, score in islice(found.details.networks, 20):
        assert local.total(graph) == pytest.approx(score)


def test_out_of_states_before_the_next_best_are_known() -> None:
    local = discrete_score(BDeu(), 3, 100, 16)
    search = AStar(max_parents=1, n_best=5, bayes_factor=1e9, pattern=16, max_states=2**14)
    run = partial(search.search, local, Knowledge().bind(local.nodes), np.random.default_rng(0))
    found, status = drive(run, "test")
    # The best one is proven; the others are not, and none is listed.
    assert status.ending is Ending.OPTIMAL
    assert not has_networks(found)
    assert "limit of states" in status.message


@pytest.mark.parametrize("make", [AStar, ILP])
@pytest.mark.parametrize("wrong", [{"n_best": 0}, {"n_best": 2, "bayes_factor": 0.5}])
def test_numbers_below_one(make: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=f"{make.__name__}.*at least 1"):
        make(**wrong)
