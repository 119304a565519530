"""Sums and products of rows in integers, which do not depend on how rows are split over sites.

Each value is rounded to a whole number of small units of its own, and the units are added and
multiplied without any rounding. A sum over sites is therefore a function of the pooled rows alone:
its last digits say nothing about which site holds which row.

The products of whole numbers are computed in floating point, slice by slice (Ozaki et al. 2012,
"Error-free transformations of matrix multiplication"): a slice of a value has so few digits that
the sums of products of slices are exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from isthmus.joint.federation.requests.fixed_point import LIMBS, FixedPointEncoding
from isthmus.joint.secure_sum.limbs import LimbArray, from_digits
from isthmus.statistics import Kind, Schema
from isthmus.types import Floats

DIGITS = 16
"""Binary digits of a slice."""

ROWS = 2**20
"""Maximum number of rows per product, whose sums have 2 · `DIGITS` + 21 <= 53 digits."""

NUMBERS = 2**22
"""Approximate number of values in memory at once."""


def encode_rows(
    grid: FixedPointEncoding, rows: Floats, places: Sequence[int] | None = None
) -> LimbArray:
    """Return number, sums and products of rows, encoded from the rows themselves.

    Parameters
    ----------
    rows
        One row per row of the data, levels as codes. They may be mapped from a file.
    places
        The column of each variable of the grid's schema; all in their order by default.

    Raises
    ------
    DataError
        Values lie outside of the bounds of the study. The message contains no value.
    """
    grid.require_rows(len(rows))
    p, slices = grid.schema.width, grid.fraction // (2 * DIGITS)
    sums = np.zeros((slices, p), dtype=np.int64)
    # The products of slices s and t are in the same unit whenever s + t is the same.
    products = np.zeros((2 * slices - 1, p, p), dtype=np.int64)
    step = int(np.clip(NUMBERS // (slices * max(p, 1)), 1024, ROWS))
    for start in range(0, len(rows), step):
        some = np.asarray(rows[start : start + step])
        values = _units(grid, some if places is None else some[:, list(places)])
        parts = list(_slices(values, slices))
        for s, (columns, part) in enumerate(parts):
            sums[s, columns] += part.sum(axis=0).astype(np.int64)
            for t, (others, other) in enumerate(parts[s:], start=s):
                product = (part.T @ other).astype(np.int64)
                products[s + t][np.ix_(columns, others)] += product
                if t > s:
                    products[s + t][np.ix_(others, columns)] += product.T
    i, j = grid.pairs
    rest = grid.fraction - DIGITS * slices
    count = np.array([[len(rows)]])
    return np.concatenate(
        [
            from_digits(count, 0, LIMBS),
            from_digits(sums[::-1], rest, LIMBS),
            from_digits(products[::-1, i, j], rest - DIGITS * slices, LIMBS),
        ]
    )


def _units(grid: FixedPointEncoding, rows: Floats) -> Floats:
    """Return the columns of the rows, less the common shifts and in units of the bounds."""
    columns = np.concatenate(list(_columns(grid.schema, rows)), axis=1)
    values: Floats = np.ldexp(columns - np.array(grid.shift), -grid.exponents)
    grid.require_inside(np.abs(values).max(axis=0, initial=0.0) <= 1.0)
    return values


def _columns(schema: Schema, rows: Floats) -> Iterator[Floats]:
    """Yield the columns of each variable, in the order of the schema."""
    for variable, column in zip(schema.variables, rows.T, strict=True):
        if variable.kind is Kind.DISCRETE:
            yield (column[:, None] == np.arange(1, len(variable.levels))).astype(np.float64)
        else:
            yield column[:, None]
            if variable.features is not None:
                yield variable.features.evaluate(column).T


def _slices(values: Floats, number: int) -> Iterator[tuple[np.ndarray, Floats]]:
    """Yield slices of the digits of values, highest first: columns that are not zero, and them."""
    for _ in range(number):
        values = np.ldexp(values, DIGITS)
        part = np.rint(values)
        values = values - part
        columns = np.flatnonzero(part.any(axis=0))
        yield columns, part[:, columns]
