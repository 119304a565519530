"""Orders over a score table: the best parents of each node, and climbing by single moves."""

from __future__ import annotations

import numpy as np

from isthmus.numerics.jit import inner, kernel


@inner
def first_fit(sets, begin, end, outside):  # type: ignore[no-untyped-def]
    """First line from ``begin`` whose set has nothing outside; -1 if there is none."""
    words = outside.size
    for line in range(begin, end):
        fits = True
        for w in range(words):
            if sets[line, w] & outside[w]:
                fits = False
                break
        if fits:
            return line
    return -1


@inner
def _flip(outside, v):  # type: ignore[no-untyped-def]
    outside[v >> 6] ^= np.uint64(1) << np.uint64(v & 63)


@kernel
def settle(starts, sets, scores, order, lines):  # type: ignore[no-untyped-def]
    """Give each node its best line among those before it; return the total, perhaps -inf."""
    outside = np.full(sets.shape[1], np.uint64(0xFFFFFFFFFFFFFFFF))
    total = 0.0
    for v in order:
        line = first_fit(sets, starts[v], starts[v + 1], outside)
        lines[v] = line
        total += scores[line] if line >= 0 else -np.inf
        _flip(outside, v)
    return total


@inner
def _value(starts, sets, scores, v, outside):  # type: ignore[no-untyped-def]
    line = first_fit(sets, starts[v], starts[v + 1], outside)
    # Finite, so that a move that takes one fault away is seen as a gain.
    return scores[line] if line >= 0 else -1e15


@kernel
def climb(starts, sets, scores, order, queue):  # type: ignore[no-untyped-def]
    """Move each node of the queue to its best place; return the sum of the gains."""
    d = order.size
    words = sets.shape[1]
    outside = np.empty(words, np.uint64)
    own = np.empty(d)
    for i in range(words):
        outside[i] = np.uint64(0xFFFFFFFFFFFFFFFF)
    for i in range(d):
        own[i] = _value(starts, sets, scores, order[i], outside)
        _flip(outside, order[i])
    gained = 0.0
    for v in queue:
        place = 0
        while order[place] != v:
            place += 1
        best_gain, best_place = 0.0, place
        # To the left: nodes passed lose v as a possible parent no longer, they win it.
        gain = 0.0
        outside[:] = np.uint64(0xFFFFFFFFFFFFFFFF)
        for i in range(place):
            _flip(outside, order[i])
        for i in range(place - 1, -1, -1):
            u = order[i]
            _flip(outside, u)
            value = _value(starts, sets, scores, v, outside)
            _flip(outside, v)
            gain += _value(starts, sets, scores, u, outside) - own[i]
            _flip(outside, v)
            if gain + value - own[place] > best_gain + 1e-9:
                best_gain, best_place = gain + value - own[place], i
        gain = 0.0
        outside[:] = np.uint64(0xFFFFFFFFFFFFFFFF)
        for i in range(place):
            _flip(outside, order[i])
        for i in range(place + 1, d):
            u = order[i]
            gain += _value(starts, sets, scores, u, outside) - own[i]
            _flip(outside, u)
            value = _value(starts, sets, scores, v, outside)
            if gain + value - own[place] > best_gain + 1e-9:
                best_gain, best_place = gain + value - own[place], i
        if best_place == place:
            continue
        gained += best_gain
        step = 1 if best_place > place else -1
        for i in range(place, best_place, step):
            order[i] = order[i + step]
        order[best_place] = v
        low, high = min(place, best_place), max(place, best_place)
        outside[:] = np.uint64(0xFFFFFFFFFFFFFFFF)
        for i in range(d):
            if i > high:
                break
            if i >= low:
                own[i] = _value(starts, sets, scores, order[i], outside)
            _flip(outside, order[i])
    return gained
