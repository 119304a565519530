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

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError
from isthmus.numerics import abi
from isthmus.numerics.counting_bitmap import LANES
from isthmus.numerics.counting_histogram import CHUNK, COPIES, gather, spread
from isthmus.numerics.discrete_bitmaps import (
    MOST_BITMAPS,
    MOST_LEVELS,
    base_by_bitmaps,
    bitmaps_pay,
    combinations,
    extend_by_bitmaps,
    make_bitmaps,
)
from isthmus.numerics.discrete_values import (
    SLOTS,
    Form,
    Memo,
    f_key,
    g_key,
    lookup,
    penalty,
    value,
)
from isthmus.numerics.jit import inner

_SMALL = 512  # cells up to which several histograms are filled in turn
_LEAST_TABLE = 2**20  # cells of the room for histograms; untouched memory costs nothing
_HEAD = 28  # numbers at the start of the data


class _State(NamedTuple):
    codes: NDArray[np.uint16]  # (d + 1, m), the last line zero
    weights: NDArray[np.int64]  # empty: every row counts once
    cards: NDArray[np.int64]
    first: NDArray[np.int64]  # number of the variable's first bitmap, -1: none
    totals: NDArray[np.int64]  # rows in each bitmap
    arena: NDArray[np.int64]  # bitmaps, then room for those of combinations
    words: int
    spare: int  # number of the first bitmap of the room
    places: NDArray[np.int64]  # (4, MOST_BITMAPS): lists of combinations
    memo: Memo
    rows: NDArray[np.int64]  # (3, m): configurations, with child, keys
    short: NDArray[np.uint16]
    table: NDArray[np.int64]  # always zero between uses
    copies: NDArray[np.uint32]  # always zero between uses
    chunk: NDArray[np.uint16]
    buckets: NDArray[np.int64]  # (2, power of two): keys and numbers of a hash table


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
def _configure(state, child, parents, widest, uses):  # type: ignore[no-untyped-def]
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
    cells = several * r * widest
    # Fewer cells pay for the renumbering after a few uses.
    if cells > state.table.size or (cells > max(m, _SMALL) and uses > 3):
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
        words = state.chunk.view(np.uint64)
        spread(state.short, column, rc, cells, state.chunk, words, state.copies)
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
    m = column.size
    cells = several * r * rc
    if cells > max(2 * m, _SMALL):
        return _by_rows(state, r, rc, q, column, cells)
    memo, form = state.memo, state.memo.form
    f, f_shift = lookup(memo, f_key(form, r, q))
    g, g_shift = lookup(memo, g_key(form, r, q))
    total = -penalty(memo, r, q)
    _fill(state, column, r, rc, cells)
    table = state.table
    for j in range(several):
        begin = j * r * rc
        for c in range(rc):
            here = np.int64(0)
            # No test for empty cells: it would be mispredicted, and they are worth zero.
            for cell in range(begin + c, begin + r * rc, rc):
                n = table[np.uint64(cell)]
                total += value(form, f, n, f_shift)
                here += n
            total -= value(form, g, here, g_shift)
    table[:cells] = 0
    return total


@inner
def _by_rows(state, r, rc, q, column, cells):  # type: ignore[no-untyped-def]
    """Score by visiting the cells of rows only: for tables with more cells than rows."""
    memo, form = state.memo, state.memo.form
    total = -penalty(memo, r, q)
    keys, table, weights = state.rows[2], state.table, state.weights
    for turn in range(2):
        source = state.rows[1 - turn]
        key = f_key(form, r, q) if turn == 0 else g_key(form, r, q)
        values, shift = lookup(memo, key)
        for i in range(keys.size):
            keys[i] = source[i] * rc + column[i]
        if cells > table.size:
            _renumber(state, keys)
        if weights.size > 0:
            for i in range(keys.size):
                table[np.uint64(keys[i])] += weights[i]
        else:
            for i in range(keys.size):
                table[np.uint64(keys[i])] += 1
        part = 0.0
        for i in range(keys.size):
            # The first visit takes the count, later ones find zero.
            n = table[np.uint64(keys[i])]
            table[np.uint64(keys[i])] = 0
            part += value(form, values, n, shift)
        total += part if turn == 0 else -part
    return total


# --- the score --------------------------------------------------------------------------------


@inner
def _score(state, child, parents, candidates, out):  # type: ignore[no-untyped-def]
    r = state.cards[child]
    q = 1.0
    for p in parents:
        q *= state.cards[p]
    listed, made, source = 0, -1, 0
    # Renumbered histograms are the better way to many configurations.
    if state.weights.size == 0 and q * r <= 16 * MOST_BITMAPS:
        listed, made, source = combinations(state, child, parents)
    left = candidates.size
    if made >= 0:
        out[0] = base_by_bitmaps(state, r, q, listed, made, source)
        left = extend_by_bitmaps(state, r, q, listed, made, source, candidates, out)
        if left == 0:
            return 0
    widest = np.int64(1)
    for candidate in candidates:
        widest = max(widest, state.cards[candidate])
    several = _configure(state, child, parents, widest, left)
    if made < 0:
        out[0] = _by_histogram(state, child, several, q, state.cards.size - 1)
    m, words = state.codes.shape[1], state.words
    for i in range(candidates.size):
        candidate = candidates[i]
        rc = state.cards[candidate]
        done = made >= 0 and state.first[candidate] >= 0
        if not (done and bitmaps_pay(m, words, listed, made, r, rc)):
            out[1 + i] = _by_histogram(state, child, several, q, candidate)
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
        abi.ints_at(head[15], ((head[3] + 2 * (MOST_BITMAPS + 1)) * words,)),
        words,
        head[3],
        abi.ints_at(head[16], (4, MOST_BITMAPS)),
        Memo(
            head[5],
            abi.floats_at(head[17], (1,))[0],
            abi.floats_at(head[18], (SLOTS,)),
            abi.ints_at(head[20], (SLOTS,)),
            abi.ints_at(head[19], (1,)),
            abi.floats_at(head[21], (tables, length)),
        ),
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
    has = (levels <= MOST_LEVELS) & (weights is None)
    has[d] = False
    first = np.where(has, np.cumsum(np.where(has, levels, 0)) - levels, -1)
    bitmaps = int(levels[has].sum())
    room = np.zeros((bitmaps + 2 * (MOST_BITMAPS + 1)) * words + LANES, np.int64)
    arena = room[(-room.ctypes.data % 64) // 8 :]
    make_bitmaps(wide, levels, first, words, arena)
    counted = [np.bincount(wide[v], minlength=levels[v]) for v in range(d) if has[v]]
    totals = np.concatenate([*counted, np.empty(0, np.int64)]).astype(np.int64)

    tables, longest = {
        Form.LIKELIHOOD: (1, 2**20),
        Form.BDEU: (SLOTS // 2, 2**13),
        Form.K2: (1 + len(set(levels.tolist())), 2**17),
        Form.SUPPORT: (2, 2**10),
    }[form]
    length = min(total + 1, longest)
    cells = max(_LEAST_TABLE, 8 * m)
    buckets = 1 << max(4, (2 * m).bit_length())
    arrays = (
        wide,
        given,
        levels,
        first,
        totals,
        arena,
        np.empty((4, MOST_BITMAPS), np.int64),
        np.array([parameter], np.float64),
        np.full(SLOTS, -1.0),
        np.zeros(1, np.int64),
        np.zeros(SLOTS, np.int64),
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
