"""Moments from incomplete rows: by expectation-maximisation, or from the rows of each pair."""

from __future__ import annotations

import math
import time
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from isthmus.statistics.moments import Moments
from isthmus.statistics.pairs import PairCounts
from isthmus.statistics.patterns import PatternRows, Standardised
from isthmus.statistics.schema import Schema
from isthmus.types import Floats

RIDGE = 1e-9
"""Added to standardised variances before they are inverted: columns may be collinear."""
_NUMBERS = 2**20
"""Size of the matrices that are inverted at once: steps take some milliseconds."""


class Estimated(NamedTuple):
    """Moments, the number of iterations, whether they have converged, and the rows behind them."""

    moments: Moments
    iterations: int
    converged: bool
    pairs: PairCounts

    def remarks(self) -> tuple[str, ...]:
        """Notes for the user if few rows count, or if the moments have not converged."""
        remark = (
            f"The moments of the incomplete columns were still changing after {self.iterations} "
            "iterations of expectation-maximisation. Allow more iterations or time."
        )
        return (*self.pairs.remarks(), *(() if self.converged else (remark,)))


class Expected(NamedTuple):
    """Expected sums and products of standardised rows, given the values that are there."""

    n: int
    sums: Floats
    products: Floats


def estimate_moments(
    patterns: PatternRows,
    *,
    max_iterations: int,
    tolerance: float,
    until: float = math.inf,
) -> Estimated:
    """Maximise the likelihood of means and covariances by expectation-maximisation.

    Indicators of levels are treated as if they were normal, as in `DegenerateGaussian`.

    The number of rows of the moments follows from the pair of columns with the fewest rows that
    have both values (see `PairCounts.effective_rows`): no pair gets more evidence than it has.

    Parameters
    ----------
    patterns
        The rows, summed up by pattern.
    max_iterations, tolerance
        When to stop; the tolerance concerns standardised columns.
    until
        Stop at this time of ``time.monotonic()``, with the moments of the last whole iteration.

    Raises
    ------
    MissingValuesError
        Two columns have (nearly) no rows in common.
    """
    pairs = patterns.pair_counts()
    step = ExpectationStep(patterns, patterns.standardised())
    pairs.refuse_apart()  # after columns without any value
    iteration = Maximisation(patterns.schema.width)
    while not iteration.converged(tolerance) and iteration.steps < max_iterations:
        limit = until if iteration.steps else math.inf
        expected = step.expected(iteration.mean, iteration.covariance, limit)
        if expected is None:
            break
        iteration.advance(expected)
    *_, centre, scale = step.rows
    moments = iteration.moments(patterns.schema, pairs.effective_rows(), centre, scale)
    return Estimated(moments, iteration.steps, iteration.converged(tolerance), pairs)


def available_moments(patterns: PatternRows) -> Estimated:
    """Estimate each correlation from the rows that have both values.

    Entries of such a matrix are from different rows, and may contradict each other: the matrix has
    negative eigenvalues, or ones near zero that look like exact relations. All eigenvalues are
    therefore raised by the same amount, so that none is smaller than the standard error of a
    correlation from different rows, and the result is scaled to ones on the diagonal. Means and
    variances are those of all values of a column. The number of rows is that of `estimate_moments`.

    Raises
    ------
    MissingValuesError
        Two columns have (nearly) no rows in common.
    """
    pairs = patterns.pair_counts()
    rows, unit, which, centre, scale = patterns.standardised()
    pairs.refuse_apart()
    there = patterns.observed[which].astype(np.float64)
    observed = patterns.observed.astype(np.float64)
    count = np.maximum((observed * patterns.sizes[:, None]).T @ observed, 1.0)
    mean = (rows * unit[:, None]).T @ there / count  # of a column, in the rows that have another
    square = (rows * rows).T @ there / count
    spread = np.sqrt(np.maximum(square - mean**2, 0.0))
    covariance = rows.T @ rows / count - mean * mean.T
    product = spread * spread.T
    correlation = np.divide(
        covariance, product, out=np.zeros_like(product), where=product > RIDGE
    ).clip(-1.0, 1.0)
    varies = np.diagonal(square) > 0.0
    np.fill_diagonal(correlation, varies)
    correlation = (correlation + correlation.T) / 2
    error = math.sqrt(max(1.0 / pairs.fewest() - 1.0 / pairs.n, 0.0))
    smallest = float(np.linalg.eigvalsh(correlation[np.ix_(varies, varies)]).min(initial=1.0))
    correlation /= 1.0 + max(error - smallest, 0.0)
    np.fill_diagonal(correlation, 1.0)
    scale = scale * varies
    n = pairs.effective_rows()
    gram = n * correlation * scale[:, None] * scale[None, :]
    moments = Moments(patterns.schema, n, centre, np.zeros(len(scale)), gram)
    return Estimated(moments, iterations=1, converged=True, pairs=pairs)


@final
class Maximisation:
    """The parameters of expectation-maximisation, step by step.

    They follow from the expected sums alone. The first ones are those of independent standardised
    columns; each step takes those that maximise the expected likelihood.

    Parameters
    ----------
    d
        Number of columns.

    Attributes
    ----------
    mean, covariance
        The parameters for the next expected sums.
    steps
        Number of steps.
    change
        The largest change of a parameter by the last step.

    Notes
    -----
    Steps are not extrapolated: with many missing values, Anderson acceleration took fewer steps,
    and left covariances with eigenvalues that were far too small.
    """

    def __init__(self, d: int) -> None:
        self.mean: Floats = np.zeros(d)
        self.covariance: Floats = np.eye(d)
        self.steps = 0
        self.change = math.inf

    def converged(self, tolerance: float) -> bool:
        """Whether the last step changed no parameter by more than the tolerance."""
        return self.change <= tolerance

    def advance(self, expected: Expected) -> None:
        """Take the expected sums at `mean` and `covariance`, and compute the next parameters."""
        n, sums, products = expected
        mean = sums / n
        covariance = products / n - np.outer(mean, mean)
        covariance = (covariance + covariance.T) / 2
        moved = np.abs(mean - self.mean).max(), np.abs(covariance - self.covariance).max()
        self.steps += 1
        self.change = float(max(moved))
        self.mean, self.covariance = mean, covariance

    def moments(self, schema: Schema, n: int, centre: Floats, scale: Floats) -> Moments:
        """Return the moments that the last step has estimated.

        Parameters
        ----------
        schema
            The variables.
        n
            Number of rows of the moments.
        centre, scale
            Centres and scales by which the columns were standardised.
        """
        gram = n * self.covariance * scale[:, None] * scale[None, :]
        return Moments(schema, n, centre + scale * self.mean, np.zeros(len(scale)), gram)


class _Group(NamedTuple):
    """Patterns with the same number of missing values, and their rows.

    Attributes
    ----------
    rows
        Positions of the rows.
    pattern_of
        The pattern of each of these rows, among those of the group.
    hidden
        Positions of the missing values of each pattern, of shape (patterns, missing).
    sizes
        Number of rows of the table in each pattern.
    """

    rows: NDArray[np.intp]
    pattern_of: NDArray[np.intp]
    hidden: NDArray[np.intp]
    sizes: Floats


@final
class ExpectationStep:
    """Computes the expected sums and products of rows with missing values.

    Parameters
    ----------
    patterns
        The rows, summed up by pattern.
    rows
        The same rows in units of the spread of each column.
    """

    def __init__(self, patterns: PatternRows, rows: Standardised) -> None:
        self.rows = rows
        self._n = patterns.n
        self._groups = _groups(patterns)

    def expected(
        self, mean: Floats, covariance: Floats, until: float = math.inf
    ) -> Expected | None:
        """Expected sums and products given the values that are there; None if the time is over.

        Given the others, the missing values of a row have the inverse of their block of the
        precision matrix as covariance. Blocks of m missing values take O(m^3) instead of O(d^3).
        """
        d = len(mean)
        precision = np.linalg.inv(covariance + RIDGE * np.eye(d))
        unit, complete = self.rows.unit, self.rows.rows.copy()
        spread = np.zeros(d * d)
        for rows, pattern_of, hidden, sizes in self._groups:
            if time.monotonic() >= until:
                return None
            own = np.linalg.inv(precision[hidden[:, :, None], hidden[:, None, :]])
            cells = d * hidden[:, :, None] + hidden[:, None, :]
            spread += np.bincount(
                cells.ravel(), (sizes[:, None, None] * own).ravel(), minlength=d * d
            )
            at = (np.arange(len(rows))[:, None], hidden[pattern_of])
            deviation = complete[rows] - unit[rows, None] * mean
            deviation[at] = 0.0
            pull = (deviation @ precision)[at]
            guess = unit[rows, None] * mean[at[1]]
            guess -= np.einsum("rij,rj->ri", own[pattern_of], pull)
            complete[rows[:, None], at[1]] = guess
        products = complete.T @ complete + spread.reshape(d, d)
        return Expected(self._n, unit @ complete, products)


def _groups(patterns: PatternRows) -> list[_Group]:
    """Group the patterns by their number of missing values, some at once."""
    absent = ~patterns.observed
    order = np.argsort(patterns.which, kind="stable")
    starts = np.searchsorted(patterns.which[order], np.arange(len(absent) + 1))
    missing_of = absent.sum(axis=1)
    groups = []
    for missing in np.unique(missing_of[missing_of > 0]).tolist():
        own = np.flatnonzero(missing_of == missing)
        step = max(1, _NUMBERS // (missing * absent.shape[1]))
        for start in range(0, len(own), step):
            part = own[start : start + step]
            rows = np.concatenate([order[starts[k] : starts[k + 1]] for k in part])
            pattern_of = np.repeat(np.arange(len(part)), starts[part + 1] - starts[part])
            hidden = np.nonzero(absent[part])[1].reshape(len(part), missing)
            sizes = patterns.sizes[part].astype(np.float64)
            groups.append(_Group(rows, pattern_of, hidden, sizes))
    return groups
