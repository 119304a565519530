"""Many walks through the order graph of a score table at once."""

from __future__ import annotations

import numpy as np

from isthmus.numerics.jit import inner, kernel

_ONE = np.uint64(1)


@inner
def _first_fit(sets, begin, end, outside):  # type: ignore[no-untyped-def]
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


@kernel
def take(starts, sets, scores, outside, actions, rewards):  # type: ignore[no-untyped-def]
    """Add a node to the set of each walk; the reward is the best score of its listed parents."""
    for e in range(actions.size):
        v = actions[e]
        line = _first_fit(sets, starts[v], starts[v + 1], outside[e])
        rewards[e] = scores[line] if line >= 0 else -1e15
        outside[e, v >> 6] &= ~(_ONE << np.uint64(v & 63))


@kernel
def allowed(needed, outside, out):  # type: ignore[no-untyped-def]
    """Mark for each walk the nodes that are not in its set and whose required parents are."""
    for e in range(outside.shape[0]):
        for v in range(needed.shape[0]):
            free = (outside[e, v >> 6] >> np.uint64(v & 63)) & _ONE == _ONE
            for w in range(outside.shape[1]):
                if needed[v, w] & outside[e, w]:
                    free = False
            out[e, v] = free
