"""Parent sets of one child in the order in which they look good, for as long as there is time.

Independence selection (Scanagatta, de Campos, Corani and Zaffalon 2015): if what j tells of the
child did not depend on the parents P, the likelihood of P + j would be that of P plus what j gains
alone, and the penalty is known. The set with the best such guess is scored next; its own
score is the ground of the next guesses. Some extensions are scored at a time, which costs
little more than one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isthmus.numerics.abi import evaluate
from isthmus.numerics.heap import pop, push
from isthmus.numerics.jit import inner, kernel

MORE, EMPTY, FULL, FAILED = 0, 1, 2, 3
BATCH = 32
_NOISE = 2e-10


class Pool(NamedTuple):
    """Sets scored so far, and which of them to extend next."""

    members: NDArray[np.int32]  # positions in the list of candidates, ascending; -1 after the last
    sizes: NDArray[np.int32]
    keys: NDArray[np.uint64]
    scores: NDArray[np.float64]
    best: NDArray[np.float64]  # best score of the set and of its subsets seen
    products: NDArray[np.float64]
    useful: NDArray[np.bool_]
    next: NDArray[np.int32]  # extensions tried
    slots: NDArray[np.int32]
    heap_keys: NDArray[np.float64]
    heap_sets: NDArray[np.int32]
    counters: NDArray[np.int64]  # sets, heap, scored


def new_pool(room: int, width: int) -> Pool:
    """Make room for sets of at most ``width`` members."""
    return Pool(
        np.full((room, width), -1, np.int32),
        np.zeros(room, np.int32),
        np.empty(room, np.uint64),
        np.empty(room),
        np.empty(room),
        np.ones(room),
        np.zeros(room, np.bool_),
        np.zeros(room, np.int32),
        np.full(1 << (3 * room).bit_length(), -1, np.int32),
        np.empty(room + 1),
        np.empty(room + 1, np.int32),
        np.zeros(3, np.int64),
    )


def grow_pool(old: Pool) -> Pool:
    """Copy to twice the room."""
    n, h = int(old.counters[0]), int(old.counters[1])
    new = new_pool(2 * len(old.keys), old.members.shape[1])._replace(counters=old.counters)
    for name in ("members", "sizes", "keys", "scores", "best", "products", "useful", "next"):
        getattr(new, name)[:n] = getattr(old, name)[:n]
    new.heap_keys[:h] = old.heap_keys[:h]
    new.heap_sets[:h] = old.heap_sets[:h]
    _rehash(new)
    return new


@kernel
def _rehash(pool):  # type: ignore[no-untyped-def]
    for i in range(pool.counters[0]):
        pool.slots[_slot(pool, pool.keys[i])] = i


@inner
def _slot(pool, key):  # type: ignore[no-untyped-def]
    mask = np.uint64(pool.slots.size - 1)
    slot = key & mask
    while pool.slots[slot] >= 0 and pool.keys[pool.slots[slot]] != key:
        slot = (slot + np.uint64(1)) & mask
    return slot


@inner
def _push(pool, key, at):  # type: ignore[no-untyped-def]
    push(pool.heap_keys, pool.heap_sets, pool.counters[1], key, at)
    pool.counters[1] += 1


@inner
def _pop(pool):  # type: ignore[no-untyped-def]
    top = pop(pool.heap_keys, pool.heap_sets, pool.counters[1])
    pool.counters[1] -= 1
    return top


@inner
def _guess(pool, at, gains, levels, scale):  # type: ignore[no-untyped-def]
    """Score to hope for from the next extension of a set."""
    c = pool.next[at]
    if c >= gains.size:
        return -np.inf
    return pool.scores[at] + gains[c] - scale * pool.products[at] * (levels[c] - 1.0)


@inner
def _add(pool, at, c, value, marks, levels):  # type: ignore[no-untyped-def]
    """Put the set ``at`` with one more candidate into the pool; return its line."""
    k = pool.sizes[at]
    new = pool.counters[0]
    pool.counters[0] += 1
    t = k
    while t > 0 and pool.members[at, t - 1] > c:
        pool.members[new, t] = pool.members[at, t - 1]
        t -= 1
    pool.members[new, t] = c
    for u in range(t):
        pool.members[new, u] = pool.members[at, u]
    key = pool.keys[at] ^ marks[c]
    pool.keys[new] = key
    pool.slots[_slot(pool, key)] = new
    pool.sizes[new] = k + 1
    pool.scores[new] = value
    pool.products[new] = pool.products[at] * levels[c]
    best = -np.inf
    for u in range(k + 1):
        line = pool.slots[_slot(pool, key ^ marks[pool.members[new, u]])]
        if line >= 0:
            best = max(best, pool.best[line])
    pool.useful[new] = value > best + _NOISE
    pool.best[new] = max(best, value)
    return new


@kernel
def grow(score, child, base, names, marks, gains, levels, scale, open_, pool):  # type: ignore[no-untyped-def]
    """Add the best of the open candidates until none gains; return a code and the set's line.

    What is scored on the way is kept, so that the next call with other candidates open costs
    little. With strong dependence among the candidates, where guesses by what each gains alone
    fail, this is what finds large sets.
    """
    width = pool.members.shape[1]
    values = np.empty(names.size + 1)
    picked = np.empty(names.size, np.int64)
    places = np.empty(names.size, np.int32)
    parents = np.empty(base.size + width, np.int64)
    parents[: base.size] = base
    at = np.int64(0)
    while pool.sizes[at] < width:
        if pool.counters[0] + names.size > pool.keys.size:
            return FULL, at
        k = pool.sizes[at]
        found = 0
        best, best_score = np.int64(-1), pool.scores[at] + _NOISE
        for c in range(open_.size):
            inside = not open_[c]
            for t in range(k):
                inside = inside or pool.members[at, t] == c
            if inside:
                continue
            line = pool.slots[_slot(pool, pool.keys[at] ^ marks[c])]
            if line >= 0:
                if pool.scores[line] > best_score:
                    best, best_score = np.int64(line), pool.scores[line]
                continue
            picked[found] = names[c]
            places[found] = c
            found += 1
        if found > 0:
            for t in range(k):
                parents[base.size + t] = names[pool.members[at, t]]
            if evaluate(score, child, parents, base.size + k, picked, found, values) != 0:
                return FAILED, at
            pool.counters[2] += found
            for f in range(found):
                new = _add(pool, at, places[f], values[1 + f], marks, levels)
                if pool.scores[new] > best_score:
                    best, best_score = np.int64(new), pool.scores[new]
                if k + 1 < width and pool.useful[new]:
                    _push(pool, _guess(pool, new, gains, levels, scale), new)
        if best < 0:
            break
        at = best
    return MORE, at


@kernel
def improve(score, child, base, names, marks, gains, levels, scale, quota, pool):  # type: ignore[no-untyped-def]
    """Score some sets; the first call begins with the smallest set.

    Parameters
    ----------
    names, marks, levels
        Candidates, the largest gain first, with a random word and the number of levels of each.
    gains
        What each gains alone, penalty not counted.
    scale
        Penalty for one configuration of the parents.
    """
    many, width = names.size, pool.members.shape[1]
    fits = pool.keys.size - BATCH
    values = np.empty(BATCH + 1)
    picked = np.empty(BATCH, np.int64)
    places = np.empty(BATCH, np.int32)
    parents = np.empty(base.size + width, np.int64)
    parents[: base.size] = base
    if pool.counters[0] == 0:
        if evaluate(score, child, base, base.size, base, 0, values) != 0:
            return FAILED
        pool.keys[0] = np.uint64(0)
        pool.scores[0] = pool.best[0] = values[0]
        pool.useful[0] = True
        pool.counters[0] = 1
        pool.slots[_slot(pool, np.uint64(0))] = 0
        _push(pool, np.inf, 0)
    stop = pool.counters[2] + quota
    while pool.counters[2] < stop:
        if pool.counters[1] == 0:
            return EMPTY
        if pool.counters[0] > fits or pool.counters[1] > fits:
            return FULL
        at = _pop(pool)
        k = pool.sizes[at]
        found = 0
        while found < BATCH and pool.next[at] < many:
            c = pool.next[at]
            pool.next[at] += 1
            inside = False
            for t in range(k):
                inside = inside or pool.members[at, t] == c
            if inside or pool.slots[_slot(pool, pool.keys[at] ^ marks[c])] >= 0:
                continue
            picked[found] = names[c]
            places[found] = c
            found += 1
        if pool.next[at] < many:
            _push(pool, _guess(pool, at, gains, levels, scale), at)
        if found == 0:
            continue
        for t in range(k):
            parents[base.size + t] = names[pool.members[at, t]]
        if evaluate(score, child, parents, base.size + k, picked, found, values) != 0:
            return FAILED
        pool.counters[2] += found
        for f in range(found):
            new = _add(pool, at, places[f], values[1 + f], marks, levels)
            # What a subset beats is seldom the beginning of something better.
            if k + 1 < width and pool.useful[new]:
                _push(pool, _guess(pool, new, gains, levels, scale), new)
    return MORE


@kernel
def without_better_subset(sets):  # type: ignore[no-untyped-def]
    """Mark the lines, best first, of which no earlier marked line is a subset."""
    n, words = sets.shape
    kept = np.empty(n, np.int64)
    count = 0
    marked = np.zeros(n, np.bool_)
    for i in range(n):
        useful = True
        for j in range(count):
            inside = True
            for w in range(words):
                if sets[kept[j], w] & ~sets[i, w]:
                    inside = False
                    break
            if inside:
                useful = False
                break
        if useful:
            marked[i] = True
            kept[count] = i
            count += 1
    return marked
