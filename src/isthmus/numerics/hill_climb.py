"""Tabu hill climbing over single edges, compiled.

All changes of score are kept in one matrix and only the rows of children that changed are
computed again. Reachability is kept as bits, so a cycle test is one bit test.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isthmus.numerics import abi
from isthmus.numerics.jit import inner, kernel

DONE = 0
NOTHING_LEFT = 1
SCORE_FAILED = 2

ADD, DELETE, REVERSE = 0, 1, 2

# Equivalent changes gain the same up to rounding; the first one is taken on every machine.
_TIE = 1e-7


class Climb(NamedTuple):
    """The graph under way and what every single-edge change would bring."""

    edge: NDArray[np.uint8]  # [child, parent]
    delta: NDArray[np.float64]  # [child, parent]: gain of adding, or of deleting an edge
    row_best: NDArray[np.float64]  # best gain of adding, per child
    local: NDArray[np.float64]
    reach: NDArray[np.uint64]  # [node, word]: where one gets to along edges
    open: NDArray[np.uint8]  # [child, parent]: the edge may be added
    fixed: NDArray[np.uint8]  # [child, parent]: the edge is required
    recent: NDArray[np.uint64]  # keys of the graphs visited last, a ring
    counters: NDArray[np.int64]  # [0] steps, [1] max_parents
    key: NDArray[np.uint64]  # [0] key of the current graph


def new_climb(
    required: NDArray[np.bool_], forbidden: NDArray[np.bool_], max_parents: int | None, tabu: int
) -> Climb:
    """Start from the required edges; matrices are indexed [from, to]."""
    d = len(required)
    words = (d + 63) // 64
    climb = Climb(
        edge=np.zeros((d, d), np.uint8),
        delta=np.full((d, d), -np.inf),
        row_best=np.full(d, -np.inf),
        local=np.zeros(d),
        reach=np.zeros((d, words), np.uint64),
        open=np.ascontiguousarray(~forbidden.T, dtype=np.uint8),
        fixed=np.ascontiguousarray(required.T, dtype=np.uint8),
        recent=np.zeros(max(tabu, 1), np.uint64),
        counters=np.array([0, d if max_parents is None else max_parents]),
        key=np.zeros(1, np.uint64),
    )
    for parent, child in np.argwhere(required):
        _set_edge(climb, child, parent, 1)
    _rebuild_reach(climb)
    return climb


@inner
def _mix(value):  # type: ignore[no-untyped-def]
    """Spread the bits of an edge's number (the finaliser of SplitMix64)."""
    z = np.uint64(value) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inner
def _edge_key(climb, child, parent):  # type: ignore[no-untyped-def]
    return _mix(child * len(climb.local) + parent)


@kernel
def _set_edge(climb, child, parent, present):  # type: ignore[no-untyped-def]
    climb.edge[child, parent] = present
    climb.key[0] ^= _edge_key(climb, child, parent)


@inner
def _reaches(climb, source, target):  # type: ignore[no-untyped-def]
    return (climb.reach[source, target >> 6] >> np.uint64(target & 63)) & np.uint64(1)


@inner
def _add_reach(climb, child, parent):  # type: ignore[no-untyped-def]
    """Extend reachability by one new edge."""
    words = climb.reach.shape[1]
    bit = np.uint64(1) << np.uint64(child & 63)
    for x in range(len(climb.local)):
        if x == parent or _reaches(climb, x, parent):
            for w in range(words):
                climb.reach[x, w] |= climb.reach[child, w]
            climb.reach[x, child >> 6] |= bit


@kernel
def _rebuild_reach(climb):  # type: ignore[no-untyped-def]
    """Compute reachability anew, from the sinks up."""
    d = len(climb.local)
    words = climb.reach.shape[1]
    climb.reach[:] = 0
    pending = np.zeros(d, np.int64)  # children not yet done
    for child in range(d):
        for parent in range(d):
            pending[parent] += climb.edge[child, parent]
    stack = np.empty(d, np.int64)
    top = 0
    for x in range(d):
        if pending[x] == 0:
            stack[top] = x
            top += 1
    while top > 0:
        top -= 1
        child = stack[top]
        bit = np.uint64(1) << np.uint64(child & 63)
        for parent in range(d):
            if climb.edge[child, parent]:
                for w in range(words):
                    climb.reach[parent, w] |= climb.reach[child, w]
                climb.reach[parent, child >> 6] |= bit
                pending[parent] -= 1
                if pending[parent] == 0:
                    stack[top] = parent
                    top += 1


@kernel
def refresh(score, climb, child):  # type: ignore[no-untyped-def]
    """Compute all gains of changing the parents of ``child``."""
    d = len(climb.local)
    parents = np.empty(d, np.int64)
    candidates = np.empty(d, np.int64)
    values = np.empty(d + 1)
    k, m = 0, 0
    for x in range(d):
        if climb.edge[child, x]:
            parents[k] = x
            k += 1
    if k < climb.counters[1]:
        for x in range(d):
            if climb.open[child, x] and not climb.edge[child, x]:
                candidates[m] = x
                m += 1
    if abi.evaluate(score, child, parents, k, candidates, m, values) != 0:
        return SCORE_FAILED
    base = values[0]
    climb.local[child] = base
    climb.delta[child, :] = -np.inf
    best = -np.inf
    for j in range(m):
        gain = values[1 + j] - base
        climb.delta[child, candidates[j]] = gain
        best = max(best, gain)
    climb.row_best[child] = best
    fewer = np.empty(max(k, 1), np.int64)
    for i in range(k):
        t = 0
        for j in range(k):
            if j != i:
                fewer[t] = parents[j]
                t += 1
        if abi.evaluate(score, child, fewer, t, candidates, 0, values) != 0:
            return SCORE_FAILED
        climb.delta[child, parents[i]] = values[0] - base
    return DONE


@inner
def _is_recent(climb, key):  # type: ignore[no-untyped-def]
    for i in range(min(len(climb.recent), climb.counters[0])):
        if climb.recent[i] == key:
            return True
    return False


@inner
def _other_way(climb, parent, child):  # type: ignore[no-untyped-def]
    """Whether ``parent`` reaches ``child`` other than by the edge between them."""
    for x in range(len(climb.local)):
        if x != child and climb.edge[x, parent] and _reaches(climb, x, child):
            return True
    return False


@inner
def _best_change(climb, floor):  # type: ignore[no-untyped-def]
    """Find the best allowed change that gains more than ``floor``."""
    d = len(climb.local)
    best, kind, best_child, best_parent = floor, -1, -1, -1
    key = climb.key[0]
    for child in range(d):
        if climb.row_best[child] > best + _TIE:
            for parent in range(d):
                gain = climb.delta[child, parent]
                if (
                    gain > best + _TIE
                    and not climb.edge[child, parent]
                    and not _reaches(climb, child, parent)
                    and not _is_recent(climb, key ^ _edge_key(climb, child, parent))
                ):
                    best, kind, best_child, best_parent = gain, ADD, child, parent
    for child in range(d):
        for parent in range(d):
            if not climb.edge[child, parent] or climb.fixed[child, parent]:
                continue
            gain = climb.delta[child, parent]
            without = key ^ _edge_key(climb, child, parent)
            if gain > best + _TIE and not _is_recent(climb, without):
                best, kind, best_child, best_parent = gain, DELETE, child, parent
            gain += climb.delta[parent, child]
            if (
                gain > best + _TIE
                and climb.open[parent, child]
                and not _is_recent(climb, without ^ _edge_key(climb, parent, child))
                and not _other_way(climb, parent, child)
            ):
                best, kind, best_child, best_parent = gain, REVERSE, child, parent
    return best, kind, best_child, best_parent


@kernel
def climb_step(score, climb, floor):  # type: ignore[no-untyped-def]
    """Make the best change that gains more than ``floor``.

    Returns a code, the gain, and the change: its kind, the child and the parent.
    """
    gain, kind, child, parent = _best_change(climb, floor)
    if kind < 0:
        return NOTHING_LEFT, 0.0, kind, child, parent
    climb.recent[climb.counters[0] % len(climb.recent)] = climb.key[0]
    climb.counters[0] += 1
    if kind == ADD:
        _set_edge(climb, child, parent, 1)
        _add_reach(climb, child, parent)
    else:
        _set_edge(climb, child, parent, 0)
        if kind == REVERSE:
            _set_edge(climb, parent, child, 1)
        _rebuild_reach(climb)
    code = refresh(score, climb, child)
    if code == DONE and kind == REVERSE:
        code = refresh(score, climb, parent)
    return code, gain, kind, child, parent
