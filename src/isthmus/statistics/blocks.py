"""Contingency tables of counts: dense arrays or coded rows."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from isthmus.errors import DataError
from isthmus.kernels.counting import tally_many
from isthmus.statistics.coded import CodedRows, as_codes, histogram
from isthmus.statistics.plan import CountPlan
from isthmus.statistics.schema import Schema
from isthmus.types import Integers

DENSE = 2**20
"""A planned set with more cells than this is stored as coded rows."""

LARGEST = 2**28
"""Maximum number of cells in one table, and in all planned tables together."""

Positions: TypeAlias = tuple[int, ...]
Block: TypeAlias = Integers | CodedRows


def planned_sets(schema: Schema, plan: CountPlan) -> list[Positions]:
    """Return the largest planned sets; raise an error if their tables are too large."""
    sizes = schema.cardinalities
    number = plan.size(schema.names)
    cells = 0
    if number <= LARGEST:
        found = list(plan.maximal(schema.names))
        cells = sum(min(math.prod(int(sizes[i]) for i in s), DENSE) for s in found)
        if cells <= LARGEST:
            return found
    raise DataError(
        f"The plan of {plan} needs {number:,} tables"
        + (f" with {cells:,} cells" if cells else "")
        + f"; at most {LARGEST:,} cells are allowed. Plan smaller or fewer sets, "
        "or CountPlan.everything()."
    )


def tally(rows: CodedRows, sizes: Integers, within: Positions) -> Integers:
    """Return the dense table of some variables of coded rows, with axes in this order."""
    part = rows.take(within)
    return histogram(part, sizes[list(within)]).reshape([int(sizes[i]) for i in within])


def count_set(rows: CodedRows, positions: Positions, sizes: Integers) -> Block:
    """Return the table of a planned set: dense, or coded rows if it is mostly empty."""
    cells = math.prod(int(sizes[i]) for i in positions)
    if cells > DENSE:
        return rows.take(positions).distinct(sizes[list(positions)])
    return tally(rows, sizes, positions)


def count_sets(rows: CodedRows, sets: list[Positions], sizes: Integers) -> dict[Positions, Block]:
    """Return the tables of planned sets, the dense ones in one pass over the rows."""
    dense = [s for s in sets if math.prod(int(sizes[i]) for i in s) <= DENSE]
    codes: Any = rows.codes
    held: dict[Positions, Block] = dict(
        zip(dense, tally_many(codes, rows.weights, sizes, dense), strict=True)
    )
    for positions in sets:
        if positions not in held:
            held[positions] = count_set(rows, positions, sizes)
    return held


def nonzero_rows(table: Integers) -> CodedRows:
    """Convert the non-empty cells of a dense table to coded rows."""
    at = np.nonzero(table)
    codes = np.array(at).reshape(table.ndim, -1)
    return CodedRows(as_codes(codes, np.array(table.shape, dtype=np.int64)), table[at])


def merged(a: Block, b: Block, sizes: Integers) -> Block:
    """Return the sum of two tables of the same variables."""
    if not isinstance(a, CodedRows) and not isinstance(b, CodedRows):
        return a + b
    left = a if isinstance(a, CodedRows) else nonzero_rows(a)
    right = b if isinstance(b, CodedRows) else nonzero_rows(b)
    joined = left.joined(right)
    # Rows that each count once are not sorted: that would cost more than it saves.
    return joined if joined.weights is None else joined.distinct(sizes)


def same(a: Block, b: Block, sizes: Integers) -> bool:
    """Return whether two tables have the same counts, in either form."""
    left = (a if isinstance(a, CodedRows) else nonzero_rows(a)).distinct(sizes)
    right = (b if isinstance(b, CodedRows) else nonzero_rows(b)).distinct(sizes)
    return np.array_equal(left.codes, right.codes) and np.array_equal(left.filled(), right.filled())
