"""Orders and exact searches over score tables, against slow versions of their own."""

from __future__ import annotations

import functools
import itertools
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.kernels.random_tables import SlowTable, finish, masks_of, random_table

from isthmus.kernels import _native


@pytest.mark.parametrize("d", [1, 4, 12, 70])
def test_a_node_has_its_first_line_that_fits(d: int) -> None:
    table = random_table(d, d, 15)
    slow = SlowTable(table)
    order = np.random.default_rng(d).permutation(d)
    run = _native.TableRun(_native.ScoreLines(*table), order)
    finish(run)
    assert run.lines.tolist() == slow.lines(order.tolist())
    assert run.total == pytest.approx(slow.total(order.tolist()))


@pytest.mark.parametrize(("d", "size"), [(6, 1), (6, 2), (7, 3), (66, 1), (66, 3)])
def test_a_window_goes_to_its_best_place(d: int, size: int) -> None:
    table = random_table(size, d, 15)
    slow = SlowTable(table)
    rng = np.random.default_rng(d)
    order = rng.permutation(d)
    run = _native.TableRun(_native.ScoreLines(*table), order)
    finish(run)
    for first in rng.permutation(d)[:8]:
        before = run.order.tolist()
        begin = before.index(first)
        run.sweep(np.array([first]), size)
        finish(run, 0.0)
        after = run.order.tolist()
        assert run.lines.tolist() == slow.lines(after)
        if begin + size > d:
            assert after == before
            continue
        window, rest = before[begin : begin + size], before[:begin] + before[begin + size :]
        best = max(
            slow.total(rest[:place] + window + rest[place:]) for place in range(len(rest) + 1)
        )
        assert run.total == pytest.approx(best)
        assert run.gained == pytest.approx(best - slow.total(before))


def test_acyclic_selection_loses_nothing() -> None:
    for seed in range(10):
        table = random_table(seed, 9, 20)
        order = np.random.default_rng(seed).permutation(9)
        run = _native.TableRun(_native.ScoreLines(*table), order)
        finish(run)
        lines, total = run.lines, run.total
        run.select()
        finish(run, 0.0)
        assert (table[2][run.lines] >= table[2][lines] - 1e-12).all()
        assert sorted(run.order.tolist()) == list(range(9))
        assert run.changed or run.total == total


def test_swaps_end_where_no_swap_gains() -> None:
    table = random_table(1, 8, 30)
    slow = SlowTable(table)
    order = np.arange(8)
    search = _native.SwapSearch(_native.ScoreLines(*table), order, memory=0, patience=0)
    finish(search)
    found = search.order.tolist()
    assert search.score == pytest.approx(slow.total(found))
    for i in range(7):
        other = found[:i] + [found[i + 1], found[i]] + found[i + 2 :]
        assert slow.total(other) <= search.score + 1e-7


def test_walks_give_the_total_of_their_order() -> None:
    table = random_table(3, 70, 15)
    slow = SlowTable(table)
    walks = _native.TableWalks(_native.ScoreLines(*table), 3)
    rng = np.random.default_rng(0)
    orders = np.array([rng.permutation(70) for _ in range(3)])
    for _ in range(2):
        assert walks.allowed().all()
        totals = sum(walks.take(np.ascontiguousarray(actions)) for actions in orders.T)
        assert totals == pytest.approx([slow.total(order) for order in orders.tolist()])
        assert not walks.allowed().any()
        walks.restart()


def component(table: Any) -> tuple[Any, Any, Any]:
    return table[0], np.ascontiguousarray(table[1][:, 0]), table[2]


@pytest.mark.parametrize("d", [1, 2, 5, 6])
def test_exact_searches_find_the_best_graph(d: int) -> None:
    for seed in range(5):
        table = random_table(seed, d, 12)
        slow = SlowTable(table)
        best = max(slow.total(order) for order in itertools.permutations(range(d)))
        new = _native.OrderGraph(
            *component(table), groups=np.array([d]), known=-1e6, slack=None, max_states=10**6
        )
        subsets = _native.SubsetDP(*component(table))
        for search in (new, subsets):
            finish(search)
            assert table[2][search.lines()].sum() == pytest.approx(best)
        assert new.known == pytest.approx(best)
        assert new.bound == new.known


def test_states_of_near_best_graphs_are_all_there() -> None:
    table = random_table(4, 6, 12)
    new = _native.OrderGraph(
        *component(table), groups=np.array([3, 3]), known=-1e6, slack=1e9, max_states=10**6
    )
    finish(new)
    assert sorted(new.closed()[0].tolist()) == list(range(64))


def test_giving_up_leaves_a_bound() -> None:
    table = random_table(4, 18, 200)
    new = _native.OrderGraph(
        *component(table), groups=np.array([9, 9]), known=-1e6, slack=1e9, max_states=1000
    )
    finish(new)
    assert new.gave_up
    assert new.bound >= new.known


def test_clusters_are_violated() -> None:
    table = starts, sets, scores = random_table(2, 9, 10)
    amounts = np.random.default_rng(0).random(len(scores))
    amounts[starts[1:] - 1] *= 0.01  # without the empty sets there are cycles
    for v in range(9):
        amounts[starts[v] : starts[v + 1]] /= amounts[starts[v] : starts[v + 1]].sum()
    pairs = np.array([(a, b) for a in range(9) for b in range(9) if a != b])
    search = _native.ClusterSearch(
        starts,
        sets,
        amounts,
        first=pairs[:, 0].copy(),
        second=pairs[:, 1].copy(),
        most=50,
        limit=1.0,
    )
    finish(search)
    clusters, sums = search.found()
    assert len(sums) > 0
    assert len({row.tobytes() for row in clusters}) == len(sums)
    masks = masks_of(table)
    for (cluster,), total in zip(clusters.tolist(), sums, strict=True):
        avoiding = sum(
            amounts[starts[v] + i]
            for v in range(9)
            if cluster >> v & 1
            for i, (mask, _) in enumerate(masks[v])
            if not mask & cluster
        )
        assert total == pytest.approx(avoiding)
        assert total < 1.0


def test_components_are_strongly_connected() -> None:
    """Each has its best graph inside, and together they are the best graph of all."""
    for seed in range(6):
        table = random_table(seed, 7, 2, most=2)
        slow = SlowTable(table)
        best = max(slow.total(order) for order in itertools.permutations(range(7)))
        split = _native.Decomposition(*table)
        with pytest.raises(RuntimeError, match="not split"):
            split.components()
        finish(split)
        total, seen = 0.0, []
        for nodes, starts, sets, scores, lines in split.components():
            part = _native.SubsetDP(starts, np.ascontiguousarray(sets[:, 0]), scores)
            finish(part)
            total += scores[part.lines()].sum()
            seen += nodes.tolist()
            assert (table[2][lines] == scores).all()
        assert sorted(seen) == list(range(7))
        assert total == pytest.approx(best)


# --- slices ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "lines"), [(2, 3), (20, 100), (64, 20), (65, 30), (130, 30)])
def test_slices_do_not_matter(d: int, lines: int) -> None:
    table = random_table(d, d, lines)
    rng = np.random.default_rng(d)
    order, firsts = rng.permutation(d), rng.permutation(d)
    amounts = rng.random(len(table[2]))
    pairs = np.array([rng.permutation(d)[:2] for _ in range(30)]).T.copy()
    results = []
    for seconds in (0.0, 60.0):
        run = _native.TableRun(_native.ScoreLines(*table), order)
        finish(run, seconds)
        found: list[Any] = [run.total]
        for size in (1, 2, 1):
            run.sweep(firsts, size)
            finish(run, seconds)
            found += [run.gained, run.order.tolist()]
        run.select()
        finish(run, seconds)
        found += [run.changed, run.order.tolist(), run.lines.tolist()]
        swaps = _native.SwapSearch(_native.ScoreLines(*table), order, memory=5, patience=20)
        finish(swaps, seconds)
        found += [swaps.score, swaps.moves, swaps.order.tolist()]
        clusters = _native.ClusterSearch(
            *table[:2], amounts, first=pairs[0], second=pairs[1], most=5, limit=3.0
        )
        finish(clusters, seconds)
        found += [part.tolist() for part in clusters.found()]
        results.append(found)
    assert results[0] == results[1]


@pytest.mark.parametrize("slack", [None, 3.0])
def test_slices_do_not_matter_to_exact_searches(slack: float | None) -> None:
    for seed in range(3):
        table = component(random_table(seed, 12, 100))
        results = []
        for seconds in (0.0, 60.0):
            search = _native.OrderGraph(
                *table, groups=np.array([5, 7]), known=-1e6, slack=slack, max_states=10**6
            )
            finish(search, seconds)
            results.append((search.expanded, search.states, search.known, search.lines().tolist()))
        assert results[0] == results[1]


def test_a_state_knows_its_value() -> None:
    table = random_table(4, 6, 12)
    search = _native.OrderGraph(
        *component(table), groups=np.array([3, 3]), known=-1e6, slack=1e9, max_states=10**6
    )
    assert search.value(0) is None
    finish(search)
    masks, values = search.closed()
    assert [search.value(mask) for mask in masks.tolist()] == values.tolist()


def test_swaps_end_at_a_number_of_moves() -> None:
    table = _native.ScoreLines(*random_table(1, 30, 30))
    search = _native.SwapSearch(table, np.arange(30), memory=1, patience=10**6, most=17)
    finish(search)
    assert search.moves == 17


def test_what_is_in_every_set_is_needed() -> None:
    starts, sets, scores = random_table(1, 70, 5)
    required = sets.copy()
    required[starts[3] : starts[4], 1] |= np.uint64(1 << 4)
    needed = _native.ScoreLines(starts, required, scores).needed()
    assert needed[3].tolist() == [0, 1 << 4]
    assert not np.delete(needed, 3, axis=0).any()


# --- stopping ---------------------------------------------------------------------------------


@functools.cache
def long_runs() -> dict[str, Callable[[], Any]]:
    many = random_table(0, 1000, 60)
    few = random_table(0, 26, 3000, most=6)
    order = np.random.default_rng(0).permutation(1000)

    def windows() -> Any:
        run = _native.TableRun(_native.ScoreLines(*many), order)
        finish(run, 1.0)
        run.sweep(order, 3)
        return run

    def clusters() -> Any:
        rng = np.random.default_rng(0)
        amounts = rng.random(len(many[2])) / 3
        first, second = np.array([rng.permutation(1000)[:2] for _ in range(1000)]).T.copy()
        return _native.ClusterSearch(
            many[0], many[1], amounts, first=first, second=second, most=10_000, limit=1e9
        )

    return {
        "windows": windows,
        "swaps": lambda: _native.SwapSearch(
            _native.ScoreLines(*many), order, memory=10, patience=10**6
        ),
        "graph": lambda: _native.OrderGraph(
            *component(few), groups=np.array([13, 13]), known=-1e6, slack=1e9, max_states=10**9
        ),
        "subsets": lambda: _native.SubsetDP(*component(few)),
        "clusters": clusters,
        "decomposition": lambda: _native.Decomposition(*many),
    }


RUNS = ["windows", "swaps", "graph", "subsets", "clusters", "decomposition"]


@pytest.mark.long
@pytest.mark.timing
@pytest.mark.parametrize("name", RUNS)
def test_a_step_is_short(name: str) -> None:
    run = long_runs()[name]()
    longest = 0.0
    for _ in range(40):
        start = time.thread_time()
        run.step(0.01)
        longest = max(longest, time.thread_time() - start)
    assert longest < 0.03


@pytest.mark.timing
@pytest.mark.parametrize("name", RUNS[:-1])
def test_ctrl_c_ends_a_long_step(name: str) -> None:
    run = long_runs()[name]()
    run.step(0.0)
    threading.Timer(0.05, signal.raise_signal, (signal.SIGINT,)).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run.step(60.0)
    assert time.monotonic() - start < 2.0
    run.step(0.0)


# --- odd input --------------------------------------------------------------------------------


def test_odd_tables_are_refused() -> None:
    starts, sets, scores = random_table(0, 5, 10)
    lines = _native.ScoreLines
    with pytest.raises(ValueError, match="starts"):
        lines(starts[:-1], sets, scores)
    with pytest.raises(ValueError, match="starts"):
        lines(starts[::-1].copy(), sets, scores)
    with pytest.raises(ValueError, match="score"):
        lines(starts, sets[:-1], scores)
    with pytest.raises(ValueError, match="words"):
        lines(starts, np.hstack([sets, sets]), scores)
    with pytest.raises(TypeError):
        lines(starts, sets.astype(np.float64), scores)
    with pytest.raises(TypeError):
        lines(starts, np.hstack([sets, sets])[:, ::2], scores)
    for bad in (np.uint64(1), np.uint64(1 << 5), ~np.uint64(0)):
        with pytest.raises(ValueError, match="holds"):
            lines(starts, np.where(np.arange(len(sets))[:, None] == 0, bad, sets), scores).prepare()
    scores.setflags(write=False)
    assert lines(starts, sets, scores).prepare(1.0)


def test_odd_orders_and_jobs_are_refused() -> None:
    table = _native.ScoreLines(*random_table(0, 5, 10))
    for order in ([0, 1, 2, 3], [0, 1, 2, 3, 3], [0, 1, 2, 3, 5], [0, 1, 2, 3, -1]):
        with pytest.raises(ValueError, match="once"):
            _native.TableRun(table, np.array(order))
        with pytest.raises(ValueError, match="once"):
            _native.SwapSearch(table, np.array(order), memory=1, patience=1)
    run = _native.TableRun(table, np.arange(5))
    with pytest.raises(RuntimeError, match="not finished"):
        run.sweep(np.arange(5))
    finish(run)
    for size in (0, 6):
        with pytest.raises(ValueError, match="window"):
            run.sweep(np.arange(5), size)
    with pytest.raises(IndexError):
        run.sweep(np.array([5]))
    walks = _native.TableWalks(table, 2)
    with pytest.raises(ValueError, match="action"):
        walks.take(np.arange(3))
    with pytest.raises(IndexError):
        walks.take(np.array([0, 5]))
    with pytest.raises(TypeError):
        _native.TableRun(None, np.arange(5))  # type: ignore[arg-type]


def test_odd_components_are_refused() -> None:
    starts, masks, scores = component(random_table(0, 5, 10))
    options: dict[str, Any] = {"groups": np.array([5]), "known": 0.0, "slack": None}
    new = _native.OrderGraph
    with pytest.raises(ValueError, match="nodes"):
        new(starts[:1], masks[:0], scores[:0], max_states=10, **options)
    with pytest.raises(ValueError, match="line"):
        new(np.array([0, 0, *starts[2:]]), masks, scores, max_states=10, **options)
    with pytest.raises(ValueError, match="holds"):
        new(starts, masks | np.uint64(1), scores, max_states=10, **options)
    with pytest.raises(ValueError, match="pattern"):
        new(starts, masks, scores, max_states=10, **{**options, "groups": np.array([2, 2])})
    with pytest.raises(ValueError, match="slack"):
        new(starts, masks, scores, max_states=10, **{**options, "slack": -1.0})
    starts, sets, scores = random_table(0, 5, 10)
    with pytest.raises(IndexError):
        _native.ClusterSearch(
            starts, sets, scores, first=np.array([0]), second=np.array([5]), most=1, limit=1.0
        )
    with pytest.raises(ValueError, match="two nodes"):
        _native.ClusterSearch(
            starts, sets, scores, first=np.array([1]), second=np.array([1]), most=1, limit=1.0
        )


def test_nothing_to_order() -> None:
    table = _native.ScoreLines(np.zeros(1, np.int64), np.empty((0, 1), np.uint64), np.empty(0))
    run = _native.TableRun(table, np.empty(0, np.int64))
    finish(run)
    assert run.total == 0.0
    search = _native.SwapSearch(table, np.empty(0, np.int64), memory=1, patience=1)
    finish(search)
    assert search.score == 0.0
