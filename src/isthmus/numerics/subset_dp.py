"""Dynamic programming over all subsets of the nodes: the plain reference of exact search."""

from __future__ import annotations

import numpy as np

from isthmus.numerics.jit import kernel


@kernel
def fill(starts, masks, scores, values, sinks, begin, end):  # type: ignore[no-untyped-def]
    """Best total and last node of each subset from ``begin`` to ``end``; smaller ones are known."""
    d = starts.size - 1
    for subset in range(begin, end):
        best, sink = -np.inf, -1
        for x in range(d):
            if not subset >> x & 1:
                continue
            before = subset ^ (1 << x)
            rest = values[before]
            if rest + scores[starts[x]] <= best:
                continue
            for line in range(starts[x], starts[x + 1]):
                if masks[line] & ~np.uint64(before) == np.uint64(0):
                    if rest + scores[line] > best:
                        best, sink = rest + scores[line], x
                    break
        values[subset] = best
        sinks[subset] = sink
