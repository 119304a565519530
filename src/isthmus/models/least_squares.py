"""Linear least squares from covariance matrices; every regression of the library is solved here.

Covariances are first divided by the standard deviations, so that units of measurement change
coefficients by their ratio and nothing else. Whether regressors are collinear is decided by the
eigenvalues of their correlation matrix, in one place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isthmus.types import Bools, Floats, Integers

RANK = 1e-12
"""Share of the largest eigenvalue of a correlation matrix below which one counts as zero.

Rounding leaves about 1e-15 (`tests/models/test_least_squares.py`); eigenvalues above the limit give
coefficients with at least three correct digits.
"""
DETERMINED = 1e-14
"""Share of its variance below which a variable counts as determined by its regressors.

Sums of squares of a million rows are off by up to 1e-15 of themselves (same test).
"""


class Spectrum(NamedTuple):
    """Eigenvalues and eigenvectors of correlation matrices; leading axes are a batch.

    Attributes
    ----------
    spread
        Standard deviations, of shape (..., k); one where it is zero.
    values
        Eigenvalues in ascending order; one where they count as zero.
    vectors
        Eigenvectors, as columns.
    free
        Whether an eigenvalue counts as positive.
    """

    spread: Floats
    values: Floats
    vectors: Floats
    free: Bools

    def solve(self, right: Floats) -> Floats:
        """Return the solution of minimum norm for the correlation matrix; shape (..., k, m)."""
        turned = np.swapaxes(self.vectors, -1, -2) @ right
        turned *= (self.free / self.values)[..., None]
        solution: Floats = self.vectors @ turned
        return solution


class Regression(NamedTuple):
    """Linear regressions; leading axes are a batch.

    Attributes
    ----------
    coefficients
        Of shape (..., regressors).
    variance
        Variance of the residuals; zero if the regressors determine the target.
    rank
        Number of linearly independent regressors.
    """

    coefficients: Floats
    variance: Floats
    rank: Integers


def spectrum(covariance: Floats) -> Spectrum:
    """Decompose the correlations of covariance matrices of shape (..., k, k)."""
    spread, correlation = standardise(covariance)
    values, vectors = np.linalg.eigh(correlation)
    free = values > RANK * np.maximum(values.max(axis=-1, initial=0.0, keepdims=True), 1.0)
    return Spectrum(spread, np.where(free, values, 1.0), vectors, free)


def standardise(covariance: Floats) -> tuple[Floats, Floats]:
    """Return standard deviations and correlations; a constant has one and zeros."""
    variance = np.diagonal(covariance, axis1=-2, axis2=-1)
    moves = variance > 0.0
    spread = np.sqrt(np.where(moves, variance, 1.0))
    correlation = covariance / spread[..., :, None] / spread[..., None, :]
    correlation = np.where(moves[..., :, None] & moves[..., None, :], correlation, 0.0)
    diagonal = np.arange(covariance.shape[-1])
    correlation[..., diagonal, diagonal] = moves
    return spread, correlation


def regress(covariance: Floats, otherwise: Floats | None = None) -> Regression:
    """Regress the last variable on all others, given their covariance matrix.

    Parameters
    ----------
    covariance
        Covariance matrices, of shape (..., k + 1, k + 1), in any units.
    otherwise
        Coefficients, of shape (k,), for what collinear or constant regressors leave open; zero by
        default. Among the solutions of least squares, the one is returned that is closest to them
        in units of the standard deviations.
    """
    k = covariance.shape[-1] - 1
    spread, correlation = standardise(covariance)
    within, cross = correlation[..., :k, :k], correlation[..., :k, k:]
    parts = spectrum(within)
    unit = spread[..., k:] / spread[..., :k]
    start = np.zeros_like(cross)
    if otherwise is not None:
        # A constant has no unit of its own, and is not part of the equations.
        moves = correlation[..., np.arange(k), np.arange(k)] > 0.0
        start = np.where(moves, otherwise / unit, 0.0)[..., None]
    weights = start + parts.solve(cross - within @ start)
    fitted = within @ weights
    explained = (weights * (2.0 * cross - fitted)).sum(axis=(-2, -1))
    share = np.clip(correlation[..., k, k] - explained, 0.0, 1.0)
    share = np.where(share <= DETERMINED, 0.0, share)
    coefficients = weights[..., 0] * unit
    if otherwise is not None:
        coefficients = np.where(moves, coefficients, otherwise)
    return Regression(coefficients, share * spread[..., k] ** 2, parts.free.sum(axis=-1))
