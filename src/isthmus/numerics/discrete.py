"""Compiled kernel of discrete local scores, called through ``numerics.abi``.

Every score here has the form

``sum over cells f(n_jk) - sum over parent configurations g(n_j) - penalty * (r - 1) * q``

with ``r`` the levels of the child and ``q`` the product of the parents' levels (also of those
combinations that nobody has seen). ``f(0) = g(0) = 0``, so only what was observed is visited.
``f`` and ``g`` are ``n log n`` for BIC and AIC and ``lgamma(n + s) - lgamma(s)`` for BDeu
(``s = ess / (q r)`` and ``ess / q``) and K2 (``s = 1`` and ``r``). They are looked up in tables
that are made when first wanted.

Two ways to count. *Bitmaps*: observed combinations of parents and child as bitmaps, made once a
call, then one AND-popcount for each of them and each level of a candidate; for unweighted rows
and few combinations. *Histograms*: one number a row for parents and child, made once a call and
renumbered to what was observed where the table would be large, then one pass a candidate.

The data hold room to work in: two threads must not share them.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError
from isthmus.numerics import abi
from isthmus.numerics.counting_bitmap import LANES, count_and, pack, store_and
from isthmus.numerics.counting_histogram import CHUNK, COPIES, gather, spread
from isthmus.numerics.jit import inner, kernel


class Form(IntEnum):
    """Which ``f`` and ``g``; the parameter is the penalty, the sample size, or nothing."""

    LIKELIHOOD = 0
    BDEU = 1
    K2 = 2


_LIKELIHOOD, _BDEU = int(Form.LIKELIHOOD), int(Form.BDEU)

_SLOTS = 256  # of the index of tables
_MOST_BITMAPS = 256  # combinations of parents and child; beyond, histograms are faster
_MOST_LEVELS = 32  # a variable with more levels has no bitmaps
_SMALL = 512  # cells up to which several histograms are filled in turn
_DENSE_FEW = 8_192
_HEAD = 28  # numbers at the start of the data

# Nanoseconds, measured: an AND-popcount, the part for each word and the rest; a histogram's step.
_AND_FIXED, _AND_WORD, _ROW = 8.0, 0.15, 0.7


class _State(NamedTuple):
    codes: NDArray[np.uint16]  # (d + 1, m), the last line zero
    weights: NDArray[np.int64]  # empty: every row counts once
    cards: NDArray[np.int64]
    first: NDArray[np.int64]  # number of the variable's first bitmap, -1: none
    totals: NDArray[np.int64]  # rows in each bitmap
    arena: NDArray[np.int64]  # bitmaps, then room for those of combinations
    words: int
    spare: int  # number of the first bitmap of the room
    places: NDArray[np.int64]  # (4, _MOST_BITMAPS): lists of combinations
    form: int
    parameter: float
    keys: NDArray[np.float64]  # of the tables: open addressing
    filled: NDArray[np.int64]  # [0] tables in use
    numbers: NDArray[np.int64]  # which table a key has
    tables: NDArray[np.float64]  # (tables, length)
    rows: NDArray[np.int64]  # (3, m): configurations, with child, keys
    short: NDArray[np.uint16]
    table: NDArray[np.int64]  # always zero between uses
    copies: NDArray[np.uint32]  # always zero between uses
    index: NDArray[np.uint16]
    buckets: NDArray[np.int64]  # (2, power of two): keys and numbers of a hash table


@inner
def _direct(form, n, shift):  # type: ignore[no-untyped-def]
    if n == 0:
        return 0.0
    if form == _LIKELIHOOD:
        return n * math.log(n)
    return math.lgamma(n + shift) - math.lgamma(shift)


@inner
def _lookup(state, key):  # type: ignore[no-untyped-def]
    """Find the table of a key, or make it; empty when there is no room for another."""
    slot = np.int64(key * 0.6180339887498949 % 1.0 * _SLOTS) % _SLOTS
    while state.keys[slot] != key and state.keys[slot] >= 0.0:
        slot = (slot + 1) % _SLOTS
    if state.keys[slot] != key:
        number = state.filled[0]
        if number == state.tables.shape[0]:
            return state.tables[0, :0]
        state.filled[0] += 1
        state.keys[slot] = key
        state.numbers[slot] = number
        shift = _shift(state, key)
        for n in range(state.tables.shape[1]):
            state.tables[number, n] = _direct(state.form, n, shift)
    return state.tables[state.numbers[slot]]


@inner
def _shift(state, key):  # type: ignore[no-untyped-def]
    return state.parameter / key if state.form == _BDEU else key


@inner
def _f_key(state, r, q):  # type: ignore[no-untyped-def]
    return q * r if state.form == _BDEU else 1.0


@inner
def _g_key(state, r, q):  # type: ignore[no-untyped-def]
    if state.form == _LIKELIHOOD:
        return 1.0
    return q if state.form == _BDEU else float(r)


@inner
def _value(state, table, n, key):  # type: ignore[no-untyped-def]
    if n < table.size:
        return table[n]
    return _direct(state.form, n, _shift(state, key))


@inner
def _penalty(state, r, q):  # type: ignore[no-untyped-def]
    return state.parameter * (r - 1) * q if state.form == _LIKELIHOOD else 0.0


# --- bitmaps ----------------------------------------------------------------------------------


@inner
def _split(state, variable, listed, source, target, room):  # type: ignore[no-untyped-def]
    """Split combinations by the levels of one more variable; -1: too many.

    Line ``source`` of ``places`` holds positions and line ``source + 1`` counts; ``target``
    likewise. ``listed`` 0 stands for the single combination of all rows.
    """
    places, words = state.places, state.words
    r = state.cards[variable]
    bitmap = state.first[variable]
    made = 0
    for p in range(max(listed, 1)):
        for level in range(r):
            if listed == 0:
                position = (bitmap + level) * words
                size = state.totals[bitmap + level]
            else:
                position = (room + made) * words
                size = store_and(
                    state.arena, places[source, p], (bitmap + level) * words, position, words
                )
            if size > 0:
                if made == _MOST_BITMAPS:
                    return -1
                places[target, made] = position
                places[target + 1, made] = size
                made += 1
    return made


@inner
def _combinations(state, child, parents):  # type: ignore[no-untyped-def]
    """List the observed configurations of the parents, and with the child.

    Returns how many of the first and of the second: the configurations are in lines 0 and 1 of
    ``places`` and with the child in lines 2 and 3 (or the other way, see the third number).
    -1: too many, or a variable without bitmaps.
    """
    if state.first[child] < 0:
        return -1, -1, 0
    for p in parents:
        if state.first[p] < 0:
            return -1, -1, 0
    listed, source = 0, 0
    # Each step writes the half of the room that the step before did not.
    for p in parents:
        target = 2 - source
        room = state.spare + (_MOST_BITMAPS + 1) * (target // 2)
        listed = _split(state, p, listed, source, target, room)
        if listed < 0:
            return -1, -1, 0
        source = target
    target = 2 - source
    room = state.spare + (_MOST_BITMAPS + 1) * (target // 2)
    made = _split(state, child, listed, source, target, room)
    return listed, made, source


@inner
def _base_by_bitmaps(state, r, q, listed, made, source):  # type: ignore[no-untyped-def]
    f_key, g_key = _f_key(state, r, q), _g_key(state, r, q)
    f, g = _lookup(state, f_key), _lookup(state, g_key)
    total = -_penalty(state, r, q)
    target = 2 - source
    for p in range(made):
        total += _value(state, f, state.places[target + 1, p], f_key)
    if listed == 0:
        return total - _value(state, g, state.codes.shape[1], g_key)
    for j in range(listed):
        total -= _value(state, g, state.places[source + 1, j], g_key)
    return total


@inner
def _extend_by_bitmaps(state, r, q, listed, made, source, candidate, sums):  # type: ignore[no-untyped-def]
    places, words, arena = state.places, state.words, state.arena
    rc = state.cards[candidate]
    q = q * rc
    f_key, g_key = _f_key(state, r, q), _g_key(state, r, q)
    f, g = _lookup(state, f_key), _lookup(state, g_key)
    total = -_penalty(state, r, q)
    target = 2 - source
    bitmap = state.first[candidate]
    p = 0
    for j in range(max(listed, 1)):
        left = places[source + 1, j] if listed > 0 else state.codes.shape[1]
        for c in range(rc):
            sums[c] = 0
        while left > 0:
            position, size = places[target, p], places[target + 1, p]
            p += 1
            left -= size
            if left == 0 and listed == 0:
                # Without parents the last level of the child follows from the candidate's totals.
                for c in range(rc):
                    n = state.totals[bitmap + c]
                    total += _value(state, f, n - sums[c], f_key)
                    sums[c] = n
                break
            rest = size
            for c in range(rc - 1):
                n = count_and(arena, position, (bitmap + c) * words, words)
                total += _value(state, f, n, f_key)
                sums[c] += n
                rest -= n
            total += _value(state, f, rest, f_key)
            sums[rc - 1] += rest
        for c in range(rc):
            total -= _value(state, g, sums[c], g_key)
    return total


# --- histograms -------------------------------------------------------------------------------


@inner
def _renumber(state, keys):  # type: ignore[no-untyped-def]
    """Replace keys by 0, 1, ... in the order of appearance; returns how many there are."""
    names, numbers = state.buckets[0], state.buckets[1]
    names[:] = -1
    mask = np.uint64(names.size - 1)
    used = 0
    for i in range(keys.size):
        key = keys[i]
        place = (np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20) & mask
        while names[place] != key and names[place] >= 0:
            place = (place + np.uint64(1)) & mask
        if names[place] < 0:
            names[place] = key
            numbers[place] = used
            used += 1
        keys[i] = numbers[place]
    return used


@inner
def _configure(state, child, parents, widest):  # type: ignore[no-untyped-def]
    """Number the parents' configuration of each row; returns how many numbers there may be."""
    configuration = state.rows[0]
    configuration[:] = 0
    m = configuration.size
    several = np.int64(1)
    for p in parents:
        r = state.cards[p]
        if several * r > 2**40:
            several = _renumber(state, configuration)
        column = state.codes[p]
        for i in range(m):
            configuration[i] = configuration[i] * r + column[i]
        several *= r
    r = state.cards[child]
    if several * r * widest > max(m, _DENSE_FEW // 4) and several > 1:
        several = _renumber(state, configuration)
    joint, column = state.rows[1], state.codes[child]
    for i in range(m):
        joint[i] = configuration[i] * r + column[i]
    if several * r <= _SMALL:
        for i in range(m):
            state.short[i] = np.uint16(joint[i])
    return several


@inner
def _fill(state, column, r, rc, cells):  # type: ignore[no-untyped-def]
    """Count into ``table``, laid out (configuration, child, candidate)."""
    joint, table, weights = state.rows[1], state.table, state.weights
    if weights.size > 0:
        for i in range(joint.size):
            table[np.uint64(joint[i] * rc + column[i])] += weights[i]
    elif cells <= _SMALL:
        words = state.index.view(np.uint64)
        spread(state.short, column, rc, cells, state.index, words, state.copies)
        gather(state.copies, cells, table[:cells])
    else:
        for i in range(joint.size):
            table[np.uint64(joint[i] * rc + column[i])] += 1


@inner
def _by_histogram(state, child, several, q, candidate):  # type: ignore[no-untyped-def]
    """Score with one candidate more; candidate d is a column of zeros, that is none."""
    r = state.cards[child]
    rc = state.cards[candidate]
    q = q * rc
    column = state.codes[candidate]
    cells = several * r * rc
    if cells > state.table.size:
        return _by_renumbering(state, r, rc, q, column)
    f_key, g_key = _f_key(state, r, q), _g_key(state, r, q)
    f, g = _lookup(state, f_key), _lookup(state, g_key)
    total = -_penalty(state, r, q)
    _fill(state, column, r, rc, cells)
    table = state.table
    for j in range(several):
        begin = j * r * rc
        for c in range(rc):
            here = np.int64(0)
            for cell in range(begin + c, begin + r * rc, rc):
                n = table[cell]
                if n > 0:
                    total += _value(state, f, n, f_key)
                    here += n
            if here > 0:
                total -= _value(state, g, here, g_key)
    table[:cells] = 0
    return total


@inner
def _by_renumbering(state, r, rc, q, column):  # type: ignore[no-untyped-def]
    """Score by counting renumbered cells: for tables with far more cells than rows."""
    f_key, g_key = _f_key(state, r, q), _g_key(state, r, q)
    total = -_penalty(state, r, q)
    keys, table, weights = state.rows[2], state.table, state.weights
    for turn in range(2):
        source = state.rows[1 - turn]
        key = f_key if turn == 0 else g_key
        sign = 1.0 if turn == 0 else -1.0
        values = _lookup(state, key)
        for i in range(keys.size):
            keys[i] = source[i] * rc + column[i]
        used = _renumber(state, keys)
        for i in range(keys.size):
            table[keys[i]] += weights[i] if weights.size > 0 else 1
        for cell in range(used):
            total += sign * _value(state, values, table[cell], key)
        table[:used] = 0
    return total


# --- the score --------------------------------------------------------------------------------


@inner
def _bitmaps_pay(state, made, rc):  # type: ignore[no-untyped-def]
    bitmaps = made * (rc - 1) * (_AND_FIXED + _AND_WORD * state.words)
    return bitmaps < _ROW * state.codes.shape[1]


@inner
def _score(state, child, parents, candidates, out):  # type: ignore[no-untyped-def]
    r = state.cards[child]
    q = 1.0
    for p in parents:
        q *= state.cards[p]
    listed, made, source = 0, -1, 0
    # Renumbered histograms are the better way to many configurations.
    if state.weights.size == 0 and q * r <= 16 * _MOST_BITMAPS:
        listed, made, source = _combinations(state, child, parents)
    several = np.int64(0)
    widest = np.int64(1)
    for j in candidates:
        widest = max(widest, state.cards[j])
    if made >= 0:
        out[0] = _base_by_bitmaps(state, r, q, listed, made, source)
    else:
        several = _configure(state, child, parents, widest)
        out[0] = _by_histogram(state, child, several, q, state.cards.size - 1)
    sums = np.empty(_MOST_LEVELS, np.int64)
    for j in range(candidates.size):
        candidate = candidates[j]
        rc = state.cards[candidate]
        if made >= 0 and state.first[candidate] >= 0 and _bitmaps_pay(state, made, rc):
            out[1 + j] = _extend_by_bitmaps(state, r, q, listed, made, source, candidate, sums)
        else:
            if several == 0:
                several = _configure(state, child, parents, widest)
            out[1 + j] = _by_histogram(state, child, several, q, candidate)
    return 0


@numba.cfunc(abi.SCORE_SIGNATURE, cache=True)
def discrete_score(data, child, parents_at, k, candidates_at, m, out_at):  # type: ignore[no-untyped-def]
    """Score discrete variables; ``data`` as laid out by :func:`pack_discrete`."""
    head = abi.ints_at(data, _HEAD)
    d, n, words = head[0], head[1], head[2]
    tables, length = head[6], head[7]
    state = _State(
        abi.shorts_at(head[10], (d + 1, n)),
        abi.ints_at(head[11], (head[4],)),
        abi.ints_at(head[12], (d + 1,)),
        abi.ints_at(head[13], (d + 1,)),
        abi.ints_at(head[14], (head[3],)),
        abi.ints_at(head[15], ((head[3] + 2 * (_MOST_BITMAPS + 1)) * words,)),
        words,
        head[3],
        abi.ints_at(head[16], (4, _MOST_BITMAPS)),
        head[5],
        abi.floats_at(head[17], (1,))[0],
        abi.floats_at(head[18], (_SLOTS,)),
        abi.ints_at(head[19], (1,)),
        abi.ints_at(head[20], (_SLOTS,)),
        abi.floats_at(head[21], (tables, length)),
        abi.ints_at(head[22], (3, n)),
        abi.shorts_at(head[23], (n,)),
        abi.ints_at(head[24], (head[8],)),
        abi.ints_at(head[25], (COPIES * _SMALL // 2,)).view(np.uint32),
        abi.shorts_at(head[26], (CHUNK,)),
        abi.ints_at(head[27], (2, head[9])),
    )
    parents = abi.ints_at(parents_at, (k,))
    candidates = abi.ints_at(candidates_at, (m,))
    return _score(state, child, parents, candidates, abi.floats_at(out_at, (m + 1,)))


@kernel
def _make_bitmaps(codes, cards, first, words, arena):  # type: ignore[no-untyped-def]
    d, m = codes.shape
    flat = codes.reshape(-1)
    full = m // 64
    for v in range(d):
        if first[v] < 0:
            continue
        for level in range(cards[v]):
            target = (first[v] + level) * words
            for word in range(full):
                arena[target + word] = np.int64(pack(flat, v * m + 64 * word, level))
            for i in range(64 * full, m):
                if codes[v, i] == level:
                    arena[target + full] |= np.int64(1) << np.int64(i - 64 * full)


def pack_discrete(
    codes: NDArray[np.uint8] | NDArray[np.uint16],
    weights: NDArray[np.int64] | None,
    cardinalities: NDArray[np.int64],
    form: Form,
    parameter: float,
) -> tuple[NDArray[np.int64], tuple[Any, ...]]:
    """Lay out the data of :func:`discrete_score`; the second item must outlive the first.

    Parameters
    ----------
    codes, weights, cardinalities
        As for ``numerics.counting.tally``.
    form, parameter
        ``LIKELIHOOD`` and the penalty for one free parameter (half the logarithm of the number of
        rows: BIC; 1: AIC), ``BDEU`` and the equivalent sample size, ``K2`` and anything.
    """
    d, m = codes.shape
    levels = np.append(np.asarray(cardinalities, np.int64), 1)
    if m * int(levels.max()) ** 2 >= 2**62:
        raise DataError(f"{m} rows are too many for one score: summarise equal rows first.")
    for v in range(d):
        if m and int(codes[v].max()) >= levels[v]:
            raise DataError(f"Variable {v} has a code above its {levels[v]} levels.")
    wide = np.zeros((d + 1, m), np.uint16)
    wide[:d] = codes
    given = np.empty(0, np.int64) if weights is None else np.ascontiguousarray(weights, np.int64)
    total = m if weights is None else int(given.sum())

    words = -(-max(m, 1) // 64)
    words += -words % LANES
    has = (levels <= _MOST_LEVELS) & (weights is None)
    has[d] = False
    first = np.where(has, np.cumsum(np.where(has, levels, 0)) - levels, -1)
    bitmaps = int(levels[has].sum())
    room = np.zeros((bitmaps + 2 * (_MOST_BITMAPS + 1)) * words + LANES, np.int64)
    arena = room[(-room.ctypes.data % 64) // 8 :]
    _make_bitmaps(wide, levels, first, words, arena)
    counted = [np.bincount(wide[v], minlength=levels[v]) for v in range(d) if has[v]]
    totals = np.concatenate([*counted, np.empty(0, np.int64)]).astype(np.int64)

    tables, longest = {
        Form.LIKELIHOOD: (1, 2**20),
        Form.BDEU: (_SLOTS // 2, 2**13),
        Form.K2: (1 + len(set(levels.tolist())), 2**17),
    }[form]
    length = min(total + 1, longest)
    cells = max(_DENSE_FEW, 8 * m)
    buckets = 1 << max(4, (2 * m).bit_length())
    arrays = (
        wide,
        given,
        levels,
        first,
        totals,
        arena,
        np.empty((4, _MOST_BITMAPS), np.int64),
        np.array([parameter], np.float64),
        np.full(_SLOTS, -1.0),
        np.zeros(1, np.int64),
        np.zeros(_SLOTS, np.int64),
        np.empty((tables, length)),
        np.empty((3, m), np.int64),
        np.empty(m, np.uint16),
        np.zeros(cells, np.int64),
        np.zeros(COPIES * _SMALL // 2, np.int64),
        np.empty(CHUNK, np.uint16),
        np.empty((2, buckets), np.int64),
    )
    sizes = [d, m, words, bitmaps, given.size, int(form), tables, length, cells, buckets]
    head = np.array([*sizes, *(array.ctypes.data for array in arrays)], np.int64)
    return head, (*arrays, room)


__all__ = ["Form", "discrete_score", "pack_discrete"]
