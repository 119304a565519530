"""Sums over parent sets by brute force; moves by their full transition matrices."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest
from tests.kernels.posteriors import Distribution, State, Weights, distance, members, normalised

from isthmus.kernels import _native
from isthmus.kernels.mcmc import FamilyTables, SamplingRun, Space, order_of, partition_of
from isthmus.kernels.scoring import python_score
from isthmus.testing import enumerate_dags

Floats = Any
Families = tuple[tuple[int, ...], ...]

PARTITION_MOVES = {
    0: "relocate",
    1: "swap near",
    2: "swap any",
    3: "split or merge",
    4: "reverse",
    5: "block",
}
SLOW = {"four", "outside", "cancelling", "bounded"}  # for blocks
ORDER_MOVES = {0: "relocate", 1: "swap near", 2: "swap any"}

CASES = {
    "two": Weights(2, 0),
    "three": Weights(3, 1),
    "four": Weights(4, 2, spread=1.0),
    "outside": Weights(4, 3, count=1, outside=True),
    "bounded": Weights(4, 4, count=2, outside=True, max_parents=2),
    "candidates only": Weights(4, 5, count=2),
    "knowledge": Weights(4, 6, required=((2, 0),), forbidden=((1, 3),)),
    "required stranger": Weights(4, 7, count=1, outside=True, required=((0, 3), (1, 3))),
    "far apart": Weights(4, 8, spread=300.0),
    "cancelling": Weights(4, 9, spread=20.0, count=2, outside=True),
}


def after_move(
    tables: FamilyTables, space: Space, target: Distribution, move: int, heat: float
) -> Distribution:
    """Return the distribution after one move from a target."""
    result: Distribution = defaultdict(float)
    for state, probability in target.items():
        labels = np.array(state, np.uint32)
        states, shares = _native.move_probabilities(tables.native, space, labels, move, heat)
        assert shares.sum() == pytest.approx(1.0, abs=1e-12)
        for other, share in zip(states.tolist(), shares.tolist(), strict=True):
            result[tuple(other)] += probability * share
    return result


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("heat", [1.0, 0.4])
@pytest.mark.parametrize("move", PARTITION_MOVES)
def test_moves_keep_the_distribution_of_partitions(name: str, heat: float, move: int) -> None:
    if move == 5 and name in SLOW and "ISTHMUS_LONG" not in os.environ:
        pytest.skip("several seconds; set ISTHMUS_LONG to run it")
    case = CASES[name]
    target = normalised(case.partitions, heat)
    result = after_move(case.tables(), Space.PARTITIONS, target, move, heat)
    assert distance(result, target) < 1e-10


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("heat", [1.0, 0.4])
@pytest.mark.parametrize("move", ORDER_MOVES)
def test_moves_keep_the_distribution_of_orders(name: str, heat: float, move: int) -> None:
    case = CASES[name]
    target = normalised(case.orders, heat)
    result = after_move(case.tables(), Space.ORDERS, target, move, heat)
    assert distance(result, target) < 1e-10


def test_another_target_is_not_kept() -> None:
    """The test above can fail: all moves but those that cannot leave a state notice."""
    case = Weights(3, 2, spread=1.0)
    wrong = normalised(case.partitions, 0.9)
    for move in PARTITION_MOVES:
        result = after_move(case.tables(), Space.PARTITIONS, wrong, move, 1.0)
        assert distance(result, wrong) > 1e-5


@pytest.mark.parametrize("name", CASES)
def test_graphs_drawn_from_partitions_follow_the_posterior(name: str) -> None:
    case = CASES[name]
    tables = case.tables()
    result: Distribution = defaultdict(float)
    for state, probability in case.partitions.items():
        graphs, shares = _native.graph_probabilities(
            tables.native, Space.PARTITIONS, np.array(state, np.uint32)
        )
        for graph, share in zip(graphs.tolist(), shares.tolist(), strict=True):
            result[tuple(graph)] += probability * share
    assert distance(result, case.graphs) < 1e-10


def test_graphs_drawn_from_orders_are_biased_by_their_number_of_orders() -> None:
    case = Weights(4, 2, spread=0.3)
    tables = case.tables()
    result: Distribution = defaultdict(float)
    for state, probability in case.orders.items():
        graphs, shares = _native.graph_probabilities(
            tables.native, Space.ORDERS, np.array(state, np.uint32)
        )
        for graph, share in zip(graphs.tolist(), shares.tolist(), strict=True):
            result[tuple(graph)] += probability * share
    counts: Distribution = defaultdict(float)
    for places in case.orders:
        for graph in case.graphs:
            counts[graph] += all(
                places[p] < places[v] for v, own in enumerate(graph) for p in members(own)
            )
    assert distance(result, case.graphs) > 0.01
    corrected = normalised({graph: result[graph] / counts[graph] for graph in result})
    assert distance(corrected, case.graphs) < 1e-10


@pytest.mark.parametrize(
    "case",
    [
        Weights(7, 0),
        Weights(7, 1, count=3, outside=True),
        Weights(7, 2, count=5, outside=True, max_parents=3),
        Weights(7, 3, spread=400.0, count=5, outside=True),
        Weights(7, 4, spread=60.0, required=((1, 0), (2, 0))),
        Weights(7, 5, count=0, outside=True),
        Weights(7, 6, max_parents=0),
    ],
)
def test_sums_equal_brute_force(case: Weights) -> None:
    tables = case.tables()
    rng = np.random.default_rng(case.seed)
    for _ in range(150):
        node = int(rng.integers(7))
        allowed = [u for u in range(7) if u != node and rng.random() < 0.7]
        wanted = [u for u in allowed if rng.random() < 0.4]
        logs, some = [], []
        for size in range(len(allowed) + 1):
            for parents in combinations(allowed, size):
                logs.append(case.log_weight(node, parents))
                if set(parents) & set(wanted):
                    some.append(logs[-1])
        assert tables.log_sum(node, allowed) == pytest.approx(np.logaddexp.reduce(logs), abs=1e-9)
        expected = np.logaddexp.reduce([*some, -np.inf])
        total = np.logaddexp.reduce(logs)
        # A sum that is a tiny share of the whole is less precise, since its states are improbable.
        slack = 1e-9 + 1e-15 * np.exp(min(total - expected, 28.0)) if np.isfinite(total) else 1e-9
        assert tables.log_sum(node, allowed, wanted) == pytest.approx(expected, abs=slack)


def conditional_edges(
    case: Weights, states: Callable[[Families], Iterable[State]]
) -> dict[State, Floats]:
    """Return the edge probabilities [child, parent] given each state, by enumeration of graphs."""
    logs, edges = defaultdict(list), defaultdict(list)
    for dag in enumerate_dags([str(v) for v in range(case.d)]):
        parents = [tuple(sorted(int(p) for p in dag.parents(str(v)))) for v in range(case.d)]
        log = sum(case.log_weight(v, own) for v, own in enumerate(parents))
        if not np.isfinite(log):
            continue
        for state in states(tuple(parents)):
            logs[state].append(log)
            edges[state].append([[u in own for u in range(case.d)] for own in parents])
    result = {}
    for state, values in logs.items():
        weights = np.exp(np.array(values) - max(values))
        result[state] = np.tensordot(weights / weights.sum(), np.array(edges[state], float), 1)
    return result


def orders_of(parents: Families) -> Iterator[State]:
    for places in permutations(range(len(parents))):
        if all(places[p] < places[v] for v, own in enumerate(parents) for p in own):
            yield places


EDGE_CASES = CASES | {
    "tiers": Weights(4, 10, forbidden=((2, 0), (2, 1), (3, 0), (3, 1)), required=((0, 2),)),
    "far apart with knowledge": Weights(4, 11, spread=300.0, required=((0, 1),), count=1),
}


@pytest.mark.long
@pytest.mark.parametrize("name", EDGE_CASES)
@pytest.mark.parametrize("space", [Space.PARTITIONS, Space.ORDERS])
def test_edge_probabilities_given_a_state_equal_brute_force(name: str, space: Space) -> None:
    case = EDGE_CASES[name]
    tables = case.tables()
    if space is Space.PARTITIONS:
        expected = conditional_edges(case, lambda graph: [tuple(partition_of(graph).tolist())])
    else:
        expected = conditional_edges(case, orders_of)
    assert len(expected) > 1
    for state, edges in expected.items():
        labels = np.array(state, np.uint32)
        given = _native.edge_probabilities(tables.native, space, labels)
        np.testing.assert_allclose(given, edges, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    "case",
    [
        Weights(10, 0),
        Weights(10, 1, spread=40.0, required=((1, 0), (2, 0))),
        Weights(10, 2, spread=400.0),
        Weights(10, 3, spread=100.0, count=6, outside=True, max_parents=4),
    ],
)
def test_edge_probabilities_of_larger_tables(case: Weights) -> None:
    tables = case.tables()
    rng = np.random.default_rng(case.seed)
    checked = 0
    while checked < 8:
        labels = np.unique(rng.integers(0, 4, case.d), return_inverse=True)[1].astype(np.uint32)
        expected = [parents_given_partition(case, child, labels) for child in range(case.d)]
        if any(own is None for own in expected):
            continue
        given = _native.edge_probabilities(tables.native, Space.PARTITIONS, labels)
        np.testing.assert_allclose(given, np.array(expected), rtol=0, atol=1e-10)
        checked += 1


def parents_given_partition(case: Weights, child: int, labels: Floats) -> Floats:
    """Return the probability of each parent of one node; None if it has no parent set."""
    before = np.flatnonzero(labels < labels[child]).tolist()
    logs, sets = [], []
    for size in range(len(before) + 1):
        for parents in combinations(before, size):
            if labels[child] == 0 or any(labels[u] + 1 == labels[child] for u in parents):
                logs.append(case.log_weight(child, parents))
                sets.append([u in parents for u in range(case.d)])
    if max(logs) == -np.inf:
        return None
    weights = np.exp(np.array(logs) - max(logs))
    return weights @ np.array(sets, float) / weights.sum()


@pytest.mark.long
@pytest.mark.parametrize("space", [Space.PARTITIONS, Space.ORDERS])
def test_averages_approach_the_posterior_of_edges(space: Space) -> None:
    case = Weights(4, 2, spread=1.0)
    run = run_of(case, space=space, draws=8000, warm_up=200)
    while not run.step(1.0):
        pass
    target = case.partitions if space is Space.PARTITIONS else case.orders
    expected = np.zeros((4, 4))
    for state, probability in target.items():
        labels = np.array(state, np.uint32)
        expected += probability * _native.edge_probabilities(case.tables().native, space, labels).T
    edges = run.edges()
    assert edges.shape == (3, 4, 4)
    np.testing.assert_allclose(edges.mean(axis=0), expected, atol=0.005)
    assert np.abs(edges[0] - edges[1]).max() > 1e-5


def test_tables_are_taken_over_only_for_the_same_families() -> None:
    def score(_child: int, parents: tuple[int, ...]) -> float:
        return -float(len(parents))

    kernel = python_score(4, score)
    candidates = ~np.eye(4, dtype=np.bool_)
    first = FamilyTables(kernel, candidates)
    while not first.step():
        pass
    candidates[0, 1] = False
    second = FamilyTables(kernel, candidates, previous=first)
    assert second.built == 3
    while not second.step():
        pass
    assert second.log_sum(1, [0, 2]) == pytest.approx(first.log_sum(1, [0, 2]))
    with pytest.raises(ValueError, match="same score"):
        FamilyTables(python_score(4, score), candidates, previous=first)


def test_partitions_and_orders_of_graphs() -> None:
    graph = ((), (0,), (0,), (1, 4), ())
    assert partition_of(graph).tolist() == [0, 1, 1, 2, 0]
    assert order_of(partition_of(graph)).tolist() == [0, 2, 3, 4, 1]
    with pytest.raises(ValueError, match="cycle"):
        partition_of(((1,), (0,)))


def run_of(case: Weights, *, space: Space = Space.PARTITIONS, **options: int) -> SamplingRun:
    start = tuple(tuple(a for a, b in case.required if b == v) for v in range(case.d))
    wanted = {"warm_up": 10, "thin": 2, "draws": 20} | options
    return SamplingRun(case.tables(), space, [start] * 3, np.random.default_rng(1), **wanted)


@pytest.mark.parametrize("levels", [1, 3])
@pytest.mark.parametrize("space", [Space.ORDERS, Space.PARTITIONS])
def test_draws_do_not_depend_on_slices_or_threads(space: Space, levels: int) -> None:
    case = Weights(6, 1, count=3, outside=True)
    quiet = run_of(case, space=space, levels=levels)
    while not quiet.step(1.0):
        pass
    for jobs in (1, 3):
        run = run_of(case, space=space, levels=levels)
        while not run.step(0.0, jobs):
            pass
        for a, b in zip(run.draws(), quiet.draws(), strict=True):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(run.edges(), quiet.edges())
    graphs, _ = quiet.draws()
    assert not np.array_equal(graphs[0], graphs[1])


def test_chains_advance_together() -> None:
    run = run_of(Weights(6, 1), draws=100_000)
    counts = [0]
    while min(counts) == 0:
        run.step(0.05, 1)
        counts = [len(run._run.draws(c)[1]) for c in range(3)]
        assert max(counts) - min(counts) <= 16
    assert run.draws()[0].shape == (3, min(counts), 6, 1)


@pytest.mark.long
@pytest.mark.parametrize("levels", [1, 4])
def test_frequencies_approach_the_posterior(levels: int) -> None:
    case = Weights(4, 2, spread=1.0)
    run = run_of(case, levels=levels, draws=5000, warm_up=200)
    while not run.step(1.0):
        pass
    graphs, scores = run.draws()
    counts: Distribution = defaultdict(float)
    for graph in graphs[..., 0].reshape(-1, 4).tolist():
        counts[tuple(graph)] += 1 / 15_000
    assert distance(counts, case.graphs) < 0.015
    for graph, score in zip(graphs[0, :50, :, 0].tolist(), scores[0, :50].tolist(), strict=True):
        expected = sum(case.log_weight(v, tuple(members(own))) for v, own in enumerate(graph))
        assert score == pytest.approx(expected, abs=1e-9)


def test_bad_starts_are_refused() -> None:
    tables = Weights(3, 0, required=((0, 1),)).tables()
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="no graph with these labels"):
        SamplingRun(tables, Space.PARTITIONS, [((), (), ())], rng, warm_up=1, thin=1, draws=1)
    with pytest.raises(ValueError, match="a start and a seed"):
        SamplingRun(tables, Space.PARTITIONS, [], rng, warm_up=1, thin=1, draws=1)


def test_bad_scores_are_refused() -> None:
    for value in (np.nan, np.inf, -np.inf):
        kernel = python_score(2, partial(lambda number, _child, _parents: number, value))
        tables = FamilyTables(kernel, np.ones((2, 2), np.bool_))
        with pytest.raises(ValueError, match="finite"):
            tables.step(1.0)


def test_too_many_candidates_are_refused() -> None:
    kernel = python_score(30, lambda _child, _parents: 0.0)
    with pytest.raises(ValueError, match="20 candidate"):
        FamilyTables(kernel, np.ones((30, 30), np.bool_))
