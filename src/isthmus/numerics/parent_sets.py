"""Compiled kernel that lists the useful parent sets of one child, level by level.

A level holds the *open* sets of one size: those of which a superset may still be useful. A set is
looked at when all its subsets that are smaller by one are open; it is listed when it scores more
than every subset (less a slack), and stays open unless a bound shows that no superset can.

The bound: for every superset S of a set P,

``score(S) <= top[|P|] - sum of weight[p] - scale * product of levels[p] - factor * support(P)``

with ``support`` a second score through ``numerics.abi``; the scores say what they know of
these numbers (``isthmus.objectives.ceiling``). What of the bound does not need the support is
tested before the set is scored.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isthmus.numerics.abi import evaluate
from isthmus.numerics.jit import inner, kernel

DONE, NEEDS_ROOM, FAILED = 0, 1, 2
_SAFE = 1e-9  # part of a bound that rounding may have eaten


class Bound(NamedTuple):
    """What is known of supersets; see the module's docstring."""

    top: NDArray[np.float64]  # by size, base included
    weight: NDArray[np.float64]
    scale: float
    levels: NDArray[np.float64]
    factor: float
    support: tuple[int, int]
    gain: NDArray[np.float64]  # [p, j]: most that j can add once p is there, [j, j]: ever; or empty


class Level(NamedTuple):
    """Open sets of one size."""

    members: NDArray[np.int32]  # positions in the list of candidates, ascending
    keys: NDArray[np.uint64]
    best: NDArray[np.float64]  # best score of the set and its subsets
    added: NDArray[np.float64]  # sum of the weights
    product: NDArray[np.float64]  # product of the levels
    slots: NDArray[np.int32]  # hash table of the lines
    count: NDArray[np.int64]  # [0] lines in use, [1] families scored, [2] next line to expand


class Listed(NamedTuple):
    """Useful sets found so far."""

    members: NDArray[np.int32]  # -1 after the last
    scores: NDArray[np.float64]
    count: NDArray[np.int64]  # [0] lines in use


def new_level(size: int, room: int) -> Level:
    """Make room for open sets of one size."""
    return Level(
        np.empty((room, size), np.int32),
        np.empty(room, np.uint64),
        np.empty(room),
        np.empty(room),
        np.empty(room),
        np.empty(0, np.int32),
        np.zeros(3, np.int64),
    )


def new_listed(width: int, room: int) -> Listed:
    """Make room for useful sets."""
    return Listed(np.full((room, width), -1, np.int32), np.empty(room), np.zeros(1, np.int64))


def grow_level(level: Level, room: int) -> Level:
    """Copy to a larger room."""
    n = int(level.count[0])
    grown = new_level(level.members.shape[1], room)
    for old, new in zip(level[:5], grown[:5], strict=True):
        new[:n] = old[:n]
    return grown._replace(count=level.count)


def grow_listed(listed: Listed, room: int, width: int) -> Listed:
    """Copy to a larger room."""
    n, old = int(listed.count[0]), listed.members.shape[1]
    grown = new_listed(max(width, old), room)
    grown.members[:n, :old] = listed.members[:n]
    grown.scores[:n] = listed.scores[:n]
    return grown._replace(count=listed.count)


def index_level(level: Level) -> Level:
    """Give a finished level its hash table."""
    n = int(level.count[0])
    slots = np.full(1 << max(4, (3 * n).bit_length()), -1, np.int32)
    _fill_slots(level.keys, n, slots)
    return level._replace(slots=slots)


@kernel
def _fill_slots(keys, n, slots):  # type: ignore[no-untyped-def]
    mask = np.uint64(slots.size - 1)
    for i in range(n):
        slot = keys[i] & mask
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = i


@inner
def _find(level, key, row, skipped, last):  # type: ignore[no-untyped-def]
    """Line of the set ``row + last`` without ``row[skipped]``, -1 if it is not open."""
    mask = np.uint64(level.slots.size - 1)
    slot = key & mask
    k = row.size
    while True:
        line = level.slots[slot]
        if line < 0:
            return -1
        if level.keys[line] == key:
            # Equal keys of different sets are unlikely, not impossible.
            same = level.members[line, k - 1] == last
            for t in range(k - 1):
                if level.members[line, t] != row[t if t < skipped else t + 1]:
                    same = False
            if same:
                return line
        slot = (slot + np.uint64(1)) & mask


@inner
def _gain(bound, row, k, names, j):  # type: ignore[no-untyped-def]
    """Most that the candidate can add to the likelihood of any superset of the row."""
    found = bound.gain[j, j]
    for t in range(k):
        found = min(found, bound.gain[names[row[t]], j])
    return found


@kernel
def start_level(score, child, base, bound, level, listed):  # type: ignore[no-untyped-def]
    """Score the smallest set; it is always listed."""
    out = np.empty(1)
    if evaluate(score, child, base, base.size, base, 0, out) != 0:
        return FAILED
    listed.scores[0] = out[0]
    listed.count[0] = 1
    level.keys[0] = np.uint64(0)
    level.best[0] = out[0]
    level.added[0] = 0.0
    level.product[0] = 1.0
    for p in base:
        level.added[0] += bound.weight[p]
        level.product[0] *= bound.levels[p]
    level.count[0] = 1
    level.count[1] = 1
    return DONE


@kernel
def expand(score, child, base, names, marks, bound, slack, quota, last, old, new, listed):  # type: ignore[no-untyped-def]
    """Look at the sets that are larger by one; go on where the last call stopped.

    Parameters
    ----------
    score, child
        What is asked.
    base
        Parents that are always there.
    names, marks
        The other candidates, and a random word for each: the key of a set is their sum modulo 2.
    slack
        Sets that score up to this much less than a subset are listed too.
    quota
        Stop after about so many scores.
    last
        Whether this is the last level, so that nothing need stay open.
    """
    k = old.members.shape[1]
    many = names.size
    parents = np.empty(base.size + k, np.int64)
    parents[: base.size] = base
    picked = np.empty(many, np.int64)
    places = np.empty(many, np.int32)
    bests = np.empty(many)
    sums = np.empty(many)
    products = np.empty(many)
    values = np.empty(many + 1)
    supports = np.zeros(many + 1)
    size = base.size + k + 1
    top = bound.top[size]
    stop = new.count[1] + quota
    while old.count[2] < old.count[0]:
        i = old.count[2]
        if listed.count[0] + many > listed.scores.size:
            return NEEDS_ROOM
        if not last and new.count[0] + many > new.keys.size:
            return NEEDS_ROOM
        if new.count[1] >= stop:
            return DONE
        row = old.members[i]
        found = 0
        for c in range(row[k - 1] + 1 if k > 0 else 0, many):
            j = names[c]
            best = old.best[i]
            key = old.keys[i] ^ marks[c]
            closed = False
            for t in range(k):
                line = _find(old, key ^ marks[row[t]], row, t, c)
                if line < 0:
                    closed = True
                    break
                best = max(best, old.best[line])
            if closed:
                continue
            added = old.added[i] + bound.weight[j]
            product = old.product[i] * bound.levels[j]
            limit = top - added - bound.scale * product
            if limit + _SAFE * (1.0 + abs(limit)) <= best - slack:
                continue
            if bound.gain.size > 0:
                cost = bound.scale * (product - old.product[i])
                if _gain(bound, row, k, names, j) * (1.0 + _SAFE) + _SAFE <= cost - slack:
                    continue
            picked[found] = j
            places[found] = c
            bests[found] = best
            sums[found] = added
            products[found] = product
            found += 1
        old.count[2] += 1
        if found == 0:
            continue
        for t in range(k):
            parents[base.size + t] = names[row[t]]
        if evaluate(score, child, parents, base.size + k, picked, found, values) != 0:
            return FAILED
        new.count[1] += found
        if bound.factor > 0.0 and not last:
            if evaluate(bound.support, child, parents, base.size + k, picked, found, supports):
                return FAILED
        for f in range(found):
            value, best = values[1 + f], bests[f]
            if value > best - slack:
                line = listed.count[0]
                for t in range(k):
                    listed.members[line, t] = row[t]
                listed.members[line, k] = places[f]
                listed.scores[line] = value
                listed.count[0] += 1
                best = max(best, value)
            if last:
                continue
            limit = top - sums[f] - bound.scale * products[f] - bound.factor * supports[1 + f]
            if limit + _SAFE * (1.0 + abs(limit)) <= best - slack:
                continue
            line = new.count[0]
            for t in range(k):
                new.members[line, t] = row[t]
            new.members[line, k] = places[f]
            new.keys[line] = old.keys[i] ^ marks[places[f]]
            new.best[line] = best
            new.added[line] = sums[f]
            new.product[line] = products[f]
            new.count[0] += 1
    return DONE
