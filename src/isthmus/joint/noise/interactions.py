"""Tables of counts as interactions, which need less noise than the tables themselves.

A row is in one cell of each table. What this cell tells beyond the margins of the table is shorter
than one: half as long for two binary variables. So each level becomes a point in orthonormal
contrasts, and a set of variables the products of their points, summed over rows: its interaction. A
table follows from the interactions of all subsets of its variables, and tables that share variables
agree. This is the mechanism of ResidualPlanner (Xiao, He, Zhang and Kifer 2023), on integers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import combinations
from typing import TypeAlias, final

import numpy as np

from isthmus.statistics import CountPlan, Schema
from isthmus.types import Floats, Integers

Positions: TypeAlias = tuple[int, ...]

FINE = 2**8
"""The integer that stands for one, in the number of rows and in each contrast. Noise on this grid
is so wide that a sum of discrete Gaussians is a discrete Gaussian for all purposes."""

MOST_VARIABLES = 3
"""Largest number of variables of a table that is asked for."""

PAIRS, TABLES = 0, 1
"""The two requests: for all pairs, and for the tables that these ask for."""


@lru_cache(maxsize=256)
def contrasts(levels: int) -> Integers:
    """Return a point for each level, in units of 1 / `FINE`: orthonormal contrasts, rounded."""
    points = np.zeros((levels, levels - 1))
    for k in range(1, levels):
        points[:k, k - 1] = 1.0
        points[k, k - 1] = -k
        points[:, k - 1] /= math.sqrt(k * (k + 1))
    return np.asarray(np.rint(FINE * points), dtype=np.int64)


@lru_cache(maxsize=256)
def _from_coordinates(levels: int) -> Floats:
    """Return the map from a sum and coordinates to the cells of one variable."""
    forward = np.column_stack([np.ones(levels), contrasts(levels) / FINE])
    return np.asarray(np.linalg.inv(forward.T), dtype=np.float64)


def _along(tensor: Floats | Integers, matrix: Floats | Integers, axis: int) -> Floats | Integers:
    """Return a tensor with a matrix applied to one axis."""
    return np.moveaxis(np.tensordot(tensor, matrix, axes=(axis, 1)), -1, axis)


@final
@dataclass(frozen=True)
class ContrastLayout:
    """The order of the numbers in a sum: one interaction after the other.

    Attributes
    ----------
    sizes
        Number of levels of each variable.
    sets
        Sets of variables whose interactions are summed; the empty one is the number of rows.
    """

    sizes: tuple[int, ...]
    sets: tuple[Positions, ...]

    @classmethod
    def of(cls, sizes: Iterable[int], tables: Iterable[Positions], least: int) -> ContrastLayout:
        """Lay out the number of rows, and all interactions of tables of at least a size."""
        found = {
            subset
            for table in tables
            for size in range(least, len(table) + 1)
            for subset in combinations(table, size)
        }
        return cls(tuple(sizes), ((), *sorted(found, key=lambda s: (len(s), s))))

    def shape(self, positions: Positions) -> tuple[int, ...]:
        """Return the shape of an interaction."""
        return tuple(self.sizes[i] - 1 for i in positions)

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """How many numbers each interaction has."""
        return tuple(math.prod(self.shape(s)) for s in self.sets)

    @cached_property
    def spread(self) -> Floats:
        """Standard deviation of the noise of each number, in units of that of the number of rows.

        A product of contrasts is as many times finer as it has factors.
        """
        each = [float(FINE ** max(len(s) - 1, 0)) for s in self.sets]
        return np.repeat(each, self.lengths)

    @cached_property
    def sensitivity(self) -> float:
        """The largest norm of the integers of one row, each divided by its spread."""
        longest = [int((contrasts(k) ** 2).sum(axis=1).max(initial=0)) for k in self.sizes]
        square = 0.0
        for positions in self.sets:
            length = math.prod(longest[i] / FINE**2 for i in positions)
            square += FINE**2 * length
        return math.sqrt(square)

    def integers(self, codes: Integers) -> Integers:
        """Return the sums over rows; `codes` has a column for each variable."""
        parts, columns = [], np.ascontiguousarray(codes.T)
        for positions in self.sets:
            if not positions:
                parts.append(np.array([FINE * len(codes)], dtype=np.int64))
                continue
            shape = tuple(self.sizes[i] for i in positions)
            cells = np.ravel_multi_index([columns[i] for i in positions], shape)
            table = np.bincount(cells, minlength=math.prod(shape)).reshape(shape)
            for axis, i in enumerate(positions):
                table = np.asarray(_along(table, contrasts(self.sizes[i]).T, axis), dtype=np.int64)
            parts.append(table.reshape(-1))
        return np.concatenate(parts)


def layout_of(schema: Schema, plan: CountPlan, number: int) -> ContrastLayout:
    """Return the interactions of a request: of single variables in the first one only."""
    sizes = [int(k) for k in schema.cardinalities]
    return ContrastLayout.of(sizes, plan.maximal(schema.names), 1 if number == PAIRS else 2)


@final
@dataclass(eq=False)
class Interactions:
    """Interactions that were estimated from sums with noise.

    Attributes
    ----------
    sizes
        Number of levels of each variable.
    values, variances
        The estimate of each interaction, and the variance of its noise, in each coordinate.
    """

    sizes: tuple[int, ...]
    values: dict[Positions, Floats] = field(default_factory=dict)
    variances: dict[Positions, float] = field(default_factory=dict)

    def add(self, layout: ContrastLayout, total: Sequence[int], scale: float) -> None:
        """Take a sum whose noise has this standard deviation, in the number of rows."""
        at, variance = 0, (scale / FINE) ** 2
        for positions, length in zip(layout.sets, layout.lengths, strict=True):
            unit = float(FINE ** max(len(positions), 1))
            own = np.array([v / unit for v in total[at : at + length]])
            own, at = own.reshape(layout.shape(positions)), at + length
            self.values[positions], self.variances[positions] = self._averaged(
                positions, own, variance
            )

    def _averaged(self, positions: Positions, own: Floats, variance: float) -> tuple[Floats, float]:
        """Return the average of a new estimate and the one before, weighted by their variances."""
        if positions not in self.values:
            return own, variance
        before = self.variances[positions]
        if before + variance == 0.0:
            return own, 0.0
        weight = before / (before + variance)
        return weight * own + (1.0 - weight) * self.values[positions], weight * variance

    @property
    def n(self) -> float:
        """Number of rows."""
        return max(float(self.values[()]), 1.0)

    def table(self, positions: Positions) -> Floats:
        """Return the table of some variables; interactions that are not known are taken as zero."""
        tensor = np.zeros([self.sizes[i] for i in positions])
        for size in range(len(positions) + 1):
            for axes in combinations(range(len(positions)), size):
                own = self.values.get(tuple(positions[a] for a in axes))
                if own is not None:
                    place = tuple(slice(1, None) if a in axes else 0 for a in range(len(positions)))
                    tensor[place] = own
        for axis, i in enumerate(positions):
            tensor = np.asarray(_along(tensor, _from_coordinates(self.sizes[i]), axis))
        return tensor
