"""Compiled kernel that lists the useful parent sets of one child, level by level.

A level holds the *open* sets of one size: those of which a superset may still be useful. A set is
looked at when all its subsets that are smaller by one are open; it is listed when it scores more
than every subset (less a slack), and stays open unless a bound shows that no superset can.

The bound: for every superset S of a set P,

``score(S) <= top[|P|] - sum of weight[p] - scale * product of levels[p] - factor * support(P)``

with ``support`` a second score through ``numerics.abi``; the scores say what they know of
these numbers (``isthmus.objectives.score_bound``). What of the bound does not need the support is
tested before the set is scored.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isthmus.numerics.abi import evaluate
from isthmus.numerics.jit import inner, kernel

DONE, NEEDS_ROOM, FAILED = 0, 1, 2
_NOISE = 2e-10  # gains below are rounding: a constant has the same score whatever its parents
_SAFE = 1e-9  # part of a bound that rounding may have eaten


class Bound(NamedTuple):
    """What is known of supersets; see the module's docstring."""

    top: NDArray[np.float64]  # by size, base included
    weight: NDArray[np.float64]
    scale: float
    levels: NDArray[np.float64]
    factor: float
    support: tuple[int, int]
    gain: NDArray[np.float64]  # most that a member can add to the likelihood; see the ceiling


class Level(NamedTuple):
    """Open sets of one size."""

    members: NDArray[np.int32]  # positions in the list of candidates, ascending
    keys: NDArray[np.uint64]
    best: NDArray[np.float64]  # best score of the set and its subsets
    added: NDArray[np.float64]  # sum of the weights
    product: NDArray[np.float64]  # product of the levels
    slots: NDArray[np.int32]  # hash table of the lines
    counters: NDArray[np.int64]  # [0] lines in use, [1] families scored, [2] next line to expand


class Listed(NamedTuple):
    """Useful sets found so far."""

    members: NDArray[np.int32]  # -1 after the last
    scores: NDArray[np.float64]
    counters: NDArray[np.int64]  # [0] lines in use


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
    n = int(level.counters[0])
    grown = new_level(level.members.shape[1], room)
    grown.members[:n] = level.members[:n]
    grown.keys[:n] = level.keys[:n]
    grown.best[:n] = level.best[:n]
    grown.added[:n] = level.added[:n]
    grown.product[:n] = level.product[:n]
    return grown._replace(counters=level.counters)


def grow_listed(listed: Listed, room: int, width: int) -> Listed:
    """Copy to a larger room."""
    n, old = int(listed.counters[0]), listed.members.shape[1]
    grown = new_listed(max(width, old), room)
    grown.members[:n, :old] = listed.members[:n]
    grown.scores[:n] = listed.scores[:n]
    return grown._replace(counters=listed.counters)


def index_level(level: Level) -> Level:
    """Give a finished level its hash table."""
    n = int(level.counters[0])
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
def _some_member_pays_too_little(bound, members, count, product, slack):  # type: ignore[no-untyped-def]
    """Whether a member can never earn what it costs, in this set or a superset.

    Leaving it out loses at most its entropy given one or two others and saves at least its part
    of the penalty here.
    """
    gain = bound.gain
    pairs = gain.shape[1] > 1
    for i in range(count):
        v = members[i]
        saved = bound.scale * product * (1.0 - 1.0 / bound.levels[v]) - slack
        enough = (saved - _SAFE) / (1.0 + _SAFE)
        if gain[v, v if pairs else 0, v] <= enough:
            return True
        for t in range(count):
            p = members[t]
            if p == v:
                continue
            if not pairs:
                if gain[p, 0, v] <= enough:
                    return True
                continue
            for u in range(t + 1):
                q = members[u]
                if q != v and gain[p, q, v] <= enough:
                    return True
    return False


@kernel
def start_level(score, child, base, bound, level, listed):  # type: ignore[no-untyped-def]
    """Score the smallest set; it is always listed."""
    out = np.empty(1)
    if evaluate(score, child, base, base.size, base, 0, out) != 0:
        return FAILED
    listed.scores[0] = out[0]
    listed.counters[0] = 1
    level.keys[0] = np.uint64(0)
    level.best[0] = out[0]
    level.added[0] = 0.0
    level.product[0] = 1.0
    for p in base:
        level.added[0] += bound.weight[p]
        level.product[0] *= bound.levels[p]
    level.counters[0] = 1
    level.counters[1] = 1
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
    members = np.empty(k + 1, np.int64)
    picked = np.empty(many, np.int64)
    places = np.empty(many, np.int32)
    bests = np.empty(many)
    sums = np.empty(many)
    products = np.empty(many)
    values = np.empty(many + 1)
    supports = np.zeros(many + 1)
    size = base.size + k + 1
    top = bound.top[size]
    stop = new.counters[1] + quota
    while old.counters[2] < old.counters[0]:
        i = old.counters[2]
        if listed.counters[0] + many > listed.scores.size:
            return NEEDS_ROOM
        if not last and new.counters[0] + many > new.keys.size:
            return NEEDS_ROOM
        if new.counters[1] >= stop:
            return DONE
        row = old.members[i]
        for t in range(k):
            members[t] = names[row[t]]
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
                members[k] = j
                if _some_member_pays_too_little(bound, members, k + 1, product, slack):
                    continue
            picked[found] = j
            places[found] = c
            bests[found] = best
            sums[found] = added
            products[found] = product
            found += 1
        old.counters[2] += 1
        if found == 0:
            continue
        parents[base.size :] = members[:k]
        if evaluate(score, child, parents, base.size + k, picked, found, values) != 0:
            return FAILED
        new.counters[1] += found
        if bound.factor > 0.0 and not last:
            if evaluate(bound.support, child, parents, base.size + k, picked, found, supports):
                return FAILED
        for f in range(found):
            value, best = values[1 + f], bests[f]
            if value > best - slack + _NOISE:
                line = listed.counters[0]
                for t in range(k):
                    listed.members[line, t] = row[t]
                listed.members[line, k] = places[f]
                listed.scores[line] = value
                listed.counters[0] += 1
                best = max(best, value)
            if last:
                continue
            limit = top - sums[f] - bound.scale * products[f] - bound.factor * supports[1 + f]
            if limit + _SAFE * (1.0 + abs(limit)) <= best - slack:
                continue
            line = new.counters[0]
            for t in range(k):
                new.members[line, t] = row[t]
            new.members[line, k] = places[f]
            new.keys[line] = old.keys[i] ^ marks[places[f]]
            new.best[line] = best
            new.added[line] = sums[f]
            new.product[line] = products[f]
            new.counters[0] += 1
    return DONE
