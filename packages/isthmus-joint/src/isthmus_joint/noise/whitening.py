"""Moments with little noise: whiten the rows in rounds, and learn from the last one.

Noise must hide the largest change that one row can make. In the bounds of a study that is many
times the change of a typical row, and what noise drowns first is what strongly correlated variables
still tell apart. So a first round, the survey, finds where the values are. Each later round maps
rows to about the same spread in all directions, as far as the rounds before it could tell, scales
rows outside of a ball down to it, and sums their products. The noise is then alike in all
directions. This is CoinPress (Biswas, Dong, Kamath and Ullman 2020).

The ball bounds what a row changes whatever the map is, so that anyone may choose the map. Here are
the parts that need neither a study nor a network.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import TypeAlias, final

import numpy as np

from isthmus.arrays import Floats, Integers
from isthmus.statistics import Kind, Schema
from isthmus_joint.noise.centring import RoundNoise, mean_offset

SURVEY = 0
"""Number of the round that finds where the values are."""

SHARES = (0.05, 0.065, 0.065, 0.065, 0.065, 0.065, 0.065, 0.56)
"""Shares of the budget: the survey, the rounds that whiten, and the one that is learned from."""

LAST = len(SHARES) - 1
"""Number of the round that is learned from."""

BINS = 64
"""Number of equal parts of the bounds of a continuous variable in which the survey counts rows."""

FINE = 2**8
"""The integer that stands for one row in the survey."""

GRID = 2**14
"""The integer that stands for the radius of the ball. Noise that protects somebody is far wider
than this grid."""

LARGEST_ENTRY = 2.0**40
"""Entries of a map are at most as large, so that no row overflows."""

CHUNK = 2**16
"""Number of rows whose products of integers up to `GRID` can be added exactly in floating point."""

STANDS_OUT = 3.0
"""A count of the survey is taken for rows if it is larger than so many standard deviations."""

SPIKE = 4.0
"""Rows pile up at a bound if the count there is larger than the next one by so many standard
deviations, and the next one is smaller by as many than the largest."""

EARLY_RADIUS, LAST_RADIUS = 0.5, 1.0
"""Square of the radius of the ball, per column of white rows. Small balls need little noise; in
large ones sums are those of the rows as they are."""

LARGEST_RADIUS = 64.0
"""Rows in a larger ball would be rounded to a coarse grid."""

ROOM = 0.25
"""The last ball is as large as noise allows whose variance is this share of the sampling error."""

FLOOR = 0.25
"""White rows are mapped as if their variance was at least this share of the largest eigenvalue of
noise in every direction. These constants: ``benchmarks/results/privacy-whitening.md``."""

FINEST = 2.0**-20
"""Differences that are smaller than this share of the bounds are not magnified further."""

WHITE = 2.0
"""Rows are white if the largest and the smallest eigenvalue differ from the median by at most this
factor. Further rounds would not make them whiter."""


@final
@dataclass(frozen=True, eq=False)
class ColumnLayout:
    """The rows of a study as columns of about one: bounds become -1 and 1, levels 0 and 1.

    Parameters
    ----------
    bounds
        Public bounds of the continuous variables, to which values are clipped.
    """

    schema: Schema
    bounds: Mapping[str, tuple[float, float]]

    @property
    def width(self) -> int:
        """Number of columns, with a constant in front."""
        return 1 + self.schema.width

    @cached_property
    def ranges(self) -> tuple[Floats, Floats]:
        """Centre and half the width of the bounds of each column."""
        centre, half = np.zeros(self.schema.width), np.ones(self.schema.width)
        for v, (at, _) in zip(self.schema.variables, self.schema.blocks, strict=True):
            if v.kind is Kind.CONTINUOUS:
                low, high = self.bounds[v.name]
                # Never zero: a value at the centre would be refused, and tell of its person.
                centre[at], half[at] = low / 2 + high / 2, max(high / 2 - low / 2, math.ulp(0.0))
        return centre, half

    def rows(self, values: Floats) -> Floats:
        """Return rows of columns, with the constant in front."""
        parts = [np.ones((len(values), 1))]
        for i, v in enumerate(self.schema.variables):
            if v.kind is Kind.DISCRETE:
                levels = np.arange(1, len(v.levels))
                parts.append((values[:, i, None] == levels).astype(np.float64))
            else:
                parts.append(self._clipped(values, i)[:, None])
        return np.concatenate(parts, axis=1)

    def _clipped(self, values: Floats, variable: int) -> Floats:
        """Return the values of a continuous variable, clipped to its bounds, between -1 and 1."""
        centre, half = (own[self.schema.blocks[variable][0]] for own in self.ranges)
        with np.errstate(over="ignore"):  # clipped all the same
            clipped: Floats = np.clip((values[:, variable] - centre) / half, -1.0, 1.0)
        return clipped

    @cached_property
    def bins(self) -> tuple[int, ...]:
        """Number of counts of each variable in the survey."""
        return tuple(
            len(v.levels) if v.kind is Kind.DISCRETE else BINS for v in self.schema.variables
        )

    def survey(self, values: Floats) -> Integers:
        """Return the number of rows, and how many of them are in each part of each variable."""
        parts = [np.array([len(values)], dtype=np.int64)]
        for i, (v, bins) in enumerate(zip(self.schema.variables, self.bins, strict=True)):
            codes = values[:, i]
            if v.kind is Kind.CONTINUOUS:
                codes = np.minimum((self._clipped(values, i) + 1.0) * (bins / 2), bins - 1)
            parts.append(np.bincount(codes.astype(np.int64), minlength=bins))
        return FINE * np.concatenate(parts)

    def products(self, values: Floats, transform: Floats, offset: Floats) -> Integers:
        """Return the sums of products of mapped rows in the ball: the upper triangle.

        Parameters
        ----------
        offset
            What is subtracted from each column first: the centre of the site.
        """
        total = np.zeros((self.width, self.width), dtype=np.int64)
        for part in self._in_ball(values, transform, offset):
            total += (part.T @ part).astype(np.int64)
        return total[np.triu_indices(self.width)]

    def sums(self, values: Floats, transform: Floats, offset: Floats) -> Integers:
        """Return the sums of mapped rows in the ball."""
        total = np.zeros(self.width, dtype=np.int64)
        for part in self._in_ball(values, transform, offset):
            total += part.sum(axis=0).astype(np.int64)
        return total

    def _in_ball(self, values: Floats, transform: Floats, offset: Floats) -> Iterator[Floats]:
        for start in range(0, len(values), CHUNK):
            rows = self.rows(values[start : start + CHUNK])
            rows[:, 1:] -= offset
            yield in_ball(rows, transform)


def in_ball(rows: Floats, transform: Floats) -> Floats:
    """Return mapped rows, scaled down to the unit ball, as integers in units of 1 / `GRID`."""
    mapped = rows @ transform.T
    norm = np.sqrt((mapped**2).sum(axis=1))
    rounded: Floats = np.rint(mapped * (GRID / np.maximum(norm, 1.0))[:, None])
    return rounded


def survey_sensitivity(variables: int) -> float:
    """Return the largest Euclidean norm by which one row changes the survey."""
    return FINE * math.sqrt(1 + variables)


def moments_size(width: int, *, within: bool) -> int:
    """Return how many numbers a round has that is not the survey: products, and then the centre."""
    return width * (width + 1) // 2 + (width if within else 0)


def sums_sensitivity(width: int) -> float:
    """Return the largest norm by which one row changes sums of rows in the ball."""
    return float(GRID + math.ceil(math.sqrt(width)))


def products_sensitivity(width: int) -> float:
    """Return the largest norm by which one row changes products, in units of their noise.

    The noise of squares is √2 times as wide as that of other products (see `products_spread`). The
    squares of all changes, divided by the variances of their noise, then add up to half of the
    fourth power of the length of the row. Rounding makes it longer by half a diagonal at most.
    """
    return sums_sensitivity(width) ** 2 / math.sqrt(2.0)


def products_spread(width: int) -> Floats:
    """Return the standard deviation of the noise of each product, in units of the common scale.

    Sampling errors of white rows have the same ratio, so that noise looks like fewer rows.
    """
    first, second = np.triu_indices(width)
    return np.where(first == second, math.sqrt(2.0), 1.0)


@final
@dataclass(frozen=True, eq=False)
class Surveyed:
    """What a survey tells.

    Attributes
    ----------
    n, error
        Number of rows, and the standard deviation of its noise.
    centre, spread
        Rough mean and standard deviation of each column.
    unseen
        Columns of levels with too few rows to be seen. They count as the first level.
    edge
        Variables whose values pile up at a bound.
    """

    n: float
    error: float
    centre: Floats
    spread: Floats
    unseen: frozenset[int]
    edge: tuple[str, ...]

    @classmethod
    def of(cls, layout: ColumnLayout, total: list[int], error: float) -> Surveyed:
        """Read a survey whose noise has this standard deviation, in units of one row."""
        counts = np.array([v / FINE for v in total])
        n = max(float(counts[0]), 2.0)
        centre, spread = np.zeros(layout.width - 1), np.ones(layout.width - 1)
        unseen, edge, at = set[int](), list[str](), 1
        variables = zip(layout.schema.variables, layout.schema.blocks, layout.bins, strict=True)
        for v, (column, stop), bins in variables:
            own = counts[at : at + bins]
            seen = np.where(own > STANDS_OUT * error, own, 0.0)
            at += bins
            if v.kind is Kind.DISCRETE:
                share = np.clip(seen[1:] / n, 0.0, 1.0)
                least = min(STANDS_OUT * error / n, 0.5)
                unseen |= {column + k for k in np.flatnonzero(share == 0.0).tolist()}
                centre[column:stop] = share
                spread[column:stop] = np.sqrt(np.maximum(share * (1 - share), least / 2))
                continue
            if not seen.any():
                spread[column] = 0.5
                continue
            place = (2 * np.arange(bins) + 1) / bins - 1
            centre[column] = seen @ place / seen.sum()
            variance = seen @ (place - centre[column]) ** 2 / seen.sum()
            spread[column] = math.sqrt(variance + (2 / bins) ** 2 / 12)
            most_outside = seen[[0, -1]].sum() > seen.sum() / 2
            if most_outside or _piles_up(own, error) or _piles_up(own[::-1], error):
                edge.append(v.name)
        return cls(n, error, centre, spread, frozenset(unseen), tuple(edge))


def _piles_up(counts: Floats, error: float) -> bool:
    """Return whether more rows are at the first place than the places next to it explain.

    Values that are clipped are all at the bound, apart from the body of the distribution. A density
    that is largest at its bound, such as that of a waiting time, does not count.
    """
    largest = float(counts[1:].max())
    return all(
        high - counts[1] > SPIKE * math.sqrt(2.0 * error**2 + max(high + counts[1], 0.0))
        for high in (counts[0], largest)
    )


@final
@dataclass(frozen=True, eq=False)
class Map:
    """A map of rows to white ones: affine, in coordinates with a constant in front.

    Attributes
    ----------
    matrix
        The map of these columns.
    radius
        Square of the radius of the ball.
    """

    used: Integers
    matrix: Floats
    radius: float

    @classmethod
    def of(cls, used: Integers, matrix: Floats, radius: float) -> Map:
        """Return a map with entries of 24 bits, so that a restart computes the same one again."""
        entries = np.clip(matrix / math.sqrt(radius), -LARGEST_ENTRY, LARGEST_ENTRY)
        rounded = entries.astype(np.float32).astype(np.float64)
        return cls(used, rounded * math.sqrt(radius), radius)

    @classmethod
    def first(cls, surveyed: Surveyed) -> Map:
        """Standardise the columns by what the survey tells."""
        columns = [c for c in range(len(surveyed.centre)) if c not in surveyed.unseen]
        matrix = np.diag(np.append(1.0, 1.0 / surveyed.spread[columns]))
        matrix[1:, 0] = -surveyed.centre[columns] / surveyed.spread[columns]
        used = np.append(0, np.array(columns, dtype=np.int64) + 1)
        return cls.of(used, matrix, EARLY_RADIUS * len(used))

    def then(self, moments: Floats, radius: float) -> Map:
        """Return the map after which rows would be white that have these moments after this one."""
        mean = moments[0, 1:] / moments[0, 0]
        covariance = moments[1:, 1:] / moments[0, 0] - np.outer(mean, mean)
        step = np.eye(len(moments))
        step[1:, 1:] = np.linalg.inv(np.linalg.cholesky(covariance))
        step[1:, 0] = -step[1:, 1:] @ mean
        return Map.of(self.used, step @ self.matrix, radius)

    def transform(self, width: int) -> Floats:
        """Return the map of all columns to the unit ball, as sites are asked to apply it."""
        whole = np.zeros((width, width))
        whole[np.ix_(self.used, self.used)] = self.matrix / math.sqrt(self.radius)
        return whole


@final
@dataclass(frozen=True, eq=False)
class Whitened:
    """Second moments of mapped rows with noise: what one round tells.

    Attributes
    ----------
    matrix
        Mean products of the mapped rows. Near the identity if they are white.
    error
        Standard deviation of the noise in each entry that is not on the diagonal.
    """

    map: Map
    n: float
    matrix: Floats
    error: float

    @classmethod
    def of(
        cls, width: int, applied: Map, n: float, products: Floats, noise: RoundNoise
    ) -> Whitened:
        """Read the products of a round."""
        whole = np.zeros((width, width))
        whole[np.triu_indices(width)] = products
        whole = whole + np.triu(whole, 1).T
        matrix = whole[np.ix_(applied.used, applied.used)] * (applied.radius / n)
        return cls(applied, n, matrix, noise.error(applied.radius, n))

    @cached_property
    def eigenvalues(self) -> Floats:
        """Eigenvalues of the matrix, in ascending order."""
        return np.asarray(np.linalg.eigvalsh(self.matrix), dtype=np.float64)

    @property
    def noise(self) -> float:
        """The typical largest eigenvalue of the noise."""
        return 2.0 * self.error * math.sqrt(len(self.matrix))

    @property
    def is_white(self) -> bool:
        """Whether the map left all directions alike."""
        low, middle, high = np.quantile(self.eigenvalues, [0.0, 0.5, 1.0])
        return bool(low - self.noise > middle / WHITE and high < middle * WHITE)

    @property
    def valid(self) -> Floats:
        """The matrix, with eigenvalues that are not small for noise."""
        values, vectors = np.linalg.eigh(self.matrix)
        valid = (vectors * np.maximum(values, max(FLOOR * self.noise, 1e-9))) @ vectors.T
        return np.asarray((valid + valid.T) / 2, dtype=np.float64)

    def moments(self) -> Floats:
        """Return mean products of the columns before the map, with the constant in front."""
        back = np.linalg.inv(self.map.matrix)
        whole = back @ self.valid @ back.T
        return np.asarray((whole + whole.T) / 2, dtype=np.float64)

    def next_map(self, *, last: bool, noise: float) -> Map:
        """Return the map of the next round.

        Parameters
        ----------
        last
            Whether that round is the one that is learned from.
        noise
            Noise of the last round, in units of the square of the radius of its ball.
        """
        width = len(self.map.used)
        radius = last_radius(width, self.n, noise) if last else EARLY_RADIUS * width
        fine = FINEST * self.map.matrix[:, 1:]
        return self.map.then(self.valid + fine @ fine.T, radius)

    @property
    def worth(self) -> float:
        """How many rows without noise would be as uncertain.

        A direction in which the mapped rows vary little suffers more from the noise. Noise changes
        eigenvalues by no more than its own largest one, which is subtracted to be on the safe side:
        a direction that noise may have made up leaves nothing to learn from.
        """
        middle = max(float(np.median(self.eigenvalues)), 1e-9)
        low = min(max(float(self.eigenvalues[0]) - self.noise, 1e-6) / middle, 1.0)
        return 1.0 / (1.0 / self.n + (self.error / (middle * low)) ** 2)

    def without(self, columns: Iterable[int]) -> Whitened:
        """Return what the round tells of the other columns, counted without the constant.

        The noise stays alike in all directions: the new coordinates are orthonormal combinations of
        the old ones.
        """
        left = np.flatnonzero(~np.isin(self.map.used, [c + 1 for c in columns]))
        turn, root = np.linalg.qr(np.linalg.inv(self.map.matrix)[left].T)
        chosen = Map(self.map.used[left], np.linalg.inv(root.T), self.map.radius)
        return Whitened(chosen, self.n, turn.T @ self.matrix @ turn, self.error)

    def hidden(self) -> frozenset[int]:
        """Return the columns, counted without the constant, whose variance noise could explain."""
        columns = [int(c) - 1 for c in self.map.used[1:]]
        alone = {c: self.without(set(columns) - {c}) for c in columns}
        return frozenset(c for c, own in alone.items() if own.eigenvalues[0] <= own.noise)


Ask: TypeAlias = Callable[[int, Floats | None], tuple[list[int], RoundNoise]]
"""Asks the sites for a round by its number, with the map of its rows; returns the sum and its
noise."""


def in_rounds(
    layout: ColumnLayout, ask: Ask, noise: RoundNoise
) -> tuple[Surveyed, Whitened, Floats]:
    """Ask for one round after the other, until the last one is answered.

    Rounds that whiten are left out when the rows are white.

    Parameters
    ----------
    noise
        The noise of the last round.

    Returns
    -------
    tuple
        What the survey and the last round tell, and what sites have subtracted from each column, in
        the mean over all rows.
    """
    total, error = ask(SURVEY, None)
    surveyed = Surveyed.of(layout, total, error.products)
    chosen, number = Map.first(surveyed), SURVEY + 1
    size = moments_size(layout.width, within=False)
    while True:
        transform = chosen.transform(layout.width)
        total, error = ask(number, transform)
        answer = np.array([v / GRID**2 for v in total])
        white = Whitened.of(layout.width, chosen, surveyed.n, answer[:size], error)
        if number == LAST:
            centres = answer[size:]
            none = np.zeros(layout.width - 1)
            return surveyed, white, mean_offset(centres) if len(centres) else none
        number = LAST if white.is_white else number + 1
        chosen = white.next_map(last=number == LAST, noise=noise.products)


def last_radius(width: int, n: float, noise: float) -> float:
    """Return the square of the radius of the ball of the last round."""
    radius = max(LAST_RADIUS * width, math.sqrt(ROOM * n) / noise)
    return min(radius, LARGEST_RADIUS * width)


def shrinkage(columns: int, radius: float) -> float:
    """Return the variance of white normal rows after they are scaled down to a ball.

    The quantiles of the squared length are those of Wilson and Hilferty (1931).
    """
    if not columns:
        return 1.0
    normal, points = NormalDist(), 400
    z = np.array([normal.inv_cdf((k + 0.5) / points) for k in range(points)])
    variance = 2.0 / (9.0 * columns)
    length = columns * np.maximum(1.0 - variance + z * math.sqrt(variance), 0.0) ** 3
    weight = np.minimum(1.0, radius / (1.0 + length))
    return float((weight * length).mean() / (columns * weight.mean()))
