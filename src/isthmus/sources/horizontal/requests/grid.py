"""Statistics as integers on a grid so fine that no score sees it.

Sites compute their moments about a shift of their own, near their means, in floating point. What
follows is integer arithmetic: moving them to the common shift, adding them up under masks, and
moving the sums to the pooled mean. So nothing cancels, whatever the bounds of the study are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError, StudyError
from isthmus.sources.horizontal.secure_sum.words import (
    Words,
    from_int64,
    from_ints,
    to_int64,
    to_ints,
)
from isthmus.statistics import CodedRows, Counts, Kind, Moments, Plan, Schema
from isthmus.statistics.blocks import DENSE, planned_sets

LIMBS = 4
"""Moments travel in words of 128 bits."""

GUARD = 32
"""Further bits in which the shifts are held."""

NUMBERS = 2**22
"""No more numbers than this are summed in one round."""

Objects = NDArray[Any]


@final
@dataclass(frozen=True)
class Grid:
    """The common shift and unit of each feature column, fixed by the bounds of the study.

    Parameters
    ----------
    schema
        The variables.
    bounds
        Lowest and highest value of each continuous variable.
    rows
        The most rows a site may have.
    sites
        The most sites that are added up.
    """

    schema: Schema
    bounds: Mapping[str, tuple[float, float]]
    rows: int
    sites: int

    def __post_init__(self) -> None:
        lacking = [n for n in self.schema.of_kind(Kind.CONTINUOUS) if n not in self.bounds]
        if lacking:
            raise StudyError(
                f"The variables {lacking[:10]} are continuous and have no bounds. State the lowest "
                "and highest value that can occur, from what the variable is and not from data."
            )
        wrong = [
            n
            for n, (low, high) in self.bounds.items()
            if not (math.isfinite(low) and math.isfinite(high) and low < high)
        ]
        if wrong:
            raise StudyError(f"The bounds of {wrong[:10]} are not two finite, ascending numbers.")
        if self.rows < 1 or self.fraction < 64:
            raise StudyError(
                f"{self.rows} rows a site at {self.sites} sites leave no room on the grid. "
                "State the most rows that a site can have."
            )

    @property
    def fraction(self) -> int:
        """Binary digits after the point, in units of the bounds; two digits are left free."""
        return 32 * LIMBS - 2 - (self.rows * self.sites).bit_length()

    @cached_property
    def shift(self) -> tuple[float, ...]:
        """The middle of the bounds of each feature column; zero for a level."""
        return tuple(low / 2 + high / 2 for low, high in self._ranges)

    @cached_property
    def exponents(self) -> NDArray[np.int64]:
        """The unit of each feature column is two to this power, and no value is further off."""
        spans = (
            max(high - s, s - low) for (low, high), s in zip(self._ranges, self.shift, strict=True)
        )
        return np.array([math.frexp(span)[1] for span in spans], dtype=np.int64)

    @cached_property
    def _ranges(self) -> list[tuple[float, float]]:
        found: list[tuple[float, float]] = []
        for v in self.schema.variables:
            one = self.bounds[v.name] if v.kind is Kind.CONTINUOUS else (-1.0, 1.0)
            found += [one] * v.width
        return found

    @cached_property
    def pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The upper triangle."""
        return np.triu_indices(len(self.schema.columns))

    @property
    def size(self) -> int:
        """How many numbers the moments are: n, the sums, half the products."""
        p = len(self.schema.columns)
        return 1 + p + p * (p + 1) // 2

    def encode(self, moments: Moments) -> Words:
        """The moments of one site on the grid.

        Raises
        ------
        DataError
            They lie outside of the bounds of the study. The message holds no value.
        """
        if moments.schema != self.schema:
            raise DataError("The moments are not of the variables of the study.")
        if moments.n > self.rows:
            raise DataError("There are more rows than the study allows.")
        self._check(moments)
        n, wide = moments.n, self.fraction + GUARD
        units = [Fraction(2) ** (wide - int(e)) for e in self.exponents]
        offset = self._offsets(moments.shift, wide)
        sums = _objects(
            round(Fraction(v) * u) for v, u in zip(moments.sums.tolist(), units, strict=True)
        )
        i, j = self.pairs
        scaled = np.ldexp(moments.gram[i, j], 2 * wide - self.exponents[i] - self.exponents[j])
        gram = _objects(int(v) for v in scaled.tolist())
        gram = gram + sums[i] * offset[j] + offset[i] * sums[j] + n * (offset[i] * offset[j])
        found = [_rounded(v, GUARD) for v in sums + n * offset]
        found += [_rounded(v, 2 * wide - self.fraction) for v in gram]
        limit = (n << self.fraction) + (n << (self.fraction - 30))
        if any(abs(v) > limit for v in found):
            raise self._outside(moments)
        return from_ints([n, *found], LIMBS)

    def decode(self, words: Words) -> Moments:
        """The moments of all sites, about their common mean."""
        n, *rest = to_ints(words)
        p = len(self.schema.columns)
        wide = self.fraction + GUARD
        sums = _objects(v << GUARD for v in rest[:p])
        units = [Fraction(2) ** (int(e) - wide) for e in self.exponents]
        mean = np.array(
            [
                float(Fraction(s) + Fraction(v, n) * u)
                for s, v, u in zip(self.shift, sums, units, strict=True)
            ]
        )
        offset = self._offsets(mean, wide)
        i, j = self.pairs
        gram = _objects(v << (2 * wide - self.fraction) for v in rest[p:])
        gram = gram - sums[i] * offset[j] - offset[i] * sums[j] + n * (offset[i] * offset[j])
        square = np.zeros((p, p))
        one = 1 << (2 * wide)
        square[i, j] = [v / one for v in gram]
        # Each site rounds to half a unit: what is smaller than that is zero, and a constant is one.
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

    def _offsets(self, shift: NDArray[np.float64], wide: int) -> Objects:
        """How far this shift is from the common one, in fine units."""
        return _objects(
            round((Fraction(a) - Fraction(b)) * Fraction(2) ** (wide - int(e)))
            for a, b, e in zip(shift.tolist(), self.shift, self.exponents, strict=True)
        )

    def _check(self, moments: Moments) -> None:
        """Refuse what would leave the range of floating point before integers can be made."""
        room = np.ldexp(4.0 * moments.n, 2 * self.exponents) * (1 + 2**-20)
        if (moments.gram.diagonal() > room).any():
            raise self._outside(moments)

    def _outside(self, moments: Moments) -> DataError:
        away = np.abs(moments.mean() - np.array(self.shift)) > np.ldexp(1.0, self.exponents)
        wide = moments.covariance().diagonal() > np.ldexp(1.0, 2 * self.exponents)
        named = sorted(
            {
                v.name
                for v, (start, stop) in zip(self.schema.variables, self.schema.blocks, strict=True)
                if (away | wide)[start:stop].any()
            }
        )
        return DataError(
            f"Values lie outside of the bounds of the study, in {named[:10] or 'some variables'}. "
            "Correct them at the site, or ask the author for wider bounds."
        )


def _objects(values: Any) -> Objects:
    found = list(values)
    array = np.empty(len(found), dtype=object)
    array[:] = found
    return array


def _rounded(value: int, digits: int) -> int:
    """Drop binary digits, to the nearest."""
    return (value + (1 << (digits - 1))) >> digits


# --- counts ----------------------------------------------------------------------------------


def counts_size(schema: Schema, plan: Plan) -> int:
    """How many numbers the planned tables are: n, then every cell.

    Raises
    ------
    DataError
        They are too many to be summed cell by cell.
    """
    sizes = schema.cardinalities
    number = plan.size(schema.names)
    if number <= NUMBERS:  # more sets than that are not even listed
        cells = [math.prod(int(sizes[i]) for i in s) for s in planned_sets(schema, plan)]
        if max(cells) <= DENSE and sum(cells) <= NUMBERS:
            return 1 + sum(cells)
    raise DataError(
        f"The plan of {plan} has {number:,} tables with too many cells; {NUMBERS:,} can be summed "
        f"in a round, and {DENSE:,} in one table. Plan smaller sets, for instance Plan.up_to(3) "
        "for a search with at most two parents."
    )


def encode_counts(counts: Counts, rows: int) -> Words:
    """The tables of one site, cell by cell."""
    if counts.n > rows:
        raise DataError("There are more rows than the study allows.")
    parts = [np.array([counts.n], dtype=np.int64)]
    for positions in planned_sets(counts.schema, counts.plan):
        block = counts.tables[positions]
        if isinstance(block, CodedRows):
            block = counts.table([counts.schema.names[i] for i in positions])
        parts.append(block.reshape(-1))
    return from_int64(np.concatenate(parts))


def decode_counts(words: Words, schema: Schema, plan: Plan) -> Counts:
    """The tables of all sites."""
    values = to_int64(words)
    held: dict[tuple[int, ...], Any] = {}
    at = 1
    for positions in planned_sets(schema, plan):
        shape = [int(schema.cardinalities[i]) for i in positions]
        stop = at + math.prod(shape)
        held[positions] = values[at:stop].reshape(shape)
        at = stop
    return Counts(schema, int(values[0]), plan, held)
