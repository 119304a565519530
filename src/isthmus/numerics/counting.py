"""Tables of counts from coded rows, exact, on one thread, at the speed of memory.

Codes are a C-contiguous ``(d, m)`` array of ``uint8`` or ``uint16``: one contiguous line a
variable, one column a row of data. Two kernels: bitmaps for unweighted rows and small tables,
histograms for the rest; `_bitmaps_pay` chooses by measured costs. This module imports Numba:
import it inside functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError
from isthmus.numerics import counting_bitmap as bitmap
from isthmus.numerics import counting_histogram as histogram

MAX_CELLS = 2**27
"""Cells of the largest table that is counted."""

MAX_TOTAL_CELLS = 2**29
"""Cells of all tables of one call together."""

Codes = NDArray[np.uint8] | NDArray[np.uint16]
Weights = NDArray[np.int64] | None

# Nanoseconds a row, measured (benchmarks/counting.py): one AND-popcount, by the widest vectors
# of the machine; making one bitmap; one histogram step in a small and in a large table.
_AND_COST = {"avx512vpopcntdq": 0.0022, "avx2": 0.006, "": 0.015}
_PACK_COST = 0.0015
_SMALL_COST = 0.9
_LARGE_COST = 2.5
_SMALL_CELLS = 8_192

# Bits of the bitmaps of one block: they stay in the second-level cache.
_BLOCK_BITS = 2**22


@dataclass(frozen=True, eq=False)
class Tables:
    """Tables of many sets of variables in one array.

    Attributes
    ----------
    sets
        The variables of each table, one line a table.
    offsets
        Where each table starts in `values`; one more at the end.
    values
        The cells, each table in C order.
    cardinalities
        Of all variables.
    """

    sets: NDArray[np.int64]
    offsets: NDArray[np.int64]
    values: NDArray[np.int64]
    cardinalities: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.sets)

    def table(self, i: int) -> NDArray[np.int64]:
        """The `i`-th table, a view with one axis a variable."""
        shape = tuple(self.cardinalities[self.sets[i]].tolist())
        return self.values[self.offsets[i] : self.offsets[i + 1]].reshape(shape)


def tally(
    codes: Codes,
    weights: Weights,
    cardinalities: Sequence[int] | NDArray[np.integer[Any]],
    variables: Sequence[int],
) -> NDArray[np.int64]:
    """Count the rows in each cell of one table.

    Parameters
    ----------
    codes
        ``(d, m)``, C-contiguous; ``codes[v, i]`` is the level of variable `v` in row `i`.
    weights
        How often each row counts; ``None``: once.
    cardinalities
        Number of levels of each variable.
    variables
        The axes of the table, in this order. None at all gives the number of rows, without axes.
    """
    return tally_many(codes, weights, cardinalities, [variables])[0]


def tally_many(
    codes: Codes,
    weights: Weights,
    cardinalities: Sequence[int] | NDArray[np.integer[Any]],
    sets: Sequence[Sequence[int]],
) -> list[NDArray[np.int64]]:
    """Count several tables, reading each block of rows once for all tables of one size.

    See `tally` for the parameters. The tables come in the order of `sets`.
    """
    cards, weighted = _checked(codes, weights, cardinalities, sets)
    result: list[NDArray[np.int64] | None] = [None] * len(sets)
    by_size: dict[int, list[int]] = {}
    for i, variables in enumerate(sets):
        by_size.setdefault(len(variables), []).append(i)
    for size, places in by_size.items():
        if size == 0:
            total = codes.shape[1] if weights is None else weights.sum()
            for i in places:
                result[i] = np.array(total, np.int64)
            continue
        # Sets that share all but the last variable stand together.
        places.sort(key=lambda i: tuple(sets[i]))
        lines = np.array([sets[i] for i in places], np.int64)
        tables = _count(codes, weighted, cards, lines)
        for line, i in enumerate(places):
            result[i] = tables.table(line).copy() if len(places) > 1 else tables.table(line)
    return [table for table in result if table is not None]


def tally_all(
    codes: Codes,
    weights: Weights,
    cardinalities: Sequence[int] | NDArray[np.integer[Any]],
    size: int,
) -> Tables:
    """Count the tables of all sets of `size` variables, in lexicographic order.

    See `tally` for the other parameters.
    """
    d = len(codes)
    if not 1 <= size <= d:
        raise DataError(f"Sets of {size} variables were asked of {d}: ask for 1 to {d}.")
    cards, weighted = _checked(codes, weights, cardinalities, [range(d)])
    return _count_all(codes, weighted, cards, size)


def _count_all(
    codes: Codes, weights: NDArray[np.int64], cards: NDArray[np.int64], size: int
) -> Tables:
    lines = _all_sets(len(codes), size)
    if size == 1:
        return _count(codes, weights, cards, lines)
    tables, runs = _empty_tables(cards, lines)
    chosen = _bitmaps_pay(cards, lines, weighted=weights.size > 0, whole=False)
    if chosen.any():
        lower = _count_all(codes, weights, cards, size - 1)
        _run_bitmaps(codes, tables, runs, chosen, whole=False)
        d = len(codes)
        table = [[comb(n, k) for k in range(size + 1)] for n in range(d + 1)]
        bitmap.complete(
            lines,
            cards,
            chosen,
            tables.offsets,
            lower.offsets,
            lower.values,
            np.array(table, np.int64),
            tables.values,
        )
    _run_histograms(codes, weights, tables, runs, ~chosen)
    return tables


def _count(
    codes: Codes, weights: NDArray[np.int64], cards: NDArray[np.int64], lines: NDArray[np.int64]
) -> Tables:
    tables, runs = _empty_tables(cards, lines)
    chosen = _bitmaps_pay(cards, lines, weighted=weights.size > 0, whole=True)
    if chosen.any():
        _run_bitmaps(codes, tables, runs, chosen, whole=True)
        bitmap.subtract(lines, cards, chosen, tables.offsets, tables.values)
    _run_histograms(codes, weights, tables, runs, ~chosen)
    return tables


def _run_bitmaps(
    codes: Codes,
    tables: Tables,
    runs: NDArray[np.int64],
    chosen: NDArray[np.bool_],
    *,
    whole: bool,
) -> None:
    cards, size = tables.cardinalities, tables.sets.shape[1]
    used = np.unique(tables.sets[chosen])
    first = np.zeros(len(cards), np.int64)
    first[used] = np.concatenate([[0], np.cumsum(cards[used] - 1)[:-1]])
    bitmaps = int((cards[used] - 1).sum()) + size
    m = codes.shape[1]
    words = max(64, min(512, _BLOCK_BITS // (64 * bitmaps)))
    words = min(words, max(1, -(-m // 64)))
    words += -words % bitmap.LANES
    # Vectors that straddle two cache lines cost twice: start at a multiple of 64 bytes.
    room = np.empty(bitmaps * words + bitmap.LANES, np.uint64)
    shift = (-room.ctypes.data % 64) // 8
    bitmap.count_runs(
        codes.reshape(-1),
        m,
        cards,
        used,
        first,
        tables.sets,
        runs,
        chosen,
        tables.offsets,
        int(whole),
        words,
        room[shift : shift + bitmaps * words],
        tables.values,
    )


def _run_histograms(
    codes: Codes,
    weights: NDArray[np.int64],
    tables: Tables,
    runs: NDArray[np.int64],
    chosen: NDArray[np.bool_],
) -> None:
    if not chosen.any():
        return
    histogram.count_runs(
        codes.reshape(-1),
        codes.shape[1],
        weights,
        tables.cardinalities,
        tables.sets,
        runs,
        chosen,
        tables.offsets,
        tables.values,
    )


@cache
def _and_cost() -> float:
    from llvmlite.binding import get_host_cpu_features

    features = get_host_cpu_features()
    return next(cost for name, cost in _AND_COST.items() if not name or features.get(name))


def _bitmaps_pay(
    cards: NDArray[np.int64], lines: NDArray[np.int64], *, weighted: bool, whole: bool
) -> NDArray[np.bool_]:
    """For each set, whether bitmaps are the faster kernel."""
    if weighted:
        return np.zeros(len(lines), np.bool_)
    levels = cards[lines].astype(np.float64)
    cells = levels.prod(axis=1)
    steps = cells if whole else (levels - 1).prod(axis=1)
    # Making the bitmaps is shared by all sets.
    shared = _PACK_COST * float(cards[np.unique(lines)].sum()) / len(lines)
    by_bitmaps = _and_cost() * steps + shared
    by_histogram = np.where(cells <= _SMALL_CELLS, _SMALL_COST, _LARGE_COST)
    result: NDArray[np.bool_] = by_bitmaps < by_histogram
    return result


def _all_sets(d: int, size: int) -> NDArray[np.int64]:
    flat = np.fromiter(
        (v for members in combinations(range(d), size) for v in members),
        np.int64,
        comb(d, size) * size,
    )
    return flat.reshape(-1, size)


def _empty_tables(
    cards: NDArray[np.int64], lines: NDArray[np.int64]
) -> tuple[Tables, NDArray[np.int64]]:
    """Tables of zeros, and where the runs of sets that differ in the last variable start."""
    cells = cards[lines].astype(np.float64).prod(axis=1)
    if cells.max() > MAX_CELLS or cells.sum() > MAX_TOTAL_CELLS:
        raise DataError(
            f"Tables of up to {cells.max():.3g} cells, {cells.sum():.3g} together, were asked for;"
            f" at most {MAX_CELLS:,} in one and {MAX_TOTAL_CELLS:,} together are counted."
            " Ask for fewer variables at a time, or merge rare levels."
        )
    offsets = np.concatenate([[0], np.cumsum(cells.astype(np.int64))]).astype(np.int64)
    starts = np.flatnonzero((lines[1:, :-1] != lines[:-1, :-1]).any(axis=1)) + 1
    runs = np.concatenate([[0], starts, [len(lines)]]).astype(np.int64)
    return Tables(lines, offsets, np.zeros(int(offsets[-1]), np.int64), cards), runs


def _checked(
    codes: Codes,
    weights: Weights,
    cardinalities: Sequence[int] | NDArray[np.integer[Any]],
    sets: Sequence[Sequence[int]],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Cardinalities and weights as the kernels want them; everything they rely on is tested."""
    if codes.ndim != 2 or codes.dtype not in (np.uint8, np.uint16) or not codes.flags.c_contiguous:
        raise DataError(
            f"Codes of type {codes.dtype} and shape {codes.shape} were given; a C-contiguous array"
            " (variables, rows) of uint8 or uint16 is needed: see np.ascontiguousarray."
        )
    d, m = codes.shape
    cards = np.asarray(cardinalities).astype(np.int64)
    if cards.shape != (d,) or (d and cards.min() < 1):
        raise DataError(f"{d} cardinalities of at least 1 are needed, one a variable.")
    if weights is not None and (weights.shape != (m,) or weights.dtype != np.int64):
        raise DataError(
            f"Weights of type {weights.dtype} and shape {weights.shape} were given;"
            f" int64 and ({m},) is needed, one weight a row."
        )
    used = sorted({int(v) for variables in sets for v in variables})
    if used and not 0 <= used[0] <= used[-1] < d:
        raise DataError(
            f"Variables {used[0]} to {used[-1]} were asked for; there are 0 to {d - 1}."
        )
    for v in used:
        if m and int(codes[v].max()) >= cards[v]:
            raise DataError(
                f"Variable {v} has code {int(codes[v].max())} but {cards[v]} levels, which allow"
                f" codes 0 to {cards[v] - 1}."
            )
    if weights is None:
        return cards, np.empty(0, np.int64)
    # An empty array of weights means none to the kernels; no rows give the same either way.
    return cards, np.ascontiguousarray(weights)
