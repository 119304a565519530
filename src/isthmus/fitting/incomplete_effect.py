"""The standard error of an effect whose moments were estimated from incomplete rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from isthmus.types import Floats

_MOST = 100
"""Number of variables above which information about their covariances is not computed."""
_STEPS, _EXACT = 500, 1e-20
"""Largest number of steps of conjugate gradients, and the share of the squares that may be left."""


def incomplete_error(rows: Floats, mean: Floats, covariance: Floats, slopes: Floats) -> float:
    """Return the standard error of the first coefficient of a regression; NaN if it is not known.

    The likelihood of the rows tells how much each of them moves the estimated covariances, and
    these the coefficient (the sandwich of observed data, for values missing at random regardless of
    others). Residuals of rows with missing values include the error of what was expected for them,
    so that no number of rows has to be assumed.

    Parameters
    ----------
    rows
        The regressors, the cause first, and the outcome as the last column, with NaN for missing
        values.
    mean, covariance
        Their maximum likelihood estimates.
    slopes
        The coefficients.
    """
    p = rows.shape[1]
    if p > _MOST:
        return np.nan
    scale = np.sqrt(covariance.diagonal())
    covariance = covariance / np.outer(scale, scale)
    away = (rows - mean) / scale
    slopes = slopes * scale[:-1] / scale[-1]
    inner = np.linalg.inv(covariance[:-1, :-1])
    direction = np.outer(np.append(inner[0], 0.0), np.append(-slopes, 1.0))
    parts = [*_patterns(away, covariance)]
    weights = np.array([weight for _, weight in parts])
    often = np.array([len(own) for own, _ in parts], dtype=np.float64)
    solved = _solved(weights, often, direction + direction.T)
    squares = 0.0
    for residual, weight in parts:
        influence = np.einsum("ij,ij->i", residual @ (weight @ solved @ weight), residual)
        squares += float(((influence - np.trace(weight @ solved)) ** 2).sum())
    return float(0.5 * np.sqrt(squares) * scale[-1] / scale[0])


def _solved(weights: Floats, often: Floats, gradient: Floats) -> Floats:
    """Divide the gradient by the information about covariances, by conjugate gradients.

    The information takes a matrix D to half the sum of W D W over rows, with their precisions W.
    """
    solved, rest = np.zeros_like(gradient), 0.5 * gradient
    step, size = rest, float((rest**2).sum())
    enough = _EXACT * size
    for _ in range(_STEPS):
        if size <= enough:
            break
        moved = 0.5 * np.tensordot(often, weights @ step @ weights, 1)
        length = size / float((step * moved).sum())
        solved = solved + length * step
        rest = rest - length * moved
        size, before = float((rest**2).sum()), size
        step = rest + size / before * step
    return solved


def _patterns(away: Floats, covariance: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Yield for each pattern of values its rows, with zeros, and their precision.

    The precision is that of the values that are there, and zero elsewhere.
    """
    there = ~np.isnan(away)
    patterns, which = np.unique(there, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        own = which.ravel() == number
        if pattern.any():
            weight = np.zeros_like(covariance)
            place = np.ix_(pattern, pattern)
            weight[place] = np.linalg.inv(covariance[place])
            yield np.where(pattern, away[own], 0.0), weight
