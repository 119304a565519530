"""Orders and exact searches over score tables: equal to the Numba original; goes with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.kernels.random_tables import finish, masks_of, random_table

from isthmus.kernels import exact, table_orders
from isthmus.numerics import clusters, order_graph, order_moves, order_steps, subset_dp
from isthmus.objectives import ScoreTable
from isthmus.searches.exact.components import decompose

SHAPES = [(1, 2), (2, 3), (5, 30), (20, 100), (63, 20), (64, 20), (65, 30), (130, 30)]


@pytest.mark.parametrize("seconds", [0.0, 1.0])
@pytest.mark.parametrize(("d", "lines"), SHAPES)
def test_windows_and_selection(d: int, lines: int, seconds: float) -> None:
    for seed in range(3):
        table = random_table(seed, d, lines)
        rng = np.random.default_rng(seed)
        order = rng.permutation(d)
        old = order_moves.new_lines(*table)
        state = order_moves.new_order(old, order)
        run = table_orders.TableRun(table_orders.ScoreLines(*table), order)

        def same(old: Any = old, state: Any = state, run: Any = run) -> bool:
            finish(run, seconds)
            total = order_moves.settle(old, state, 0, 0)
            same_order = np.array_equal(run.order, state.order)
            return bool(
                same_order and np.array_equal(run.lines, state.lines) and run.total == total
            )

        assert same()
        for size in (1, 2, 3, 1):
            if size > d:
                continue
            firsts = rng.permutation(d)
            gained = order_moves.move_windows(old, state, firsts, size)
            run.sweep(firsts, size)
            assert same()
            assert run.gained == gained
        changed = order_moves.select_acyclic(old, state)
        order_moves.settle(old, state, 0, d)
        run.select()
        assert same()
        assert run.changed == changed


@pytest.mark.parametrize(("d", "lines"), SHAPES)
def test_swaps(d: int, lines: int) -> None:
    for seed, (memory, patience) in enumerate([(5, 20), (0, 0), (3, d)]):
        table = random_table(seed, d, lines)
        order = np.random.default_rng(seed).permutation(d)
        old = order_moves.new_lines(*table)
        state = order_moves.new_order(old, order)
        totals = np.full(2, order_moves.settle(old, state, 0, 0))
        tabu, counters = np.zeros((d, d), np.int64), np.zeros(2, np.int64)
        gains, best = np.empty(max(0, d - 1)), order.copy()
        order_moves.swap_gains(old, state, gains)
        while not order_moves.swap_moves(
            old, state, gains, tabu, memory, best, counters, totals, patience, 10
        ):
            pass
        for seconds in (0.0, 1.0):
            lines_ = table_orders.ScoreLines(*table)
            new = table_orders.SwapSearch(lines_, order, memory=memory, patience=patience)
            finish(new, seconds)
            assert new.score == totals[1]
            assert new.moves == counters[0]
            np.testing.assert_array_equal(new.order, best)


@pytest.mark.parametrize(("d", "lines"), SHAPES)
def test_walks(d: int, lines: int) -> None:
    table = starts, sets, _ = random_table(d, d, lines)
    needed = np.array([np.bitwise_and.reduce(sets[starts[v] : starts[v + 1]]) for v in range(d)])
    outside = np.full((4, sets.shape[1]), ~np.uint64(0))
    walks = table_orders.TableWalks(table_orders.ScoreLines(*table), 4)
    rng = np.random.default_rng(d)
    orders = np.array([rng.permutation(d) for _ in range(4)])
    for actions in np.ascontiguousarray(orders.T):
        allowed, rewards = np.empty((4, d), np.bool_), np.empty(4)
        order_steps.allowed(needed, outside, allowed)
        np.testing.assert_array_equal(walks.allowed(), allowed)
        order_steps.take(*table, outside, actions, rewards)
        np.testing.assert_array_equal(walks.take(actions), rewards)


def floor_of(known: float, slack: float | None) -> float:
    noise = 1e-10 * max(1.0, abs(known))
    return known + noise if slack is None else known - slack - noise


def numba_search(table: Any, sizes: list[int], slack: float | None) -> tuple[Any, Any, float]:
    groups = np.array(sizes, np.int64)
    offsets = np.concatenate([[0], np.cumsum(2**groups)]).astype(np.int64)
    shifts = np.concatenate([[0], np.cumsum(groups)]).astype(np.int64)
    masks = np.ascontiguousarray(table[1][:, 0])
    problem = order_graph.Problem(
        table[0], masks, table[2], shifts[:-1], groups, offsets[:-1], np.empty(offsets[-1])
    )
    for group, size in enumerate(sizes):
        order_graph.fill_pattern(problem, group, 0, 2**size)
    frontier = order_graph.new_frontier(2**14)
    known, closing = -1e6, slack is None
    order_graph.begin(problem, frontier, floor_of(known, slack), closing)
    while True:
        # One state at a time: the new search raises its floor as soon as it has a graph.
        floor = floor_of(known, slack)
        code = order_graph.advance(problem, frontier, floor, closing, not closing, 1)
        if frontier.counters[3] >= 0:
            known = max(known, float(frontier.values[frontier.counters[3]]))
        if code == order_graph.NEEDS_ROOM:
            frontier = order_graph.grow_frontier(frontier)
        if code == order_graph.FINISHED:
            return problem, frontier, known


@pytest.mark.parametrize("slack", [None, 3.0])
@pytest.mark.parametrize(("d", "lines"), [(1, 2), (3, 5), (6, 40), (10, 200), (15, 40)])
def test_order_graph(d: int, lines: int, slack: float | None) -> None:
    for seed in range(4):
        table = random_table(seed, d, lines)
        cut = seed % d
        sizes = [size for size in (cut, d - cut) if size]
        problem, frontier, known = numba_search(table, sizes, slack)
        choices, at = [], int(frontier.counters[3])
        while at >= 0:
            choices.append(int(frontier.last[at]))
            at = int(frontier.via[at])
        expected = np.full(d, -1)
        order_graph.replay(problem, np.array(choices[::-1][1:], int), slack is None, expected)
        closed = np.flatnonzero(frontier.closed[: frontier.counters[0]])
        for seconds in (0.0, 1.0):
            new = exact.OrderGraph(
                table[0],
                problem.masks,
                table[2],
                groups=np.array(sizes),
                known=-1e6,
                slack=slack,
                max_states=10**7,
            )
            finish(new, seconds)
            assert (new.expanded, new.states) == (frontier.counters[2], frontier.counters[0])
            assert new.known == new.bound == known
            np.testing.assert_array_equal(new.lines(), expected)
            np.testing.assert_array_equal(new.closed()[0], frontier.states[closed])
            np.testing.assert_array_equal(new.closed()[1], frontier.values[closed])


def test_subsets() -> None:
    for seed in range(6):
        starts, sets, scores = random_table(seed, 2 + 2 * seed, 40)
        d, masks = len(starts) - 1, np.ascontiguousarray(sets[:, 0])
        values, sinks = np.zeros(2**d), np.full(2**d, -1, np.int8)
        subset_dp.fill(starts, masks, scores, values, sinks, 1, 2**d)
        new = exact.SubsetDP(starts, masks, scores)
        finish(new, 0.0)
        assert scores[new.lines()].sum() == pytest.approx(values[-1], abs=1e-9)


@pytest.mark.parametrize("d", [3, 10, 40, 64, 70, 130])
def test_clusters(d: int) -> None:
    for seed in range(3):
        starts, sets, scores = random_table(seed, d, 20)
        rng = np.random.default_rng(seed)
        amounts = rng.random(len(scores))
        for v in range(d):
            amounts[starts[v] : starts[v + 1]] /= amounts[starts[v] : starts[v + 1]].sum()
        first, second = np.array([rng.permutation(d)[:2] for _ in range(30)]).T.copy()
        for most in (3, 100):
            old = clusters.violated(starts, sets, amounts, first, second, most, 1.2)
            for seconds in (0.0, 1.0):
                new = exact.ClusterSearch(
                    starts, sets, amounts, first=first, second=second, most=most, limit=1.2
                )
                finish(new, seconds)
                np.testing.assert_array_equal(new.found()[0], old[0])
                np.testing.assert_array_equal(new.found()[1], old[1])


@pytest.mark.parametrize("slack", [0.0, 2.0])
@pytest.mark.parametrize("d", [1, 2, 8, 30, 64, 65, 100])
def test_decomposition(d: int, slack: float) -> None:
    """The original is in Python, but goes too."""
    for seed in range(4):
        table = random_table(seed, d, 1 + 4 * seed, most=2)
        names = tuple(f"x{v}" for v in range(d))
        old = decompose(ScoreTable(names, *table), slack)
        new = exact.Decomposition(*table, slack=slack)
        finish(new, 0.0)
        found = [
            (
                tuple(nodes.tolist()),
                tuple(
                    tuple((mask, score, int(lines[i])) for i, (mask, score) in enumerate(own, at))
                    for own, at in zip(masks_of((starts, sets, scores)), starts, strict=False)
                ),
            )
            for nodes, starts, sets, scores, lines in new.components()
        ]
        assert found == [(part.nodes, part.lists) for part in old]
