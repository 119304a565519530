"""The bitmap way to count for discrete local scores; see ``numerics.discrete``."""

from __future__ import annotations

import numpy as np

from isthmus.numerics.counting_bitmap import count_and, pack, store_and
from isthmus.numerics.discrete_values import f_key, g_key, lookup, penalty, value
from isthmus.numerics.jit import inner, kernel

MOST_BITMAPS = 256  # combinations of parents and child; beyond, histograms are faster
MOST_LEVELS = 32  # a variable with more levels has no bitmaps

# Nanoseconds, measured: an AND-popcount, its fixed part and a word;
# a row and a cell of a histogram.
_AND_FIXED, _AND_WORD, _ROW, _CELL = 8.0, 0.15, 0.7, 1.2


@kernel
def make_bitmaps(codes, cards, first, words, arena):  # type: ignore[no-untyped-def]
    """Write one bitmap a level, for the variables that have any."""
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
                if made == MOST_BITMAPS:
                    return -1
                places[target, made] = position
                places[target + 1, made] = size
                made += 1
    return made


@inner
def combinations(state, child, parents):  # type: ignore[no-untyped-def]
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
        room = state.spare + (MOST_BITMAPS + 1) * (target // 2)
        listed = _split(state, p, listed, source, target, room)
        if listed < 0:
            return -1, -1, 0
        source = target
    target = 2 - source
    room = state.spare + (MOST_BITMAPS + 1) * (target // 2)
    made = _split(state, child, listed, source, target, room)
    return listed, made, source


@inner
def base_by_bitmaps(state, r, q, listed, made, source):  # type: ignore[no-untyped-def]
    """Score the parents themselves."""
    memo, form = state.memo, state.memo.form
    f, f_shift = lookup(memo, f_key(form, r, q))
    g, g_shift = lookup(memo, g_key(form, r, q))
    total = -penalty(memo, r, q)
    target = 2 - source
    for p in range(made):
        total += value(form, f, state.places[target + 1, p], f_shift)
    if listed == 0:
        return total - value(form, g, state.codes.shape[1], g_shift)
    for j in range(listed):
        total -= value(form, g, state.places[source + 1, j], g_shift)
    return total


@inner
def extend_by_bitmaps(state, r, q, listed, made, source, candidates, out):  # type: ignore[no-untyped-def]
    """Score the candidates for which bitmaps pay; returns how many are left.

    One call for all candidates: a state as an argument costs more than a candidate.
    """
    places, words, arena, totals = state.places, state.words, state.arena, state.totals
    m = state.codes.shape[1]
    memo, form = state.memo, state.memo.form
    target = 2 - source
    sums = np.empty(MOST_LEVELS, np.int64)
    skipped = 0
    for i in range(candidates.size):
        candidate = candidates[i]
        rc = state.cards[candidate]
        bitmap = state.first[candidate]
        if bitmap < 0 or not bitmaps_pay(m, words, listed, made, r, rc):
            skipped += 1
            continue
        f, f_shift = lookup(memo, f_key(form, r, q * rc))
        g, g_shift = lookup(memo, g_key(form, r, q * rc))
        total = -penalty(memo, r, q * rc)
        p = 0
        for j in range(max(listed, 1)):
            left = places[source + 1, j] if listed > 0 else m
            for c in range(rc):
                sums[c] = 0
            while left > 0:
                position, size = places[target, p], places[target + 1, p]
                p += 1
                left -= size
                if left == 0 and listed == 0:
                    # Without parents the child's last level follows from the candidate's totals.
                    for c in range(rc):
                        n = totals[bitmap + c]
                        total += value(form, f, n - sums[c], f_shift)
                        sums[c] = n
                    break
                rest = size
                for c in range(rc - 1):
                    n = count_and(arena, position, (bitmap + c) * words, words)
                    total += value(form, f, n, f_shift)
                    sums[c] += n
                    rest -= n
                total += value(form, f, rest, f_shift)
                sums[rc - 1] += rest
            for c in range(rc):
                total -= value(form, g, sums[c], g_shift)
        out[1 + i] = total
    return skipped


@inner
def bitmaps_pay(m, words, listed, made, r, rc):  # type: ignore[no-untyped-def]
    """Whether they are faster than a histogram for a candidate with ``rc`` levels."""
    bitmaps = made * (rc - 1) * (_AND_FIXED + _AND_WORD * words)
    return bitmaps < _ROW * m + _CELL * max(listed, 1) * r * rc
