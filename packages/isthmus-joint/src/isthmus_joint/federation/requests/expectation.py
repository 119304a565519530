"""Requests for the steps of expectation-maximisation of moments."""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple, final

import numpy as np

from isthmus.arrays import Floats, Integers
from isthmus.errors import DataError
from isthmus.statistics import Kind, Schema
from isthmus.statistics.incomplete import RIDGE, ExpectationStep, Expected, Maximisation
from isthmus.statistics.tally import PairCounts, PatternRows
from isthmus.tables.base import Source
from isthmus_joint.agreement.study import Study
from isthmus_joint.extracts.reading import rows_with_holes
from isthmus_joint.federation.requests.base import SiteSteps, StepRequest
from isthmus_joint.federation.requests.fixed_point import (
    LIMBS,
    FixedPointEncoding,
    encode_rows,
    require_count,
)
from isthmus_joint.federation.requests.statistics import show_array
from isthmus_joint.secure_sum.terms import LimbArray, from_int64, from_ints, to_ints

STEPS = 60
"""Steps that a study allows if its limits do not say otherwise (see benchmarks/missing.py)."""

FRACTION = 28
"""Binary digits after the point of expected sums, in units of the spread."""

MAGNITUDE = 128
"""Expected values and products of a row are below two to this power, in units of the spread.

With `WIDEST`, `LARGEST` and the ridge of the step, they are below 2^126 for a thousand variables,
and the rest is left to rounding. So no sum is ever cut, which would tell of a single site.
"""

WIDEST = 2.0**32
"""The bounds of a variable are no further apart than this, in units of its spread."""

LARGEST = 256.0
"""No eigenvalue of a covariance is larger than this times the number of variables."""


IMPOSSIBLE = (
    "The numbers of available values are not those of tables within the bounds of the study. A "
    "site may have sent a wrong answer. Check the sites, and start a new run."
)


class Available(NamedTuple):
    """Numbers, means and standard deviations of the available values, over all sites.

    Attributes
    ----------
    pairs
        Number of rows that have a value of both of two columns.
    centre, scale
        Mean and standard deviation of the values of each column.
    """

    n: int
    pairs: Integers
    centre: Floats
    scale: Floats

    @property
    def has_missing(self) -> bool:
        """Whether any value is missing."""
        return bool((self.pairs < self.n).any())

    def pair_counts(self, names: tuple[str, ...]) -> PairCounts:
        """In how many rows both of two columns have a value."""
        return PairCounts(names, self.pairs.astype(np.float64), self.n)


@final
class ExpectationRun:
    """Parameters of the next step, computed from the sums of the steps so far.

    The coordinator and the sites compute them alike. Nobody can choose them.
    """

    def __init__(self, grid: FixedPointEncoding) -> None:
        self._grid = grid
        self.available: Available | None = None
        self.maximisation = Maximisation(len(grid.schema))

    def take(self, total: LimbArray) -> None:
        """Take the sum of the next step."""
        if self.available is None:
            available = _decode_available(total, self._grid)
            _require_possible(available, self._grid)
            self.available = available
        else:
            expected = _decode_expected(total, self._grid, self.available.n)
            following = Maximisation(len(self._grid.schema))
            following.advance(expected)
            eigenvalues = np.linalg.eigvalsh(following.covariance)
            # A site could otherwise choose parameters at which the sums of other sites are cut, and
            # learn from the total which ones were.
            if not (
                (np.abs(following.mean) <= _widths(self.available, self._grid)).all()
                and eigenvalues[0] >= -RIDGE / 2
                and eigenvalues[-1] <= LARGEST * len(eigenvalues)
            ):
                raise DataError(
                    "The expected sums are not those of tables within the bounds of the study. A "
                    "site may have sent a wrong answer. Check the sites, and start a new run."
                )
            self.maximisation.advance(expected)


@final
class ExpectationAtSite(SiteSteps):
    """Expectation-maximisation at a site."""

    def __init__(self, source: Source, grid: FixedPointEncoding) -> None:
        self._grid = grid
        self._rows = rows_with_holes(source)
        self._patterns = PatternRows.of(source.schema(), [self._rows])
        self._run = ExpectationRun(grid)
        self._step: ExpectationStep | None = None

    def take(self, total: LimbArray) -> None:
        self._run.take(total)

    def contribution(self) -> LimbArray:
        available = self._run.available
        if available is None:
            return _encode_available(self._rows, self._grid)
        if self._step is None:
            standardised = self._patterns.standardised(available.centre, available.scale)
            self._step = ExpectationStep(self._patterns, standardised)
        parameters = self._run.maximisation
        expected = self._step.expected(parameters.mean, parameters.covariance)
        assert expected is not None
        return _encode_expected(expected, self._grid)


@final
class AskExpectation(StepRequest[LimbArray]):
    """Request one step of expectation-maximisation of moments.

    Step 0 asks for the number of values of each pair of columns, and for the sums and sums of
    squares of each column. Every later step asks for the expected sums and products of the rows
    given their values, at the parameters that follow from all sums before.
    """

    name: ClassVar[str] = "expectation"
    limbs: ClassVar[int] = LIMBS
    caution: ClassVar[str] = (
        "Expectation-maximisation releases one sum per step. Together, the steps may tell the sums "
        "of the rows of each pattern of missing values, also of rare ones."
    )

    @staticmethod
    def steps_allowed(study: Study) -> int:
        return int(study.limits.get(AskExpectation.name, {}).get("steps", STEPS))

    def begin(self, source: Source, grid: FixedPointEncoding) -> ExpectationAtSite:
        return ExpectationAtSite(source, grid)

    def size(self, grid: FixedPointEncoding) -> int:
        grid.schema.require(Kind.CONTINUOUS, "Expectation-maximisation of moments needs")
        d = len(grid.schema)
        pairs = d * (d + 1) // 2
        return (1 + pairs + 2 * d) if self.step == 0 else d + pairs

    def decode(self, total: LimbArray, grid: FixedPointEncoding) -> LimbArray:
        """Return the sum as it is: `ExpectationRun` reads it."""
        return total

    def require_plausible(self, total: LimbArray, grid: FixedPointEncoding) -> None:
        if self.step:
            return
        d = len(grid.schema)
        i, j = np.triu_indices(d)
        n, *pairs = to_ints(total[: 1 + len(i)])
        require_count(n, grid.rows * grid.sites)
        if not all(0 <= count <= n for count in pairs):
            raise DataError(IMPOSSIBLE)
        at = 1 + len(i)
        for k, own in enumerate(_column_grids(grid)):
            count = 1 + np.flatnonzero((i == k) & (j == k))
            if pairs[int(count[0]) - 1]:
                own.require_plausible(np.concatenate([total[count], total[at : at + 2]]))
            at += 2

    def show(self, numbers: LimbArray, grid: FixedPointEncoding) -> list[str]:
        if self.step:
            _, sums, products = _decode_expected(numbers, grid, 0)
            return ["  expected sums:", show_array(sums), "  products:", show_array(products)]
        n, pairs, centre, scale = _decode_available(numbers, grid)
        return [
            *(f"  rows: {n}", "  rows with a value of both columns:", show_array(pairs)),
            *("  means of the values:", show_array(centre)),
            *("  standard deviations:", show_array(scale)),
        ]

    def __str__(self) -> str:
        variables = f"{len(self.asked)} variables with missing values"
        if self.step == 0:
            return f"numbers of values, sums and sums of squares of {variables}"
        return f"expected sums and products of {variables}, one step of expectation-maximisation"


def _widths(available: Available, grid: FixedPointEncoding) -> Floats:
    """Return how far the bounds of each variable are apart, in units of its spread."""
    low, high = np.array([grid.bounds[name] for name in grid.schema.names]).T
    return np.asarray((high - low) / available.scale)


def _require_possible(available: Available, grid: FixedPointEncoding) -> None:
    """Raise `DataError` unless tables within the bounds of the study could have this sum."""
    n, pairs, centre, _ = available
    counts = zip(grid.schema.names, pairs.diagonal().tolist(), strict=True)
    empty = [name for name, count in counts if not count]
    if empty:
        raise DataError(
            f"The variables {empty[:10]} have no values at any site, so that nothing can be "
            "estimated. Leave them out of the study."
        )
    low, high = np.array([grid.bounds[name] for name in grid.schema.names]).T
    inside = (centre >= low) & (centre <= high)
    if not (0 < n <= grid.rows * grid.sites and (pairs <= n).all() and inside.all()):
        raise DataError(IMPOSSIBLE)
    wide = np.flatnonzero(_widths(available, grid) > WIDEST)
    if wide.size:
        names = [grid.schema.names[k] for k in wide.tolist()][:10]
        raise DataError(
            f"The bounds of {names} are more than {WIDEST:,.0f} standard deviations apart. Draft a "
            "study with narrower bounds."
        )


def allows_holes(study: Study) -> bool:
    """Return whether values may be missing at the sites of a study."""
    all_continuous = not study.schema.of_kind(Kind.DISCRETE)
    return AskExpectation.name in study.requests and all_continuous


def _column_grids(grid: FixedPointEncoding) -> list[FixedPointEncoding]:
    return [grid.over(Schema((v,))) for v in grid.schema.variables]


def _encode_available(rows: Floats, grid: FixedPointEncoding) -> LimbArray:
    """Return counts, and exact sums of the values of each column."""
    there = ~np.isnan(rows)
    i, j = np.triu_indices(there.shape[1])
    pairs = (there.T.astype(np.float64) @ there)[i, j]
    counts = from_int64(np.array([len(rows), *pairs.tolist()], dtype=np.int64))
    wide = np.zeros((len(counts), LIMBS), dtype=counts.dtype)
    wide[:, : counts.shape[1]] = counts
    parts = [wide]
    for k, own in enumerate(_column_grids(grid)):
        parts.append(encode_rows(own, rows[there[:, k], k : k + 1])[1:])
    return np.concatenate(parts)


def _encode_expected(expected: Expected, grid: FixedPointEncoding) -> LimbArray:
    i, j = np.triu_indices(len(grid.schema))
    numbers = np.concatenate([expected.sums, expected.products[i, j]])
    # Whether a site answers must not depend on its data: large numbers are cut, not refused.
    most = math.ldexp(grid.rows, MAGNITUDE)
    cut = np.clip(np.nan_to_num(numbers), -most, most)
    return from_ints([round(v) for v in np.ldexp(cut, FRACTION).tolist()], LIMBS)


def _decode_available(total: LimbArray, grid: FixedPointEncoding) -> Available:
    d = len(grid.schema)
    i, j = np.triu_indices(d)
    numbers = to_ints(total[: 1 + len(i)])
    if not all(0 <= v <= grid.rows * grid.sites for v in numbers):
        raise DataError(IMPOSSIBLE)
    pairs = np.zeros((d, d), dtype=np.int64)
    pairs[i, j] = pairs[j, i] = numbers[1:]
    centre, scale = np.zeros(d), np.ones(d)
    at = 1 + len(i)
    for k, own in enumerate(_column_grids(grid)):
        count = from_ints([int(pairs[k, k])], LIMBS)
        numbers_of_column, at = np.concatenate([count, total[at : at + 2]]), at + 2
        if not pairs[k, k]:
            continue
        moments = own.decode(numbers_of_column)
        centre[k] = moments.mean()[0]
        variance = moments.covariance()[0, 0]
        scale[k] = math.sqrt(variance) if variance > 0.0 else 1.0
    return Available(numbers[0], pairs, centre, scale)


def _decode_expected(total: LimbArray, grid: FixedPointEncoding, n: int) -> Expected:
    d = len(grid.schema)
    one = 1 << FRACTION
    numbers = np.array([v / one for v in to_ints(total)])
    products = np.zeros((d, d))
    products[np.triu_indices(d)] = numbers[d:]
    return Expected(n, numbers[:d], products + np.triu(products, 1).T)
