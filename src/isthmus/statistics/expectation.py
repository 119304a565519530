"""Moments of a normal distribution from rows with missing values."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError
from isthmus.statistics.moments import Moments
from isthmus.statistics.schema import Schema
from isthmus.types import Floats

_RIDGE = 1e-9
"""Added to standardised variances before they are inverted: columns may be collinear."""
_NUMBERS = 2**20
"""Size of the matrices that are inverted at once: steps take some milliseconds."""


class Estimated(NamedTuple):
    """Moments, the number of iterations, and whether they have converged."""

    moments: Moments
    iterations: int
    converged: bool

    def remark(self) -> str | None:
        """What the user should know if the moments have not converged."""
        if self.converged:
            return None
        return (
            f"The moments of the incomplete columns were still changing after {self.iterations} "
            "iterations of expectation-maximisation. Allow more iterations or time."
        )


def estimate_moments(
    schema: Schema,
    values: Floats,
    absent: NDArray[np.bool_],
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
    schema
        The variables, all continuous.
    values
        Shape (n, d); cells that are missing are ignored.
    absent
        Which cells are missing.
    max_iterations, tolerance
        When to stop; the tolerance concerns standardised columns.
    until
        Stop at this time of ``time.monotonic()``, with the moments of the last whole iteration.
    """
    observed = ~absent
    filled, centre, scale = _standardised(schema, values, observed)
    groups = _groups(absent)
    d = filled.shape[1]
    mean, covariance = np.zeros(d), np.eye(d)
    iterations, converged = 0, False
    while not converged and iterations < max_iterations:
        expected = _expected(filled, groups, mean, covariance, until if iterations else math.inf)
        if expected is None:
            break
        iterations += 1
        new_mean = expected[0] / len(filled)
        new_covariance = expected[1] / len(filled) - np.outer(new_mean, new_mean)
        change = max(
            float(np.abs(new_mean - mean).max()), float(np.abs(new_covariance - covariance).max())
        )
        mean, covariance = new_mean, (new_covariance + new_covariance.T) / 2
        converged = change <= tolerance
    n = _effective_rows(observed)
    gram = n * covariance * scale[:, None] * scale[None, :]
    moments = Moments(schema, n, centre + scale * mean, np.zeros(d), gram)
    return Estimated(moments, iterations, converged)


class _Group(NamedTuple):
    """Rows with the same number of missing values.

    Attributes
    ----------
    rows
        Positions of the rows.
    pattern_of
        The pattern of each of these rows.
    hidden
        Positions of the missing values of each pattern, of shape (patterns, missing).
    """

    rows: NDArray[np.intp]
    pattern_of: NDArray[np.intp]
    hidden: NDArray[np.intp]


def _groups(absent: NDArray[np.bool_]) -> list[_Group]:
    """Group the rows by patterns of at most so many numbers at once."""
    patterns, which = np.unique(absent, axis=0, return_inverse=True)
    which = which.ravel()
    order = np.argsort(which, kind="stable")
    starts = np.searchsorted(which[order], np.arange(len(patterns) + 1))
    sizes = patterns.sum(axis=1)
    groups = []
    for missing in np.unique(sizes[sizes > 0]).tolist():
        own = np.flatnonzero(sizes == missing)
        step = max(1, _NUMBERS // (missing * patterns.shape[1]))
        for start in range(0, len(own), step):
            part = own[start : start + step]
            rows = np.concatenate([order[starts[k] : starts[k + 1]] for k in part])
            pattern_of = np.repeat(np.arange(len(part)), starts[part + 1] - starts[part])
            hidden = np.nonzero(patterns[part])[1].reshape(len(part), missing)
            groups.append(_Group(rows, pattern_of, hidden))
    return groups


def _standardised(
    schema: Schema, values: Floats, observed: NDArray[np.bool_]
) -> tuple[Floats, Floats, Floats]:
    """Rows with zeros for missing cells, and the centre and the scale of each column."""
    with np.errstate(invalid="ignore", over="ignore"):
        known = np.where(observed, values, 0.0)
        if not np.isfinite(known).all():
            wrong = [v for v, x in zip(schema.names, known.T, strict=True) if np.isinf(x).any()]
            raise DataError(f"Values are infinite in these columns: {wrong[:20]}.")
    count = observed.sum(axis=0)
    centre = known.sum(axis=0) / count
    known = np.where(observed, known - centre, 0.0)
    scale = np.sqrt((known * known).sum(axis=0) / count)
    scale = np.where(scale > 0.0, scale, 1.0)
    return known / scale, centre, scale


def _effective_rows(observed: NDArray[np.bool_]) -> int:
    shares = observed.astype(np.float64)
    pairs = shares.T @ shares
    d = len(pairs)
    mean = pairs.sum() - np.trace(pairs)
    return max(1, round(mean / (d * (d - 1)))) if d > 1 else int(pairs[0, 0])


def _expected(
    filled: Floats, groups: Sequence[_Group], mean: Floats, covariance: Floats, until: float
) -> tuple[Floats, Floats] | None:
    """Expected sums and products given the values that are there; None if the time is over.

    Given the others, the missing values of a row have the inverse of their block of the precision
    matrix as covariance. Blocks of m missing values take O(m^3) instead of O(d^3).
    """
    d = len(mean)
    precision = np.linalg.inv(covariance + _RIDGE * np.eye(d))
    complete = filled.copy()
    spread = np.zeros(d * d)
    for rows, pattern_of, hidden in groups:
        if time.monotonic() >= until:
            return None
        own = np.linalg.inv(precision[hidden[:, :, None], hidden[:, None, :]])
        weights = np.bincount(pattern_of, minlength=len(hidden)).astype(np.float64)
        cells = d * hidden[:, :, None] + hidden[:, None, :]
        spread += np.bincount(
            cells.ravel(), (weights[:, None, None] * own).ravel(), minlength=d * d
        )
        at = (np.arange(len(rows))[:, None], hidden[pattern_of])
        deviation = filled[rows] - mean
        deviation[at] = 0.0
        pull = (deviation @ precision)[at]
        guess = mean[at[1]] - np.einsum("rij,rj->ri", own[pattern_of], pull)
        complete[rows[:, None], at[1]] = guess
    products = complete.T @ complete + spread.reshape(d, d)
    return complete.sum(axis=0), products
