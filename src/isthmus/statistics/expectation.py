"""Moments of a normal distribution from rows with missing values."""

from __future__ import annotations

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


def estimate_moments(
    schema: Schema,
    values: Floats,
    absent: NDArray[np.bool_],
    *,
    max_iterations: int,
    tolerance: float,
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
    """
    observed = ~absent
    filled, centre, scale = _standardised(schema, values, observed)
    d = filled.shape[1]
    patterns, which = np.unique(observed, axis=0, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    filled, which = filled[order], which.ravel()[order]
    mean, covariance = np.zeros(d), np.eye(d)
    iterations, converged = 0, False
    while not converged and iterations < max_iterations:
        iterations += 1
        sums, products = _expected(filled, patterns, which, mean, covariance)
        new_mean = sums / len(filled)
        new_covariance = products / len(filled) - np.outer(new_mean, new_mean)
        change = max(
            float(np.abs(new_mean - mean).max()), float(np.abs(new_covariance - covariance).max())
        )
        mean, covariance = new_mean, (new_covariance + new_covariance.T) / 2
        converged = change <= tolerance
    n = _effective_rows(observed)
    gram = n * covariance * scale[:, None] * scale[None, :]
    moments = Moments(schema, n, centre + scale * mean, np.zeros(d), gram)
    return Estimated(moments, iterations, converged)


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
    filled: Floats, patterns: NDArray[np.bool_], which: NDArray[np.int64], mean: Floats, cov: Floats
) -> tuple[Floats, Floats]:
    """Expected sums and products, given the values that are there."""
    d = len(mean)
    sums, products = np.zeros(d), np.zeros((d, d))
    step = max(1, _NUMBERS // (d * d))
    for start in range(0, len(patterns), step):
        there = patterns[start : start + step].astype(np.float64)
        rows = slice(*np.searchsorted(which, [start, start + step]))
        number = which[rows] - start
        # The inverse of the observed block, and zero elsewhere.
        block = there[:, :, None] * cov * there[:, None, :]
        at = np.arange(d)
        block[:, at, at] += 1.0 - there + _RIDGE
        inverse = np.linalg.inv(block)
        inverse[:, at, at] -= (1.0 - there) / (1.0 + _RIDGE)
        regression = inverse @ cov
        own = there[number]
        guess = mean + ((filled[rows] - mean) * own)[:, None, :] @ regression[number]
        complete = np.where(own > 0.0, filled[rows], guess[:, 0, :])
        sums += complete.sum(axis=0)
        products += complete.T @ complete
        weights = np.bincount(number, minlength=len(there)).astype(np.float64)
        hidden = 1.0 - there
        spread = (cov - cov @ regression) * hidden[:, :, None] * hidden[:, None, :]
        products += np.tensordot(weights, spread, axes=1)
    return sums, products
