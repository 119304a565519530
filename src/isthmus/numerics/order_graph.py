"""A* on the order graph, for at most 64 nodes.

A state is the set of nodes placed so far; the step to a state with x more is worth the best score
of x with parents among those placed. The heuristic is a static pattern database (Yuan and
Malone 2013): the nodes are split into groups of consecutive numbers, and for each subset of a group
the table holds the best score of these nodes when all other groups' nodes are free to be parents.
It never underestimates, and it is consistent, so a state is expanded once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isthmus.numerics.heap import pop, push
from isthmus.numerics.jit import inner, kernel

RUNNING, FINISHED, NEEDS_ROOM = 0, 1, 2
_ONE = np.uint64(1)


class Problem(NamedTuple):
    """Nodes of one component with their parent sets, best first."""

    starts: NDArray[np.int64]
    masks: NDArray[np.uint64]
    scores: NDArray[np.float64]
    shifts: NDArray[np.int64]  # of each group, its first node
    sizes: NDArray[np.int64]
    offsets: NDArray[np.int64]  # where its table starts
    patterns: NDArray[np.float64]


class Frontier(NamedTuple):
    """States seen so far."""

    states: NDArray[np.uint64]
    values: NDArray[np.float64]  # best score of the nodes placed
    via: NDArray[np.int32]  # the state before
    last: NDArray[np.int8]  # the node placed last by choice
    closed: NDArray[np.uint8]
    slots: NDArray[np.int32]
    heap_keys: NDArray[np.float64]
    heap_states: NDArray[np.int32]
    counters: NDArray[np.int64]  # states, heap, expanded, goal (-1: not reached)


def new_frontier(room: int) -> Frontier:
    """Make room for states."""
    slots = np.full(1 << (3 * room).bit_length(), -1, np.int32)
    return Frontier(
        np.empty(room, np.uint64),
        np.empty(room),
        np.empty(room, np.int32),
        np.empty(room, np.int8),
        np.zeros(room, np.uint8),
        slots,
        np.empty(2 * room),
        np.empty(2 * room, np.int32),
        np.array([0, 0, 0, -1]),
    )


def grow_frontier(old: Frontier) -> Frontier:
    """Copy to twice the room."""
    n, h = int(old.counters[0]), int(old.counters[1])
    room = len(old.states) * 2
    new = new_frontier(room)._replace(counters=old.counters)
    for name in ("states", "values", "via", "last", "closed"):
        getattr(new, name)[:n] = getattr(old, name)[:n]
    new.heap_keys[:h] = old.heap_keys[:h]
    new.heap_states[:h] = old.heap_states[:h]
    _rehash(new)
    return new


@kernel
def _rehash(frontier):  # type: ignore[no-untyped-def]
    for i in range(frontier.counters[0]):
        slot = _slot(frontier, frontier.states[i])
        frontier.slots[slot] = i


@inner
def _slot(frontier, state):  # type: ignore[no-untyped-def]
    """Slot that holds the state, or the free one where it belongs."""
    mask = np.uint64(frontier.slots.size - 1)
    mixed = state * np.uint64(0x9E3779B97F4A7C15)
    slot = (mixed ^ (mixed >> np.uint64(29))) & mask
    while True:
        at = frontier.slots[slot]
        if at < 0 or frontier.states[at] == state:
            return slot
        slot = (slot + _ONE) & mask


@inner
def best_line(problem, x, placed):  # type: ignore[no-untyped-def]
    """Best parent set of x among those placed, -1 if there is none."""
    outside = ~placed
    for line in range(problem.starts[x], problem.starts[x + 1]):
        if problem.masks[line] & outside == np.uint64(0):
            return line
    return -1


@inner
def _to_go(problem, placed):  # type: ignore[no-untyped-def]
    """Upper bound on the score of the nodes that are not placed."""
    total = 0.0
    left = ~placed
    for g in range(problem.sizes.size):
        part = (left >> np.uint64(problem.shifts[g])) & (
            (_ONE << np.uint64(problem.sizes[g])) - _ONE
        )
        total += problem.patterns[problem.offsets[g] + np.int64(part)]
    return total


@kernel
def fill_pattern(problem, group, begin, end):  # type: ignore[no-untyped-def]
    """Fill the entries ``begin`` to ``end`` of one group's table."""
    shift, size = problem.shifts[group], problem.sizes[group]
    offset = problem.offsets[group]
    for subset in range(begin, end):
        if subset == 0:
            problem.patterns[offset] = 0.0
            continue
        free = ~(np.uint64(subset) << np.uint64(shift))
        best = -np.inf
        for i in range(size):
            if subset >> i & 1:
                x = shift + i
                line = best_line(problem, x, free)
                if line >= 0:
                    rest = problem.patterns[offset + (subset ^ (1 << i))]
                    best = max(best, problem.scores[line] + rest)
        problem.patterns[offset + subset] = best


@inner
def _push(frontier, key, at):  # type: ignore[no-untyped-def]
    push(frontier.heap_keys, frontier.heap_states, frontier.counters[1], key, at)
    frontier.counters[1] += 1


@inner
def _pop(frontier):  # type: ignore[no-untyped-def]
    top = pop(frontier.heap_keys, frontier.heap_states, frontier.counters[1])
    frontier.counters[1] -= 1
    return top


@inner
def close_up(problem, placed, value, everything):  # type: ignore[no-untyped-def]
    """Place every node that can have its best parent set of all: waiting cannot pay."""
    again = True
    while again and placed != everything:
        again = False
        for x in range(problem.starts.size - 1):
            bit = _ONE << np.uint64(x)
            first = problem.starts[x]
            if placed & bit == np.uint64(0) and problem.masks[first] & ~placed == np.uint64(0):
                placed |= bit
                value += problem.scores[first]
                again = True
    return placed, value


@inner
def _see(problem, frontier, placed, value, via, x, floor, everything):  # type: ignore[no-untyped-def]
    """Put a state on the heap unless it is known as well or cannot reach the floor."""
    key = value + _to_go(problem, placed)
    if key <= floor:
        return
    slot = _slot(frontier, placed)
    at = frontier.slots[slot]
    if at >= 0:
        if frontier.values[at] >= value or frontier.closed[at]:
            return
    else:
        at = frontier.counters[0]
        frontier.counters[0] += 1
        frontier.slots[slot] = at
        frontier.states[at] = placed
        frontier.closed[at] = 0
    frontier.values[at] = value
    frontier.via[at] = via
    frontier.last[at] = x
    _push(frontier, key, at)


@kernel
def begin(problem, frontier, floor, closing):  # type: ignore[no-untyped-def]
    """Put the empty state on the heap."""
    m = problem.starts.size - 1
    everything = ~np.uint64(0) >> np.uint64(64 - m)
    placed, value = np.uint64(0), 0.0
    if closing:
        placed, value = close_up(problem, placed, value, everything)
    _see(problem, frontier, placed, value, -1, -1, floor, everything)


@kernel
def advance(problem, frontier, floor, closing, exhaust, quota):  # type: ignore[no-untyped-def]
    """Expand up to ``quota`` states.

    Parameters
    ----------
    floor
        States that cannot reach a higher total are left out.
    closing
        Whether nodes that can have their best parent set are placed at once. Right for one best
        graph, wrong where all states matter.
    exhaust
        Whether to go on after the goal until no state is left.
    """
    m = problem.starts.size - 1
    everything = ~np.uint64(0) >> np.uint64(64 - m)
    for _ in range(quota):
        if frontier.counters[1] == 0:
            return FINISHED
        if frontier.counters[0] + m > frontier.states.size:
            return NEEDS_ROOM
        if frontier.counters[1] + m > frontier.heap_keys.size:
            return NEEDS_ROOM
        at = _pop(frontier)
        if frontier.closed[at]:
            continue
        frontier.closed[at] = 1
        placed, value = frontier.states[at], frontier.values[at]
        if placed == everything:
            frontier.counters[3] = at
            if not exhaust:
                return FINISHED
            continue
        frontier.counters[2] += 1
        for x in range(m):
            bit = _ONE << np.uint64(x)
            if placed & bit:
                continue
            line = best_line(problem, x, placed)
            if line < 0:
                continue
            more, total = placed | bit, value + problem.scores[line]
            if closing:
                more, total = close_up(problem, more, total, everything)
            _see(problem, frontier, more, total, at, x, floor, everything)
    return RUNNING


@kernel
def replay(problem, choices, closing, lines):  # type: ignore[no-untyped-def]
    """Give each node its line for a sequence of choices; return the order."""
    m = problem.starts.size - 1
    order = np.empty(m, np.int64)
    count = 0
    placed = np.uint64(0)
    for c in range(choices.size + 1):
        again = closing
        while again:
            again = False
            for x in range(m):
                bit = _ONE << np.uint64(x)
                first = problem.starts[x]
                if placed & bit == np.uint64(0) and problem.masks[first] & ~placed == np.uint64(0):
                    placed |= bit
                    lines[x] = first
                    order[count] = x
                    count += 1
                    again = True
        if c < choices.size:
            x = choices[c]
            lines[x] = best_line(problem, x, placed)
            placed |= _ONE << np.uint64(x)
            order[count] = x
            count += 1
    return order[:count]
