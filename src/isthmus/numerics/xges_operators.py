"""Operators on equivalence classes: which are valid, what they gain, what they make, compiled.

With ``P`` the parents and ``N`` the neighbours of the target y:

- Delete(x, y, C): C a clique in ``N`` whose nodes are adjacent to x; always valid.
- Insert(x, y, S): x not adjacent to y; S a clique in ``N`` that holds all of ``N`` adjacent to x;
  every semi-directed path from y to x goes through S (Chickering, JMLR 2002).
- Turn(x, y, S) makes x -> y of y -> x or x - y (Hauser and Bühlmann, JMLR 2012).

Insertions and turns both add x to a parent set ``P + S`` of y, so one row of scores holds all of
them. A turn also takes y from the parents of x. Where no deletion gains, that part of a turn does
not either, so only the gaining entries of rows matter: nothing else is looked at.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isthmus.numerics.jit import inner
from isthmus.numerics.xges_graph import (
    ADJACENT,
    AGE,
    ASKED,
    CHILDREN,
    CHOSEN,
    INTS,
    LAYERS,
    NEIGHBOURS,
    PARENTS,
    SAVED,
    WORK,
    ZERO,
    connects,
    copy_rows,
    drop,
    has,
    list_cliques,
    new_bits,
    orient,
    put,
    reach,
)
from isthmus.numerics.xges_rows import (
    DONE,
    RENEWALS,
    TOLERANCE,
    find,
    key_of,
    mix,
    row_of,
    score_of,
)

DELETE, TURN, INSERT = 0, 1, 2

STALE, BLOCKED = 0, 2
"""Flags of a target, for its deletions and (one further) for its turns and insertions.

Blocked: a better operator than the one kept is not possible now but may be after another change.
"""

STEPS, BAN_A, BAN_B, STAMP, FORCED, LISTED_TRIALS = 0, 1, 2, 3, 4, 5
"""Numbers that go with a class: steps made, a pair kept apart, a number for the class itself, the
target of a deletion to make first, and how many deletions are listed (-1: none are to be).
"""

_BASE, _NEAR, _FRONTIER, _FOUND, _OTHER, _WITHIN, _REACHED = 0, 1, 2, 3, 4, 5, 6


class Place(NamedTuple):
    """An equivalence class, the best operators known there, and the same of a class saved."""

    bits: NDArray[np.uint64]  # see xges_graph
    ints: NDArray[np.int64]  # room to work in
    gain: NDArray[np.float64]  # (6, node): of the best operator with this target; then as saved
    other: NDArray[np.int64]  # (6, node): its x
    flags: NDArray[np.uint8]  # (8, node)
    numbers: NDArray[np.int64]  # (2, 6)
    total: NDArray[np.float64]  # (2,)
    rest: NDArray[np.float64]  # (node,): what a turn of this node also brings
    trials: NDArray[np.int64]  # (2, most): x and y of deletions listed
    worth: NDArray[np.float64]  # (most,): their gains
    sets: NDArray[np.uint64]  # (most, word)


def new_place(d: int) -> Place:
    """Start without edges."""
    most = 8 * d + 256
    place = Place(
        bits=new_bits(d),
        ints=np.zeros((INTS, d), np.int64),
        gain=np.full((6, d), -np.inf),
        other=np.full((6, d), -1, np.int64),
        flags=np.zeros((8, d), np.uint8),
        numbers=np.full((2, 6), -1, np.int64),
        total=np.full(2, -np.inf),
        rest=np.zeros(d),
        trials=np.zeros((2, most), np.int64),
        worth=np.zeros(most),
        sets=np.zeros((most, (d + 63) // 64), np.uint64),
    )
    place.flags[STALE : STALE + 2] = 1
    place.numbers[0, STEPS] = place.numbers[0, STAMP] = 0
    return place


def save(place: Place, source: int = 0, target: int = 1) -> None:
    """Save the class in place with its operators; with 1 and 0 go back to the one saved."""
    rows = (CHOSEN + 3) * place.gain.shape[1]
    bits = place.bits[SAVED * place.gain.shape[1] :]
    halves = place.bits[:rows], bits[:rows]
    halves[target][:] = halves[source]
    for array, lines in ((place.gain, 3), (place.other, 3), (place.flags, 4), (place.numbers, 1)):
        array[lines * target : lines * (target + 1)] = array[lines * source : lines * (source + 1)]
    place.total[target] = place.total[source]


def force(place: Place, trial: int) -> None:
    """Have a deletion of the list made next, whatever it costs, and its ends kept apart."""
    x, y = place.trials[:, trial]
    place.gain[DELETE, y] = place.worth[trial]
    place.other[DELETE, y] = x
    place.bits[(CHOSEN + DELETE) * place.gain.shape[1] + y] = place.sets[trial]
    place.numbers[0, [FORCED, BAN_A, BAN_B]] = y, x, y


def lift_ban(place: Place) -> None:
    """Let the pair kept apart be joined again."""
    place.flags[STALE + 1, place.numbers[0, [BAN_A, BAN_B]]] = 1
    place.numbers[0, [BAN_A, BAN_B]] = -1


@inner
def refusal(place, kind, x, y, chosen):  # type: ignore[no-untyped-def]
    """Key of an operator that knowledge forbids here, and here only."""
    here = np.uint64(place.numbers[0, STAMP] * 4 + kind) * np.uint64(0x9E3779B97F4A7C15)
    return key_of(y, place.bits, chosen) ^ mix(mix(np.uint64(x)) ^ here) | np.uint64(1)


@inner
def _is_refused(place, known, rules, kind, x, y, chosen):  # type: ignore[no-untyped-def]
    if not rules.any:
        return False
    key = refusal(place, kind, x, y, chosen)
    return known.keys[find(known, key)] == key


@inner
def _keep(place, kind, y, gain, x, chosen):  # type: ignore[no-untyped-def]
    place.gain[kind, y] = gain
    place.other[kind, y] = x
    copy_rows(place.bits, chosen, (CHOSEN + kind) * place.gain.shape[1] + y, 1)


@inner
def _deletion_gain(score, place, asking, known, rules, x, y, chosen):  # type: ignore[no-untyped-def]
    """Gain of Delete(x, y, chosen): a code and the number."""
    bits, d = place.bits, place.gain.shape[1]
    base = LAYERS * d + _BASE
    for w in range(bits.shape[1]):
        bits[base, w] = bits[PARENTS * d + y, w] | bits[chosen, w]
    put(bits, base, x)
    code, full = score_of(score, known, asking, rules, y, bits, base)
    if code != DONE:
        return code, 0.0
    drop(bits, base, x)
    code, fewer = score_of(score, known, asking, rules, y, bits, base)
    return code, fewer - full


@inner
def _may_delete(place, rules, x, y):  # type: ignore[no-untyped-def]
    """Whether there is an edge to delete; of the two equal ways for x - y only one counts."""
    bits, d = place.bits, place.gain.shape[1]
    if not has(bits, PARENTS * d + y, x) and (x > y or not has(bits, NEIGHBOURS * d + y, x)):
        return False
    return not (rules.must[x, y] or rules.must[y, x])


@inner
def _list_common(place, x, y):  # type: ignore[no-untyped-def]
    """List the cliques of the neighbours of y adjacent to x: how many, the row of the first."""
    bits, d = place.bits, place.gain.shape[1]
    near = LAYERS * d + _NEAR
    for w in range(bits.shape[1]):
        bits[near, w] = bits[NEIGHBOURS * d + y, w] & bits[ADJACENT * d + x, w]
    return list_cliques(bits, d, near)


@inner
def _list_trial(place, x, y, chosen, gain):  # type: ignore[no-untyped-def]
    """Add a deletion to the list, if one is made and not full."""
    i = place.numbers[0, LISTED_TRIALS]
    if 0 <= i < place.worth.size:
        place.trials[0, i], place.trials[1, i], place.worth[i] = x, y, gain
        for w in range(place.bits.shape[1]):
            place.sets[i, w] = place.bits[chosen, w]
        place.numbers[0, LISTED_TRIALS] = i + 1


@inner
def renew_deletions(score, place, asking, known, rules, y):  # type: ignore[no-untyped-def]
    """Find the best deletion with target y; return a code."""
    d = place.gain.shape[1]
    place.gain[DELETE, y] = -np.inf
    place.flags[BLOCKED, y] = 0
    for x in range(d):
        if not _may_delete(place, rules, x, y):
            continue
        count, first = _list_common(place, x, y)
        for chosen in range(first, first + count):
            code, gain = _deletion_gain(score, place, asking, known, rules, x, y, chosen)
            if code != DONE:
                return code
            _list_trial(place, x, y, chosen, gain)
            if gain <= place.gain[DELETE, y]:
                continue
            if _is_refused(place, known, rules, DELETE, x, y, chosen):
                place.flags[BLOCKED, y] = 1
            else:
                _keep(place, DELETE, y, gain, x, chosen)
    place.flags[STALE, y] = 0
    return DONE


@inner
def _lacks(bits, d, x, y, chosen):  # type: ignore[no-untyped-def]
    """Whether some neighbour of y adjacent to x is not in the set chosen."""
    for w in range(bits.shape[1]):
        common = bits[NEIGHBOURS * d + y, w] & bits[ADJACENT * d + x, w]
        if common & ~bits[chosen, w] != ZERO:
            return True
    return False


@inner
def _defies(bits, d, rules, x, y, chosen):  # type: ignore[no-untyped-def]
    """Whether an insertion would compel x -> y although that is forbidden: a quick look."""
    if not rules.any or not (rules.never[x, y] or rules.must[y, x]):
        return False
    for w in range(bits.shape[1]):
        into = bits[PARENTS * d + y, w] | bits[chosen, w]
        if into & ~bits[ADJACENT * d + x, w] != ZERO:
            return True
    return False


@inner
def _reach_from(place, y, chosen):  # type: ignore[no-untyped-def]
    """Find what semi-directed paths from y get to without the set chosen; return its row."""
    bits, d = place.bits, place.gain.shape[1]
    frontier, found = LAYERS * d + _FRONTIER, LAYERS * d + _REACHED
    for w in range(bits.shape[1]):
        bits[frontier, w] = bits[CHILDREN * d + y, w] | bits[NEIGHBOURS * d + y, w]
    reach(bits, place.ints, d, CHILDREN, y, frontier, chosen, found)
    return found


@inner
def _may_turn(place, x, y, chosen):  # type: ignore[no-untyped-def]
    """Whether Turn(x, y, chosen) is valid; x is a child or a neighbour of y."""
    bits, ints, d = place.bits, place.ints, place.gain.shape[1]
    frontier, found = LAYERS * d + _FRONTIER, LAYERS * d + _FOUND
    other, within = LAYERS * d + _OTHER, LAYERS * d + _WITHIN
    words = bits.shape[1]
    if has(bits, CHILDREN * d + y, x):
        if _lacks(bits, d, x, y, chosen):
            return False
        for w in range(words):
            bits[frontier, w] = bits[CHILDREN * d + y, w] | bits[NEIGHBOURS * d + y, w]
            bits[other, w] = bits[chosen, w] | bits[NEIGHBOURS * d + x, w]
        drop(bits, frontier, x)
        reach(bits, ints, d, CHILDREN, y, frontier, other, found)
        return not has(bits, found, x)
    # An undirected edge: the part of the set that x is apart from makes the turn compelled.
    compels = False
    for w in range(words):
        near, own = bits[NEIGHBOURS * d + x, w], bits[NEIGHBOURS * d + y, w]
        bits[frontier, w] = bits[chosen, w] & ~near
        bits[within, w] = own & ~(bits[chosen, w] & near)
        bits[other, w] = own & near & ~bits[chosen, w]
        compels |= bits[frontier, w] != ZERO
    return compels and not connects(bits, ints, d, within, frontier, other)


@inner
def _turn_rest(score, place, asking, known, rules, x, y, chosen):  # type: ignore[no-untyped-def]
    """What taking y from the parents of x brings: a code and the number.

    It seldom depends on the set chosen, so it is kept while the same target is looked at.
    """
    bits, ints, d = place.bits, place.ints, place.gain.shape[1]
    near = LAYERS * d + _NEAR
    undirected = has(bits, NEIGHBOURS * d + x, y)
    alone = True
    for w in range(bits.shape[1]):
        bits[near, w] = bits[chosen, w] & bits[NEIGHBOURS * d + x, w] if undirected else ZERO
        alone &= bits[near, w] == ZERO
    if alone and ints[ASKED, x] == known.used[RENEWALS]:
        return DONE, place.rest[x]
    code, value = _deletion_gain(score, place, asking, known, rules, y, x, near)
    if alone and code == DONE:
        ints[ASKED, x] = known.used[RENEWALS]
        place.rest[x] = value
    return code, value


@inner
def _is_banned(place, x, y):  # type: ignore[no-untyped-def]
    a, b = place.numbers[0, BAN_A], place.numbers[0, BAN_B]
    return (a == x and b == y) or (a == y and b == x)


@inner
def renew_moves(score, place, asking, known, rules, y):  # type: ignore[no-untyped-def]
    """Find the best turn and the best insertion with target y; return a code."""
    bits, d = place.bits, place.gain.shape[1]
    known.used[RENEWALS] += 1
    place.gain[TURN, y] = -np.inf
    place.gain[INSERT, y] = -np.inf
    blocked = False
    base, reached = LAYERS * d + _BASE, LAYERS * d + _REACHED
    count, first = list_cliques(bits, d, NEIGHBOURS * d + y)
    for chosen in range(first, first + count):
        for w in range(bits.shape[1]):
            bits[base, w] = bits[PARENTS * d + y, w] | bits[chosen, w]
        code, slot = row_of(score, known, asking, rules, y, bits, base)
        if code != DONE:
            return code
        start, looked = known.start[slot], False
        for i in range(start, start + known.length[slot]):
            x, gain = np.int64(known.variable[i]), known.gain[i]
            if has(bits, ADJACENT * d + y, x):
                if gain <= place.gain[TURN, y]:
                    continue
                code, rest = _turn_rest(score, place, asking, known, rules, x, y, chosen)
                if code != DONE:
                    return code
                gain += rest
                if gain <= max(place.gain[TURN, y], TOLERANCE):
                    continue
                if _may_turn(place, x, y, chosen) and not _is_refused(
                    place, known, rules, TURN, x, y, chosen
                ):
                    _keep(place, TURN, y, gain, x, chosen)
                else:
                    blocked = True
                continue
            if (
                gain <= place.gain[INSERT, y]
                or _lacks(bits, d, x, y, chosen)
                or _is_banned(place, x, y)
                or _defies(bits, d, rules, x, y, chosen)
            ):
                continue
            if not looked:
                _reach_from(place, y, chosen)
                looked = True
            if has(bits, reached, x) or _is_refused(place, known, rules, INSERT, x, y, chosen):
                blocked = True
            else:
                _keep(place, INSERT, y, gain, x, chosen)
    place.ints[AGE, y] = place.numbers[0, STAMP]
    place.flags[BLOCKED + 1, y] = blocked
    place.flags[STALE + 1, y] = 0
    return DONE


@inner
def write_change(bits, d, kind, x, y, chosen):  # type: ignore[no-untyped-def]
    """Write to WORK a graph all of whose extensions are in the class after the operator.

    It is the graph before, oriented as in a member where the operator changes this one edge.
    """
    copy_rows(bits, 0, WORK * d, 4 * d)
    turned = kind == TURN and has(bits, CHILDREN * d + y, x)
    for s in range(d):
        if has(bits, chosen, s):
            orient(bits, d, WORK, s, y)
        elif turned and has(bits, NEIGHBOURS * d + x, s):
            orient(bits, d, WORK, x, s)
        elif kind == DELETE and s != x and has(bits, NEIGHBOURS * d + y, s):
            if has(bits, ADJACENT * d + x, s):
                orient(bits, d, WORK, y, s)
                if has(bits, NEIGHBOURS * d + x, s):
                    orient(bits, d, WORK, x, s)
    orient(bits, d, WORK, x, y)
    if kind == DELETE:
        drop(bits, (WORK + PARENTS) * d + y, x)
        drop(bits, (WORK + CHILDREN) * d + x, y)
        drop(bits, (WORK + ADJACENT) * d + y, x)
        drop(bits, (WORK + ADJACENT) * d + x, y)
    else:
        put(bits, (WORK + ADJACENT) * d + y, x)
        put(bits, (WORK + ADJACENT) * d + x, y)
