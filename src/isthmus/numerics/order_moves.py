"""Moves in an order over a score table: swaps of neighbours, and windows that are put elsewhere.

A node's line is the first of its lines that holds nothing from behind it. When one more node
comes before it, only earlier lines that hold that node can take over, and an index knows them; when
a node goes, the line changes only if it holds that node. So most nodes that a move passes cost
one look.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isthmus.numerics.jit import inner, kernel

_FULL = np.uint64(0xFFFFFFFFFFFFFFFF)
_ONE = np.uint64(1)
_NEVER = -1e15
"""Score of a node without a line: finite, so that mending one fault is a gain."""
GAIN = 1e-8
"""Smaller differences are rounding."""


class Lines(NamedTuple):
    """A score table with an index: which lines of a node hold another."""

    starts: NDArray[np.int64]
    sets: NDArray[np.uint64]
    scores: NDArray[np.float64]
    index_starts: NDArray[np.int64]  # [node * d + member]
    holders: NDArray[np.int32]


class Order(NamedTuple):
    """An order, where each node stands in it, and its line; past its last if none fits."""

    order: NDArray[np.int64]
    place: NDArray[np.int64]
    lines: NDArray[np.int64]


def new_lines(
    starts: NDArray[np.int64], sets: NDArray[np.uint64], scores: NDArray[np.float64]
) -> Lines:
    """Index a table."""
    d = len(starts) - 1
    index_starts = np.zeros(d * d + 1, np.int64)
    _count_members(starts, sets, index_starts)
    np.cumsum(index_starts, out=index_starts)
    index = np.empty(int(index_starts[-1]), np.int32)
    _fill_index(starts, sets, index_starts[:-1].copy(), index)
    return Lines(starts, sets, scores, index_starts, index)


def new_order(lines: Lines, order: NDArray[np.int64]) -> Order:
    """Start from an order."""
    d = len(order)
    state = Order(np.array(order, np.int64), np.empty(d, np.int64), np.empty(d, np.int64))
    settle(lines, state, 0, d)
    return state


@kernel
def _count_members(starts, sets, counts):  # type: ignore[no-untyped-def]
    d = starts.size - 1
    for v in range(d):
        for line in range(starts[v], starts[v + 1]):
            for p in range(d):
                if sets[line, p >> 6] >> np.uint64(p & 63) & _ONE:
                    counts[v * d + p + 1] += 1


@kernel
def _fill_index(starts, sets, at, index):  # type: ignore[no-untyped-def]
    d = starts.size - 1
    for v in range(d):
        for line in range(starts[v], starts[v + 1]):
            for p in range(d):
                if sets[line, p >> 6] >> np.uint64(p & 63) & _ONE:
                    index[at[v * d + p]] = line
                    at[v * d + p] += 1


@inner
def _flip(outside, v):  # type: ignore[no-untyped-def]
    outside[v >> 6] ^= _ONE << np.uint64(v & 63)


@inner
def _holds(sets, line, v):  # type: ignore[no-untyped-def]
    return (sets[line, v >> 6] >> np.uint64(v & 63)) & _ONE


@inner
def _fits(sets, line, outside):  # type: ignore[no-untyped-def]
    for w in range(outside.size):
        if sets[line, w] & outside[w]:
            return False
    return True


@inner
def _first(table, v, begin, outside):  # type: ignore[no-untyped-def]
    """First line of v from ``begin`` that fits; past the last if none."""
    end = table.starts[v + 1]
    for line in range(begin, end):
        if _fits(table.sets, line, outside):
            return line
    return end


@inner
def _with(table, v, added, line, outside):  # type: ignore[no-untyped-def]
    """Line of v when ``added``, already taken from outside, comes before it too."""
    at = v * (table.starts.size - 1) + added
    for i in range(table.index_starts[at], table.index_starts[at + 1]):
        other = np.int64(table.holders[i])
        if other >= line:
            break
        if _fits(table.sets, other, outside):
            return other
    return line


@inner
def _without(table, v, removed, line, outside):  # type: ignore[no-untyped-def]
    """Line of v when ``removed``, already put outside, no longer comes before it."""
    if line == table.starts[v + 1] or not _holds(table.sets, line, removed):
        return line
    return _first(table, v, line + 1, outside)


@inner
def _worth(table, v, line):  # type: ignore[no-untyped-def]
    return table.scores[line] if line < table.starts[v + 1] else _NEVER


@inner
def _outside_at(state, place, outside):  # type: ignore[no-untyped-def]
    outside[:] = _FULL
    for i in range(place):
        _flip(outside, state.order[i])


@kernel
def settle(table, state, begin, end):  # type: ignore[no-untyped-def]
    """Give the nodes at these places their lines; return the total of all nodes."""
    outside = np.empty(table.sets.shape[1], np.uint64)
    _outside_at(state, begin, outside)
    for i in range(begin, end):
        v = state.order[i]
        state.place[v] = i
        state.lines[v] = _first(table, v, table.starts[v], outside)
        _flip(outside, v)
    total = 0.0
    for v in range(state.order.size):
        total += _worth(table, v, state.lines[v])
    return total


# --- swaps of neighbours ----------------------------------------------------------------------


@inner
def _swap_lines(table, state, i, outside):  # type: ignore[no-untyped-def]
    """Lines of the nodes at i and i + 1 if they changed places; outside is that of place i."""
    x, y = state.order[i], state.order[i + 1]
    line_y = _without(table, y, x, state.lines[y], outside)
    _flip(outside, y)
    line_x = _with(table, x, y, state.lines[x], outside)
    _flip(outside, y)
    return line_x, line_y


@inner
def _swap_gain(table, state, i, outside):  # type: ignore[no-untyped-def]
    x, y = state.order[i], state.order[i + 1]
    line_x, line_y = _swap_lines(table, state, i, outside)
    before = _worth(table, x, state.lines[x]) + _worth(table, y, state.lines[y])
    return _worth(table, x, line_x) + _worth(table, y, line_y) - before


@kernel
def swap_gains(table, state, gains):  # type: ignore[no-untyped-def]
    """What each swap of neighbours gains."""
    outside = np.full(table.sets.shape[1], _FULL)
    for i in range(state.order.size - 1):
        gains[i] = _swap_gain(table, state, i, outside)
        _flip(outside, state.order[i])


@kernel
def swap_moves(table, state, gains, tabu, memory, best, counters, total, patience, quota):  # type: ignore[no-untyped-def]
    """Make up to ``quota`` best swaps that are not tabu; keep the best order seen.

    Parameters
    ----------
    tabu
        ``tabu[a, b]`` is the move up to which a stays before b.
    memory
        For how many moves two nodes that changed places stay so.
    best
        The best order so far; ``counters`` holds moves made and moves since then.
    total, patience
        Totals [now, best], and after how many moves without a better one to stop.
    """
    d = state.order.size
    outside = np.empty(table.sets.shape[1], np.uint64)
    for _ in range(quota):
        at, gain = -1, -np.inf
        for i in range(d - 1):
            if gains[i] > gain:
                free = tabu[state.order[i], state.order[i + 1]] <= counters[0]
                # Tabu does not hold for what leads to the best of all.
                if free or total[0] + gains[i] > total[1] + GAIN:
                    at, gain = i, gains[i]
        counters[0] += 1
        if at < 0 or gain < -1e12 or (patience == 0 and gain <= GAIN):
            return True
        x, y = state.order[at], state.order[at + 1]
        _outside_at(state, at, outside)
        line_x, line_y = _swap_lines(table, state, at, outside)
        state.lines[x], state.lines[y] = line_x, line_y
        state.order[at], state.order[at + 1] = y, x
        state.place[x], state.place[y] = at + 1, at
        tabu[y, x] = counters[0] + memory
        total[0] += gain
        for i in range(max(0, at - 1), min(d - 1, at + 2)):
            _outside_at(state, i, outside)
            gains[i] = _swap_gain(table, state, i, outside)
        if total[0] > total[1] + GAIN:
            total[1] = total[0]
            best[:] = state.order
            counters[1] = 0
        else:
            counters[1] += 1
            if counters[1] >= patience:
                return True
    return False


# --- windows ----------------------------------------------------------------------------------


@inner
def _pass_left(table, state, begin, size, u, line_u, held, outside):  # type: ignore[no-untyped-def]
    """The window goes before u: ``outside`` is that of u's place, ``held`` the window's lines.

    Gives the line of u; changes the lines held, and nothing else.
    """
    # The window loses u.
    for k in range(size):
        v = state.order[begin + k]
        held[k] = _without(table, v, u, held[k], outside)
        _flip(outside, v)
    # u wins the window, which has been taken from outside by now.
    for k in range(size):
        line_u = _with(table, u, state.order[begin + k], line_u, outside)
    for k in range(size):
        _flip(outside, state.order[begin + k])
    return line_u


@inner
def _pass_right(table, state, begin, size, u, line_u, held, outside):  # type: ignore[no-untyped-def]
    """The window goes after u: ``outside`` is that of the window without u before it."""
    for k in range(size):
        v = state.order[begin + k]
        if line_u < table.starts[u + 1] and _holds(table.sets, line_u, v):
            line_u = _first(table, u, line_u + 1, outside)
            break
    _flip(outside, u)
    for k in range(size):
        v = state.order[begin + k]
        held[k] = _with(table, v, u, held[k], outside)
        _flip(outside, v)
    for k in range(size):
        _flip(outside, state.order[begin + k])
    return line_u


@inner
def _best_place(table, state, begin, size, held, outside):  # type: ignore[no-untyped-def]
    """Where the window at ``begin`` gains most, and how much."""
    d = state.order.size
    own = 0.0
    for k in range(size):
        v = state.order[begin + k]
        own += _worth(table, v, state.lines[v])
    best_gain, best_place = GAIN, begin
    for k in range(size):
        held[k] = state.lines[state.order[begin + k]]
    passed = 0.0
    _outside_at(state, begin, outside)
    for i in range(begin - 1, -1, -1):
        u = state.order[i]
        _flip(outside, u)
        line = _pass_left(table, state, begin, size, u, state.lines[u], held, outside)
        passed += _worth(table, u, line) - _worth(table, u, state.lines[u])
        gain = passed - own
        for k in range(size):
            gain += _worth(table, state.order[begin + k], held[k])
        if gain > best_gain:
            best_gain, best_place = gain, i
    for k in range(size):
        held[k] = state.lines[state.order[begin + k]]
    passed = 0.0
    _outside_at(state, begin, outside)
    for i in range(begin + size, d):
        u = state.order[i]
        line = _pass_right(table, state, begin, size, u, state.lines[u], held, outside)
        passed += _worth(table, u, line) - _worth(table, u, state.lines[u])
        gain = passed - own
        for k in range(size):
            gain += _worth(table, state.order[begin + k], held[k])
        if gain > best_gain + GAIN:
            best_gain, best_place = gain, i - size + 1
    return best_place, best_gain if best_place != begin else 0.0


@inner
def _put(state, begin, size, target):  # type: ignore[no-untyped-def]
    """Put the window at ``begin`` so that it begins at ``target``."""
    window = state.order[begin : begin + size].copy()
    if target < begin:
        for i in range(begin - 1, target - 1, -1):
            state.order[i + size] = state.order[i]
    else:
        for i in range(begin + size, target + size):
            state.order[i - size] = state.order[i]
    state.order[target : target + size] = window
    for i in range(min(begin, target), max(begin, target) + size):
        state.place[state.order[i]] = i


@kernel
def move_windows(table, state, firsts, size):  # type: ignore[no-untyped-def]
    """Put each window that begins with one of ``firsts`` at its best place; return the gain."""
    outside = np.empty(table.sets.shape[1], np.uint64)
    held = np.empty(size, np.int64)
    gained = 0.0
    for v in firsts:
        begin = state.place[v]
        if begin + size > state.order.size:
            continue
        target, gain = _best_place(table, state, begin, size, held, outside)
        if target == begin:
            continue
        gained += gain
        _put(state, begin, size, target)
        low, high = min(begin, target), max(begin, target) + size
        _outside_at(state, low, outside)
        for i in range(low, high):
            u = state.order[i]
            state.lines[u] = _first(table, u, table.starts[u], outside)
            _flip(outside, u)
    return gained


# --- any acyclic graph of an order ------------------------------------------------------------


@kernel
def select_acyclic(table, state):  # type: ignore[no-untyped-def]
    """Give nodes, the last in the order first, the best line that closes no cycle.

    The relaxed rule of Scanagatta and others 2015: every predecessor is still allowed when a node
    chooses, and some that come later. Puts the order of the graph into the state, in which no node
    scores less; returns whether the order changed.
    """
    d, words = state.order.size, table.sets.shape[1]
    below = np.zeros((d, words), np.uint64)  # a node and its descendants
    above = np.zeros((d, words), np.uint64)  # a node and its ancestors
    fresh = np.empty(words, np.uint64)
    chosen = np.empty(d, np.int64)
    for v in range(d):
        _flip(below[v], v)
        _flip(above[v], v)
    for i in range(d - 1, -1, -1):
        v = state.order[i]
        line = _first(table, v, table.starts[v], below[v])
        chosen[v] = line
        if line == table.starts[v + 1]:
            continue
        fresh[:] = 0
        for p in range(d):
            if _holds(table.sets, line, p):
                for w in range(words):
                    fresh[w] |= above[p, w]
        for a in range(d):
            if fresh[a >> 6] >> np.uint64(a & 63) & _ONE:
                for w in range(words):
                    below[a, w] |= below[v, w]
            elif below[v, a >> 6] >> np.uint64(a & 63) & _ONE:
                for w in range(words):
                    above[a, w] |= fresh[w]
    # Sorted by the graph; of the nodes that are free the one that stood first goes first.
    placed = np.full(words, _FULL)
    done = np.zeros(d, np.bool_)
    sorted_ = np.empty(d, np.int64)
    count, before = 0, -1
    while before < count < d:
        before = count
        for i in range(d):
            v = state.order[i]
            if done[v]:
                continue
            if chosen[v] == table.starts[v + 1] or _fits(table.sets, chosen[v], placed):
                sorted_[count] = v
                count += 1
                done[v] = True
                _flip(placed, v)
    changed = False
    for i in range(d):
        changed = changed or state.order[i] != sorted_[i]
        state.order[i] = sorted_[i]
    return changed
