"""Expectation-maximisation of the moments of a normal distribution."""

from __future__ import annotations

import math
import time
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from isthmus.statistics.moments import Moments
from isthmus.statistics.patterns import PatternRows, Standardised
from isthmus.statistics.schema import Schema
from isthmus.types import Floats

_RIDGE = 1e-9
"""Added to standardised variances before they are inverted: columns may be collinear."""
_NUMBERS = 2**20
"""Size of the matrices that are inverted at once: steps take some milliseconds."""
_MEMORY = 8
"""Number of earlier steps that an accelerated step uses."""
_LEAST_EIGENVALUE = 0.2
"""An accelerated step shrinks the smallest eigenvalue at most to this share of a plain step's."""


class Estimated(NamedTuple):
    """Moments, the number of iterations, and whether they have converged."""

    moments: Moments
    iterations: int
    converged: bool

    def remarks(self) -> tuple[str, ...]:
        """What the user should know if the moments have not converged."""
        remark = (
            f"The moments of the incomplete columns were still changing after {self.iterations} "
            "iterations of expectation-maximisation. Allow more iterations or time."
        )
        return () if self.converged else (remark,)


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

    The number of rows of the moments is the number of rows that have a value of both of two
    columns, averaged over all pairs of columns: scores then weigh the evidence that is there.

    Parameters
    ----------
    patterns
        The rows, summed up by pattern.
    max_iterations, tolerance
        When to stop; the tolerance concerns standardised columns.
    until
        Stop at this time of ``time.monotonic()``, with the moments of the last whole iteration.
    """
    step = ExpectationStep(patterns, patterns.standardised())
    iteration = Maximisation(len(patterns.schema))
    while not iteration.converged(tolerance) and iteration.steps < max_iterations:
        limit = until if iteration.steps else math.inf
        expected = step.expected(iteration.mean, iteration.covariance, limit)
        if expected is None:
            break
        iteration.advance(expected)
    n, (*_, centre, scale) = patterns.effective_rows(), step.rows
    moments = iteration.moments(patterns.schema, n, centre, scale)
    return Estimated(moments, iteration.steps, iteration.converged(tolerance))


@final
class Maximisation:
    """The parameters of expectation-maximisation, step by step.

    They follow from the expected sums alone. Starting with independent standardised columns, each
    step takes the parameters that maximise the expected likelihood, and extrapolates them from the
    last steps (Anderson acceleration; Walker and Ni 2011).

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
        The largest change of a parameter by the last step without extrapolation.
    """

    def __init__(self, d: int) -> None:
        self.mean: Floats = np.zeros(d)
        self.covariance: Floats = np.eye(d)
        self.steps = 0
        self.change = math.inf
        self._upper = np.triu_indices(d)
        self._plain = self.mean, self.covariance
        self._smallest = math.inf
        self._points: list[Floats] = []
        self._residuals: list[Floats] = []

    def converged(self, tolerance: float) -> bool:
        """Whether the last step changed no parameter by more than the tolerance."""
        return self.change <= tolerance

    def advance(self, expected: Expected) -> None:
        """Take the expected sums at `mean` and `covariance`, and choose the next parameters."""
        n, sums, products = expected
        mean = sums / n
        covariance = products / n - np.outer(mean, mean)
        covariance = (covariance + covariance.T) / 2
        before = self._vector(self.mean, self.covariance)
        after = self._vector(mean, covariance)
        residual = after - before
        self.steps += 1
        self.change = float(np.abs(residual).max())
        self._plain = self.mean, self.covariance = mean, covariance
        size = float(np.linalg.norm(residual))
        if size > 2.0 * self._smallest:  # the extrapolation went too far
            self._points, self._residuals = [], []
        self._smallest = min(self._smallest, size)
        self._points = [*self._points[-_MEMORY:], after]
        self._residuals = [*self._residuals[-_MEMORY:], residual]
        if len(self._points) > 1:
            self._extrapolate()

    def _extrapolate(self) -> None:
        """Move to where the residuals of the last steps would cancel, if that is a covariance."""
        points, residuals = np.array(self._points), np.array(self._residuals)
        differences = np.diff(residuals, axis=0)
        gram = differences @ differences.T
        gram += 1e-10 * np.trace(gram) * np.eye(len(gram))
        if not gram.trace() > 0.0:
            return
        weights = np.linalg.solve(gram, differences @ residuals[-1])
        away = weights @ np.diff(points, axis=0)
        least = _LEAST_EIGENVALUE * float(np.linalg.eigvalsh(self._plain[1])[0])
        for share in (1.0, 0.5, 0.25):
            mean, covariance = self._matrix(points[-1] - share * away)
            if float(np.linalg.eigvalsh(covariance)[0]) > least > 0.0:
                self.mean, self.covariance = mean, covariance
                return

    def _vector(self, mean: Floats, covariance: Floats) -> Floats:
        return np.concatenate([mean, covariance[self._upper]])

    def _matrix(self, vector: Floats) -> tuple[Floats, Floats]:
        d = len(self.mean)
        covariance = np.zeros((d, d))
        covariance[self._upper] = vector[d:]
        return vector[:d], covariance + np.triu(covariance, 1).T

    def moments(self, schema: Schema, n: int, centre: Floats, scale: Floats) -> Moments:
        """Return the moments that the last step has estimated.

        Parameters
        ----------
        schema
            The variables.
        n
            Number of rows that the moments are worth.
        centre, scale
            What the columns were standardised by.
        """
        mean, covariance = self._plain
        gram = n * covariance * scale[:, None] * scale[None, :]
        return Moments(schema, n, centre + scale * mean, np.zeros(len(mean)), gram)


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
        precision = np.linalg.inv(covariance + _RIDGE * np.eye(d))
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
