"""Counting by histograms: a mixed-radix code a row, then one increment a row.

For tables of many cells, and for weighted rows, where bitmaps do not pay.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

BLOCK = 16_384
"""Rows in a block: codes of a few dozen columns stay in the second-level cache."""

CHUNK = 4_096
COPIES = 8
_SMALL = 8_192


@njit(cache=True, nogil=True)
def spread(
    prefix: NDArray[np.uint16],
    column: NDArray[Any],
    r: int,
    cells: int,
    index: NDArray[np.uint16],
    words: NDArray[np.uint64],
    copies: NDArray[np.uint32],
) -> None:
    """Count rows into eight histograms in turn.

    With a single one, equal neighbours would each wait for the store of the one before.
    """
    mask, one = np.uint64(0xFFFF), np.uint32(1)
    radix = np.uint16(r)
    h0, h1 = copies[:cells], copies[cells : 2 * cells]
    h2, h3 = copies[2 * cells : 3 * cells], copies[3 * cells : 4 * cells]
    h4, h5 = copies[4 * cells : 5 * cells], copies[5 * cells : 6 * cells]
    h6, h7 = copies[6 * cells : 7 * cells], copies[7 * cells : 8 * cells]
    rows = column.size
    for begin in range(0, rows, CHUNK):
        n = min(CHUNK, rows - begin)
        # Slices, not sums of offsets: only so is the loop vectorised.
        high, low = prefix[begin : begin + n], column[begin : begin + n]
        for i in range(n):
            index[i] = np.uint16(high[i] * radix + low[i])
        for j in range(n // 8):
            # Eight 16-bit codes by two loads.
            x, y = words[2 * j], words[2 * j + 1]
            h0[x & mask] += one
            h1[(x >> np.uint64(16)) & mask] += one
            h2[(x >> np.uint64(32)) & mask] += one
            h3[x >> np.uint64(48)] += one
            h4[y & mask] += one
            h5[(y >> np.uint64(16)) & mask] += one
            h6[(y >> np.uint64(32)) & mask] += one
            h7[y >> np.uint64(48)] += one
        for i in range(n - n % 8, n):
            h0[index[i]] += one


@njit(cache=True, nogil=True)
def gather(copies: NDArray[np.uint32], cells: int, table: NDArray[np.int64]) -> None:
    """Add the eight histograms to the table and clear them."""
    for copy in range(COPIES):
        for c in range(cells):
            table[c] += copies[copy * cells + c]
    copies[: COPIES * cells] = 0


@njit(cache=True, nogil=True)
def count_runs(
    codes: NDArray[Any],
    m: int,
    weights: NDArray[np.int64],
    cardinalities: NDArray[np.int64],
    sets: NDArray[np.int64],
    runs: NDArray[np.int64],
    chosen: NDArray[np.bool_],
    offsets: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """Add the counts of many tables to `out`; see the same function for bitmaps.

    `weights` is empty when every row counts once. The cells of a chosen table fit 32 bits.
    """
    size = sets.shape[1]
    prefix = np.empty(BLOCK, np.uint32)
    short = np.empty(BLOCK, np.uint16)
    index = np.empty(CHUNK, np.uint16)
    words = index.view(np.uint64)
    copies = np.zeros(COPIES * _SMALL, np.uint32)
    for start in range(0, m, BLOCK):
        rows = min(BLOCK, m - start)
        for run in range(runs.size - 1):
            begin, end = runs[run], runs[run + 1]
            if not np.any(chosen[begin:end]):
                continue
            prefix[:rows] = 0
            for t in range(size - 1):
                v = sets[begin, t]
                radix = np.uint32(cardinalities[v])
                column = codes[v * m + start : v * m + start + rows]
                for i in range(rows):
                    prefix[i] = np.uint32(prefix[i] * radix + column[i])
            for i in range(rows):
                short[i] = np.uint16(prefix[i])
            for q in range(begin, end):
                if not chosen[q]:
                    continue
                v = sets[q, size - 1]
                r = cardinalities[v]
                column = codes[v * m + start : v * m + start + rows]
                table = out[offsets[q] : offsets[q + 1]]
                if weights.size > 0:
                    radix64 = np.uint64(r)
                    for i in range(rows):
                        table[prefix[i] * radix64 + column[i]] += weights[start + i]
                elif table.size <= _SMALL:
                    spread(short, column, r, table.size, index, words, copies)
                    gather(copies, table.size, table)
                else:
                    radix64 = np.uint64(r)
                    for i in range(rows):
                        table[prefix[i] * radix64 + column[i]] += 1
