"""Statistics as integers on a grid that is finer than any score can notice.

Each value is rounded to a whole number of small units of its own, and the units are added and
multiplied without any rounding. A sum over sites is therefore a function of the pooled rows alone:
its last digits say nothing about which site holds which row. The sums are moved to the pooled mean
in integers, too, so that nothing is lost to cancellation, however wide the bounds are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats
from isthmus.errors import DataError, StudyError
from isthmus.statistics import Kind, Moments, Schema
from isthmus_joint.agreement.study import Study, require_bounds
from isthmus_joint.secure_sum.protocol import secure_sums
from isthmus_joint.secure_sum.terms import LimbArray, from_digits, to_ints

LIMBS = 6
"""Moments are sent as integers of 192 bits."""

GUARD = 32
"""Additional bits in which the shifts are stored."""

NUMBERS = 2**22
"""Maximum number of values in one round."""

CENTRE = 26
"""Binary digits of the centre of the bounds, in units of half of their range."""

IMPOSSIBLE = "The numbers of all sites together are not those of any tables that fit the study."

Objects = NDArray[Any]


@final
@dataclass(frozen=True)
class FixedPointEncoding:
    """The common shift and unit of each feature column, fixed by the bounds of the study.

    Parameters
    ----------
    schema
        The variables.
    bounds
        Lowest and highest value of each continuous variable.
    rows
        The largest number of rows of a site.
    sites
        The largest number of sites in a sum.
    within
        Whether moments are about the mean of each site; see `within_sites`.
    """

    schema: Schema
    bounds: Mapping[str, tuple[float, float]]
    rows: int
    sites: int
    within: bool = False

    def __post_init__(self) -> None:
        require_bounds(self.schema, self.bounds)
        if self.rows < 1 or self.fraction < 64:
            raise StudyError(
                f"{self.rows} rows per site at {self.sites} sites are too many to be summed. "
                "State the largest number of rows that a site can have."
            )

    @classmethod
    def of(cls, study: Study) -> FixedPointEncoding:
        """Return the grid of a study."""
        protocol = secure_sums(study.protocol)
        return cls(
            study.schema,
            study.bounds,
            protocol.rows,
            len(study.members),
            study.within_sites,
        )

    def over(self, schema: Schema) -> FixedPointEncoding:
        """Return the grid of some of the variables, or of the variables with basis functions."""
        bounds = {n: b for n, b in self.bounds.items() if n in schema}
        return replace(self, schema=schema, bounds=bounds)

    @property
    def fraction(self) -> int:
        """Binary digits after the point, in units of the bounds. Two digits are left free."""
        return 32 * LIMBS - 2 - (self.rows * self.sites).bit_length()

    @cached_property
    def shift(self) -> tuple[float, ...]:
        """The centre of the bounds of each feature column, in few digits; zero for a level.

        The distance of a frozen value from it is then a number without rounding errors.
        """
        return tuple(_centre(low, high) for low, high in self._ranges)

    @cached_property
    def exponents(self) -> NDArray[np.int64]:
        """The unit of each feature column as a power of two; no value is farther from the shift."""
        spans = (
            max(high - s, s - low) for (low, high), s in zip(self._ranges, self.shift, strict=True)
        )
        return np.array([math.frexp(span)[1] for span in spans], dtype=np.int64)

    @cached_property
    def _ranges(self) -> list[tuple[float, float]]:
        ranges: list[tuple[float, float]] = []
        for v in self.schema.variables:
            if v.kind is Kind.DISCRETE:
                ranges += [(-1.0, 1.0)] * v.width
                continue
            ranges.append(self.bounds[v.name])
            if v.features is not None:
                ranges += v.features.bounds()
        return ranges

    @cached_property
    def pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Row and column indices of the upper triangle."""
        return np.triu_indices(self.schema.width)

    @property
    def size(self) -> int:
        """How many numbers the moments have: n, the sums, the upper triangle of the products."""
        p = self.schema.width
        return 1 + p + p * (p + 1) // 2

    def decode(self, total: LimbArray) -> Moments:
        """Read the moments of all sites, about their pooled mean."""
        n, *rest = to_ints(total)
        p = self.schema.width
        wide = self.fraction + GUARD
        sums = _objects(v << GUARD for v in rest[:p])
        mean = self.mean(n, rest[:p])
        offset = self._offsets(mean, wide)
        i, j = self.pairs
        gram = _objects(v << (2 * wide - self.fraction) for v in rest[p:])
        gram = gram - sums[i] * offset[j] - offset[i] * sums[j] + n * (offset[i] * offset[j])
        square = np.zeros((p, p))
        one = 1 << (2 * wide)
        square[i, j] = [v / one for v in gram]
        # Each site rounds to half a unit. Anything smaller is zero, so a constant stays constant.
        noise = math.ldexp(2 * self.sites + 2, -self.fraction)
        still = square.diagonal() <= noise
        square[still, :] = square[:, still] = 0.0
        square = np.ldexp(square, self.exponents[:, None] + self.exponents)
        left = np.array([v / (1 << wide) for v in sums - n * offset])
        return Moments(
            self.schema,
            n,
            mean,
            np.ldexp(left, self.exponents),
            square + np.triu(square, 1).T,
        )

    def require_plausible(self, total: LimbArray) -> None:
        """Raise `DataError` unless rows within the bounds could have these sums and products.

        The products may be left out.
        """
        n, *rest = to_ints(total)
        require_count(n, self.rows * self.sites)
        # Each site rounds to half a unit, and checks its own numbers with a little room.
        limit = (n << self.fraction) + (n << (self.fraction - 30)) + self.sites
        p = self.schema.width
        room = (2 * self.sites + 2) * n << self.fraction
        i, j = self.pairs
        squares = [v for v, own in zip(rest[p:], i == j, strict=False) if own]
        inside = all(abs(v) <= limit for v in rest)
        # No variance is negative.
        spread = (
            (n * square << self.fraction) >= v**2 - room
            for v, square in zip(rest, squares, strict=False)
        )
        if not (inside and all(spread)):
            raise DataError(IMPOSSIBLE)

    def mean(self, n: int, sums: Sequence[int]) -> Floats:
        """Return the mean of each column, given the sums."""
        units = [Fraction(2) ** (int(e) - self.fraction) for e in self.exponents]
        parts = zip(self.shift, sums, units, strict=True)
        return np.array([float(Fraction(s) + Fraction(v, n) * u) for s, v, u in parts])

    def _offsets(self, shift: NDArray[np.float64], wide: int) -> Objects:
        """Return the distance of a shift from the common one, in fine units."""
        return _objects(
            round((Fraction(a) - Fraction(b)) * Fraction(2) ** (wide - int(e)))
            for a, b, e in zip(shift.tolist(), self.shift, self.exponents, strict=True)
        )

    def require_rows(self, number: int) -> None:
        """Raise `DataError` if a site has more rows than the study allows."""
        if number > self.rows:
            raise DataError("The site has more rows than the study allows.")

    def require_inside(self, inside: NDArray[np.bool_]) -> None:
        """Raise `DataError` for columns whose values are not all inside of the bounds."""
        if inside.all():
            return
        blocks = zip(self.schema.variables, self.schema.blocks, strict=True)
        named = [v.name for v, (start, stop) in blocks if not inside[start:stop].all()]
        raise DataError(
            f"Values lie outside of the bounds of the study, in {named[:10]}. Correct them at the "
            "site, or ask the author of the study for wider bounds."
        )


def _centre(low: float, high: float) -> float:
    """Return a multiple of a small share of the range near the middle of it."""
    unit = math.ldexp(1.0, math.frexp(high / 2 - low / 2)[1] - CENTRE)
    return float(np.rint((low / 2 + high / 2) / unit) * unit)


def _objects(values: Any) -> Objects:
    items = list(values)
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def require_count(n: int, most: int) -> None:
    """Raise `DataError` unless this is a possible number of rows of all sites."""
    if not 1 <= n <= most:
        raise DataError(f"{IMPOSSIBLE} They say that there are {n} rows.")


# --- Exact products of rows ----------------------------------------------------------------------

# Products of whole numbers in floating point, slice by slice (Ozaki et al. 2012, "Error-free
# transformations of matrix multiplication"). A slice of a value has so few digits that the sums of
# products of slices are exact.

DIGITS = 16
"""Binary digits of a slice."""

ROWS = 2**20
"""Maximum number of rows per product, whose sums have 2 · `DIGITS` + 21 <= 53 digits."""

IN_MEMORY = 2**22
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
    step = int(np.clip(IN_MEMORY // (slices * max(p, 1)), 1024, ROWS))
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
    values = dict(zip(schema.names, rows.T, strict=True))
    for variable, column in zip(schema.variables, rows.T, strict=True):
        if variable.kind is Kind.DISCRETE:
            yield (column[:, None] == np.arange(1, len(variable.levels))).astype(np.float64)
        else:
            yield column[:, None]
            if variable.features is not None:
                yield variable.features.evaluate(column, values).T


def _slices(values: Floats, number: int) -> Iterator[tuple[np.ndarray, Floats]]:
    """Yield slices of the digits of values, highest first: columns that are not zero, and them."""
    for _ in range(number):
        values = np.ldexp(values, DIGITS)
        part = np.rint(values)
        values = values - part
        columns = np.flatnonzero(part.any(axis=0))
        yield columns, part[:, columns]
