"""Tables of counts from coded rows: exact, on one thread, at the speed of memory.

Codes are a C-contiguous ``(d, m)`` array of ``uint8`` or ``uint16``: one contiguous row per
variable, one column per row of data. The compiled core intersects bitmaps for unweighted rows and
small tables, and fills histograms for the rest; it chooses by measured costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError
from isthmus.kernels import _native

CountingMethod = _native.CountingMethod


Codes = NDArray[np.uint8] | NDArray[np.uint16]
Weights = NDArray[np.int64] | None
Cardinalities = Sequence[int] | NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class Tables:
    """Tables of many sets of variables in one array.

    Attributes
    ----------
    sets
        The variables of each table, one row per table.
    offsets
        Where each table starts in `values`; one more at the end.
    values
        The cells, each table in C order.
    cardinalities
        Number of levels of each variable.
    """

    sets: NDArray[np.int64]
    offsets: NDArray[np.int64]
    values: NDArray[np.int64]
    cardinalities: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.sets)

    def table(self, i: int) -> NDArray[np.int64]:
        """Return the `i`-th table, a view with one axis per variable."""
        shape = tuple(self.cardinalities[self.sets[i]].tolist())
        return self.values[self.offsets[i] : self.offsets[i + 1]].reshape(shape)


def tally(
    codes: Codes,
    weights: Weights,
    cardinalities: Cardinalities,
    variables: Sequence[int],
    *,
    method: CountingMethod = CountingMethod.FASTEST,
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
        The axes of the table, in this order. No variables give the number of rows, without axes.
    method
        How to count. The result does not depend on it.
    """
    return tally_many(codes, weights, cardinalities, [variables], method=method)[0]


def tally_many(
    codes: Codes,
    weights: Weights,
    cardinalities: Cardinalities,
    sets: Sequence[Sequence[int]],
    *,
    method: CountingMethod = CountingMethod.FASTEST,
) -> list[NDArray[np.int64]]:
    """Count several tables, reading each block of rows once for all tables of one size.

    See `tally` for the parameters. The tables come in the order of `sets`.
    """
    cards = _checked(codes, weights, cardinalities)
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
        rows = np.array([sets[i] for i in places], np.int64)
        try:
            offsets, values = _native.tally_sets(codes, weights, cards, rows, method)
        except ValueError as error:
            raise DataError(str(error)) from None
        tables = Tables(rows, offsets, values, cards)
        for line, i in enumerate(places):
            result[i] = tables.table(line).copy() if len(places) > 1 else tables.table(line)
    return [table for table in result if table is not None]


def add_tables(
    codes: Codes, cardinalities: Cardinalities, sets: NDArray[np.int64], values: NDArray[np.int64]
) -> None:
    """Count rows in the tables of equally large sets, and add them to the cells of `values`.

    Parameters
    ----------
    codes, cardinalities
        As for `tally`.
    sets
        The variables of each table, one row per table.
    values
        The cells of all tables one after the other, each in C order.
    """
    cards = _checked(codes, None, cardinalities)
    try:
        _, found = _native.tally_sets(codes, None, cards, sets, CountingMethod.FASTEST)
    except ValueError as error:
        raise DataError(str(error)) from None
    values += found


def tally_all(
    codes: Codes,
    weights: Weights,
    cardinalities: Cardinalities,
    size: int,
    *,
    method: CountingMethod = CountingMethod.FASTEST,
) -> Tables:
    """Count the tables of all sets of `size` variables, in lexicographic order.

    See `tally` for the other parameters.
    """
    cards = _checked(codes, weights, cardinalities)
    try:
        offsets, values = _native.tally_all(codes, weights, cards, max(size, 0), method)
    except ValueError as error:
        raise DataError(str(error)) from None
    return Tables(_all_sets(len(codes), size), offsets, values, cards)


def _all_sets(d: int, size: int) -> NDArray[np.int64]:
    members = (v for chosen in combinations(range(d), size) for v in chosen)
    return np.fromiter(members, np.int64, comb(d, size) * size).reshape(-1, size)


def _checked(codes: Codes, weights: Weights, cardinalities: Cardinalities) -> NDArray[np.int64]:
    """Check types; everything else is checked by the compiled core."""
    if codes.ndim != 2 or codes.dtype not in (np.uint8, np.uint16) or not codes.flags.c_contiguous:
        raise DataError(
            f"Codes of type {codes.dtype} and shape {codes.shape} were given; a C-contiguous array"
            " (variables, rows) of uint8 or uint16 is needed: see np.ascontiguousarray."
        )
    if weights is not None and (weights.ndim != 1 or weights.dtype != np.int64):
        raise DataError(
            f"Weights of type {weights.dtype} and shape {weights.shape} were given;"
            f" int64 and ({codes.shape[1]},) is needed, one weight per row."
        )
    cards = np.ascontiguousarray(cardinalities, dtype=np.int64)
    if cards.shape != (len(codes),):
        raise DataError(f"{len(codes)} cardinalities of 1 to 65536 are needed, one per variable.")
    return cards


__all__ = ["CountingMethod", "Tables", "add_tables", "tally", "tally_all", "tally_many"]
