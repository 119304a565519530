"""Margins of directions, against the best of all graphs that have an edge the other way round."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus import simulate
from isthmus.objectives import LOCAL_SCORES, LocalScore, PythonLocalScore
from isthmus.searches import reversals
from isthmus.searches.reversals import reversal_margins, reversal_seconds


@cache
def all_graphs(d: int) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """Return the parents of all directed acyclic graphs of so many variables."""
    graphs: set[tuple[tuple[int, ...], ...]] = set()
    for order in itertools.permutations(range(d)):
        before = [order[: order.index(v)] for v in range(d)]
        sets = [
            [s for k in range(len(b) + 1) for s in itertools.combinations(sorted(b), k)]
            for b in before
        ]
        graphs.update(itertools.product(*sets))
    return tuple(graphs)


def best_reversed(local: LocalScore, edge: tuple[str, str], admits: Any) -> float:
    """Return the score of the best admitted graph with an edge the other way round."""
    a, b = (local.nodes.index(name) for name in edge)
    family = cache(local.local)
    scores = (
        sum(family(v, parents) for v, parents in enumerate(graph))
        for graph in all_graphs(len(local.nodes))
        if b in graph[a] and admits(graph)
    )
    return max(scores, default=-np.inf)


def table(seed: int, d: int) -> dict[str, Any]:
    dag = simulate.erdos_renyi(d, d + 1, seed=seed)
    numbers = simulate.linear(dag, (100, 1000)[seed % 2], seed=seed).data
    if seed % 3:
        return dict(numbers)
    return {
        v: np.digitize(x, np.quantile(x, [1 / 3, 2 / 3])).astype(str) for v, x in numbers.items()
    }


@pytest.mark.long
@pytest.mark.parametrize("d", [4, 5])
@pytest.mark.parametrize("seed", range(6))
def test_margins_are_those_of_all_graphs(seed: int, d: int) -> None:
    data = table(seed, d)
    nodes = tuple(data)
    knowledge = (
        ist.Knowledge(),
        ist.Knowledge(tiers=[nodes[:2], nodes[2:]]),
        ist.Knowledge(required=[(nodes[0], nodes[1])], forbidden=[(nodes[2], nodes[3])]),
    )[seed % 3]
    solution = ist.learn(data, knowledge=knowledge)
    local: Any = solution.statistics_kept.local  # type: ignore[union-attr]
    bound = knowledge.bind(local.nodes)

    def admits(graph: tuple[tuple[int, ...], ...]) -> bool:
        has = np.zeros((d, d), bool)
        for child, parents in enumerate(graph):
            has[list(parents), child] = True
        return not (has & bound.forbidden).any() and bool(has[bound.required].all())

    total = local.total(solution.dag)
    expected = {e: total - best_reversed(local, e, admits) for e in solution.dag.edges}
    margins = reversal_margins(local, solution.dag, solution.dag.edges, knowledge)
    assert margins == pytest.approx(expected, abs=1e-6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reversals, "_EXACT_VARIABLES", 0)
        climbed = reversal_margins(local, solution.dag, solution.dag.edges, knowledge)
    for edge, margin in climbed.items():
        assert margin >= expected[edge] - 1e-6
        assert (margin < 5) == (expected[edge] < 5)


def test_a_score_that_tells_members_of_a_class_apart() -> None:
    """A chain, whose noise a score of one variable and its parents may know."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=500)
    b = a + rng.normal(size=500)
    values = np.stack([a, b, b + rng.normal(size=500), rng.normal(size=500)])

    def score(child: int, parents: tuple[int, ...]) -> float:
        design = np.vstack([values[list(parents)], np.ones(500)]).T
        rest = values[child] - design @ np.linalg.lstsq(design, values[child])[0]
        return float(-0.5 * rest @ rest - 4.0 * len(parents))  # noise of variance 1

    local = PythonLocalScore(tuple("abcd"), score, equivalent=False)
    dag = ist.DAG([*"abcd"], [("a", "b"), ("b", "c")])
    expected = {
        e: local.total(dag) - best_reversed(local, e, lambda graph: bool(graph)) for e in dag.edges
    }
    assert min(expected.values()) > 50
    assert reversal_margins(local, dag, dag.edges, ist.Knowledge()) == pytest.approx(expected)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reversals, "_EXACT_VARIABLES", 0)
        climbed = reversal_margins(local, dag, dag.edges, ist.Knowledge())
    assert climbed == pytest.approx(expected)


def test_max_parents_hold_for_other_graphs_too() -> None:
    data = simulate.linear(simulate.erdos_renyi(12, 24, seed=2), 500, seed=2).data
    solution = ist.learn(data, search=ist.Boss(max_parents=2, starts=2))
    limited = solution.directions.margins
    local: Any = solution.statistics_kept.local  # type: ignore[union-attr]
    free = reversal_margins(local, solution.dag, solution.dag.edges, ist.Knowledge())
    assert limited != free
    assert sum(limited.values()) > sum(free.values())


def test_a_score_that_is_counted_elsewhere_is_not_asked() -> None:
    asked = []

    def score(child: int, parents: tuple[int, ...]) -> float:
        asked.append((child, parents))
        return 0.0

    local = PythonLocalScore(tuple("abc"), score, equivalent=True, cost=lambda _: np.inf)
    assert reversal_seconds(local, 3) == np.inf
    assert not asked
    assert LOCAL_SCORES.of(local) is local


def test_the_climb_from_a_graph_checks_its_size() -> None:
    from isthmus.kernels.greedy import begin_hill_climb

    local = PythonLocalScore(tuple("abc"), lambda v, p: -len(p), equivalent=True)
    climb = begin_hill_climb(local.kernel, seed=0)
    with pytest.raises(ValueError, match="another number of variables"):
        climb.start([[], [0]], parent=0, child=1, restarts=0, nearby=False)


def test_what_is_not_clear_when_the_work_is_used_up_has_no_margin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(300, 14)) @ (np.eye(14) + 0.3 * rng.normal(size=(14, 14)))
    solution = ist.learn(x, score=ist.GaussianBIC())
    whole = solution.measure_directions().directions
    monkeypatch.setattr(reversals, "_CLIMBS", 14 * 12)
    short = replace(solution, directions_kept=None).directions
    # What is told is the same; nothing that is not clear is told.
    assert set(short.open) - set(short.margins)
    assert "not found in seconds" in str(short)
    assert set(short.determined) <= set(whole.determined)
    assert replace(solution, directions_kept=short).measure_directions().directions == whole
