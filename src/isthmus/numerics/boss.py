"""Best order score search: move one variable at a time to its best place in an order.

The kernel knows what a move can change. A trace of ``w`` depends on ``v`` only if ``v`` was
grown into the parents of ``w`` (then taking it away matters) or was skipped although it would
have helped (then letting it in matters). Both sets are kept as bits for the current order, so
that trying all places of ``v`` costs one bit test for most of the other variables.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isthmus.numerics.grow_shrink import DONE, parents_at, trace
from isthmus.numerics.jit import inner, kernel


class Order(NamedTuple):
    """The current order with what is known of every variable in it."""

    order: NDArray[np.int64]
    scores: NDArray[np.float64]
    grown: NDArray[np.uint64]  # [variable, word]: grown into its parents
    skipped: NDArray[np.uint64]  # [variable, word]: would have been taken, was not before it


class Places(NamedTuple):
    """Room to work in for trying the places of one variable."""

    inside: NDArray[np.uint8]
    others: NDArray[np.int64]
    difference: NDArray[np.float64]
    own: NDArray[np.float64]
    wanted: NDArray[np.int64]  # carries the current stamp if it would change the moved one's trace
    stamp: NDArray[np.int64]


def new_order(order: NDArray[np.int64]) -> Order:
    """Start from ``order``; :func:`settle` fills in the rest."""
    d = len(order)
    words = (d + 63) // 64
    return Order(
        order=np.array(order, np.int64),
        scores=np.zeros(d),
        grown=np.zeros((d, words), np.uint64),
        skipped=np.zeros((d, words), np.uint64),
    )


def new_places(d: int) -> Places:
    """Make room to work in for ``d`` variables."""
    return Places(
        inside=np.zeros(d, np.uint8),
        others=np.zeros(d, np.int64),
        difference=np.zeros(d),
        own=np.zeros(d),
        wanted=np.zeros(d, np.int64),
        stamp=np.zeros(1, np.int64),
    )


@inner
def _test(bits, row, column):  # type: ignore[no-untyped-def]
    return (bits[row, column >> 6] >> np.uint64(column & 63)) & np.uint64(1)


@inner
def _remember(state, scratch, child, value):  # type: ignore[no-untyped-def]
    """Store the outcome of the last trace as the current one of ``child``."""
    state.scores[child] = value
    for word in range(state.grown.shape[1]):
        state.grown[child, word] = 0
        state.skipped[child, word] = 0
    for i in range(scratch.sizes[0]):
        x = scratch.parents[i]
        state.grown[child, x >> 6] |= np.uint64(1) << np.uint64(x & 63)
    for i in range(scratch.sizes[1]):
        x = scratch.skipped[i]
        state.skipped[child, x >> 6] |= np.uint64(1) << np.uint64(x & 63)


@kernel
def settle(score, forest, scratch, state, places, rules, start, stop):  # type: ignore[no-untyped-def]
    """Trace the variables at positions ``start`` to ``stop``; return a code and how far it came."""
    inside = places.inside
    inside[:] = 0
    for j in range(start):
        inside[state.order[j]] = 1
    for j in range(start, stop):
        w = state.order[j]
        code, node = trace(score, forest, scratch, w, inside, rules)
        if code != DONE:
            return code, j
        _remember(state, scratch, w, forest.shrunk_score[node])
        inside[w] = 1
    return DONE, stop


@inner
def _required(rules, parent, child):  # type: ignore[no-untyped-def]
    for i in range(rules.required_start[child], rules.required_start[child + 1]):
        if rules.required[i] == parent:
            return True
    return False


@inner
def _take_out(state, places, rules, v):  # type: ignore[no-untyped-def]
    """List the others in order; return the place of ``v`` and the range it may move in."""
    order = state.order
    d = len(order)
    low, high, here, count = 0, d - 1, -1, 0
    for j in range(d):
        w = order[j]
        if w == v:
            here = j
            continue
        places.others[count] = w
        count += 1
    if len(rules.required) > 0:
        for j in range(d - 1):
            w = places.others[j]
            if _required(rules, w, v):
                low = j + 1
            if high == d - 1 and _required(rules, v, w):
                high = j
    return here, low, high


@inner
def _score_with(score, forest, scratch, w, places, rules, v, present):  # type: ignore[no-untyped-def]
    """Score ``w`` after the variables inside, with ``v`` among them or not."""
    places.inside[v] = present
    code, node = trace(score, forest, scratch, w, places.inside, rules)
    places.inside[v] = 0
    return code, forest.shrunk_score[node]


@inner
def _weigh_places(score, forest, scratch, state, places, rules, v, here):  # type: ignore[no-untyped-def]
    """Fill ``own[j]``, the score of ``v`` at place ``j``, and ``difference[j]``.

    The latter is what the ``j``-th other variable gains when ``v`` comes after it.
    """
    d = len(state.order)
    inside = places.inside
    inside[:] = 0
    stale = True
    for j in range(d):
        if stale:
            code, node = trace(score, forest, scratch, v, inside, rules)
            if code != DONE:
                return code
            places.own[j] = forest.shrunk_score[node]
            places.stamp[0] += 1
            for i in range(scratch.sizes[1]):
                places.wanted[scratch.skipped[i]] = places.stamp[0]
        else:
            places.own[j] = places.own[j - 1]
        if j == d - 1:
            break
        w = places.others[j]
        stale = places.wanted[w] == places.stamp[0]
        places.difference[j] = 0.0
        if j < here:
            if _test(state.skipped, w, v):
                code, along = _score_with(score, forest, scratch, w, places, rules, v, 1)
                if code != DONE:
                    return code
                places.difference[j] = state.scores[w] - along
        elif _test(state.grown, w, v) and not _required(rules, v, w):
            code, without = _score_with(score, forest, scratch, w, places, rules, v, 0)
            if code != DONE:
                return code
            places.difference[j] = without - state.scores[w]
        inside[w] = 1
    return DONE


@inner
def _move(score, forest, scratch, state, places, rules, v, here, target):  # type: ignore[no-untyped-def]
    """Put ``v`` at place ``target`` and trace again what that changes.

    Every trace needed here was made while the places were weighed, so it needs no more room.
    """
    inside = places.inside
    inside[:] = 0
    for j in range(target):
        inside[places.others[j]] = 1
    code, node = trace(score, forest, scratch, v, inside, rules)
    if code != DONE:
        return code
    _remember(state, scratch, v, forest.shrunk_score[node])
    for j in range(min(here, target)):
        inside[places.others[j]] = 1
    for j in range(min(here, target), len(state.order) - 1):
        inside[places.others[j]] = 0
    inside[v] = target < here
    for j in range(min(here, target), max(here, target)):
        w = places.others[j]
        changed = _test(state.skipped, w, v) if target < here else _test(state.grown, w, v)
        if changed:
            code, node = trace(score, forest, scratch, w, inside, rules)
            if code != DONE:
                return code
            _remember(state, scratch, w, forest.shrunk_score[node])
        inside[w] = 1
    for j in range(target):
        state.order[j] = places.others[j]
    state.order[target] = v
    for j in range(target, len(state.order) - 1):
        state.order[j + 1] = places.others[j]
    return DONE


@kernel
def improve(score, forest, scratch, state, places, rules, v, tolerance):  # type: ignore[no-untyped-def]
    """Move ``v`` to its best place; return a code and the gain (0 if it stays).

    Called again after more room was made it does the same: the order changes only at the end.
    """
    here, low, high = _take_out(state, places, rules, v)
    code = _weigh_places(score, forest, scratch, state, places, rules, v, here)
    if code != DONE:
        return code, 0.0
    d = len(state.order)
    running = 0.0
    for j in range(d):
        places.own[j] += running
        if j < d - 1:
            running += places.difference[j]
    # Places that are equally good differ by rounding only: the tolerance keeps the choice the same
    # on every machine.
    best = here
    best_value = places.own[here]
    for j in range(low, high + 1):
        if places.own[j] > best_value + tolerance:
            best_value = places.own[j]
            best = j
    if best == here:
        return DONE, 0.0
    gain = best_value - places.own[here]
    code = _move(score, forest, scratch, state, places, rules, v, here, best)
    return code, gain


@kernel
def parents_in_order(score, forest, scratch, state, places, rules, child):  # type: ignore[no-untyped-def]
    """Return the parents of ``child`` in the current order."""
    places.inside[:] = 0
    for j in range(len(state.order)):
        if state.order[j] == child:
            break
        places.inside[state.order[j]] = 1
    code, node = trace(score, forest, scratch, child, places.inside, rules)
    return code, parents_at(forest, scratch, node, scratch.sizes[0])
