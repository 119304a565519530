"""Find clusters that a fractional choice of parent sets violates.

In a graph without cycles some node of every set C of nodes has no parent in C. So for each C the
chosen parent sets of its nodes that avoid C sum to one at least (Jaakkola and others 2010). Sets
that break this are looked for by growing them from each pair of nodes.
"""

from __future__ import annotations

import numpy as np

from isthmus.numerics.jit import inner, kernel


@inner
def _avoids(sets, line, inside):  # type: ignore[no-untyped-def]
    for w in range(inside.size):
        if sets[line, w] & inside[w]:
            return False
    return True


@inner
def _has(sets, line, v):  # type: ignore[no-untyped-def]
    return (sets[line, v >> 6] >> np.uint64(v & 63)) & np.uint64(1)


@kernel
def violated(starts, sets, amounts, first, second, most, limit):  # type: ignore[no-untyped-def]
    """Clusters, as bit-sets, whose sum is below ``limit``; at most ``most`` of them.

    Parameters
    ----------
    starts, sets
        The parent sets that are chosen in part, by node.
    amounts
        How much each is chosen.
    first, second
        Pairs of nodes to start from.

    Returns
    -------
    found, sums
        The clusters and their sums, in the order in which they were found.
    """
    d = starts.size - 1
    words = sets.shape[1]
    found = np.zeros((most, words), np.uint64)
    sums = np.empty(most)
    count = 0
    inside = np.empty(words, np.uint64)
    best_inside = np.empty(words, np.uint64)
    alive = np.empty(amounts.size, np.bool_)  # of a node inside, avoiding the cluster
    is_in = np.empty(d, np.bool_)
    change = np.empty(d)
    for start in range(first.size):
        inside[:] = np.uint64(0)
        is_in[:] = False
        alive[:] = False
        total = 0.0
        best = limit
        new = first[start]
        size = 0
        while size < d:
            # Take ``new`` in: sets with it no longer avoid the cluster, its own may.
            inside[new >> 6] |= np.uint64(1) << np.uint64(new & 63)
            is_in[new] = True
            size += 1
            for v in range(d):
                if not is_in[v]:
                    continue
                for line in range(starts[v], starts[v + 1]):
                    if v == new:
                        alive[line] = _avoids(sets, line, inside)
                        if alive[line]:
                            total += amounts[line]
                    elif alive[line] and _has(sets, line, new):
                        alive[line] = False
                        total -= amounts[line]
            if size > 1 and total < best - 1e-9:
                best = total
                best_inside[:] = inside
            if size == 1:
                new = second[start]
                continue
            # The next one: it brings its sets that avoid the cluster and spoils those that hold it.
            change[:] = 0.0
            for v in range(d):
                if is_in[v]:
                    for line in range(starts[v], starts[v + 1]):
                        if alive[line]:
                            for u in range(d):
                                if not is_in[u] and _has(sets, line, u):
                                    change[u] -= amounts[line]
                else:
                    for line in range(starts[v], starts[v + 1]):
                        if _avoids(sets, line, inside):
                            change[v] += amounts[line]
            new = -1
            for u in range(d):
                if not is_in[u] and (new < 0 or change[u] < change[new]):
                    new = u
            if new < 0 or (change[new] > 0.0 and total + change[new] >= 2.0):
                break
        if best < limit:
            known = False
            for c in range(count):
                same = True
                for w in range(words):
                    if found[c, w] != best_inside[w]:
                        same = False
                        break
                if same:
                    known = True
                    break
            if not known:
                found[count] = best_inside
                sums[count] = best
                count += 1
                if count == most:
                    break
    return found[:count], sums[:count]
