"""Covariances of the parameters of regressions that hold for noise of any variance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from isthmus.models import ConditionalGaussian
from isthmus.models.conditionals import Columns, NormalConditional, configuration
from isthmus.models.curved import CurvedGaussian
from isthmus.models.sampling_error import ENOUGH
from isthmus.types import Floats

_MOST_CELLS = 1000
"""Configurations of discrete parents above which covariances are those of equal variances."""
_RANK = 1e-12
"""Share of the largest eigenvalue below which regressors count as collinear."""


def robust(own: NormalConditional, values: Floats, columns: Columns) -> NormalConditional:
    """Return a regression with the covariances of its parameters, from the rows it was fitted to.

    Configurations with few rows keep none, and are drawn as if their noise had one variance.

    Parameters
    ----------
    own
        The regression.
    values
        The values of the node.
    columns
        Those of its parents.
    """
    if isinstance(own, CurvedGaussian):
        inner = robust(own.regression, values, own.columns(columns))
        return own.with_regression(inner)
    assert isinstance(own, ConditionalGaussian)
    n, k, shape = len(values), len(own.continuous), own.intercepts.shape
    if own.intercepts.size > _MOST_CELLS:
        return own
    x = np.array([columns[v] for v in own.continuous]).reshape(k, n).T
    error = values - own.mean(columns, n)
    place = configuration(columns, own.discrete, shape, n)
    order = np.argsort(place, kind="stable")
    ends = np.searchsorted(place[order], np.arange(own.intercepts.size + 1))
    covariances = np.zeros((own.intercepts.size, k + 1, k + 1))
    for cell in range(len(covariances)):
        some = order[ends[cell] : ends[cell + 1]]
        if len(some) - 1 - k >= ENOUGH:
            covariances[cell] = sandwich(x[some], error[some])
    return replace(own, covariances=covariances.reshape(*shape, k + 1, k + 1))


def sandwich(x: Floats, error: Floats) -> Floats:
    """Return the covariance of the intercept and the slopes of a least-squares regression (HC3).

    Parameters
    ----------
    x
        The regressors, of shape (rows, regressors), without the constant.
    error
        The residuals.
    """
    n, k = x.shape
    mean, spread = x.mean(axis=0), x.std(axis=0)
    unit = np.where(spread > 0.0, spread, 1.0)
    design = np.concatenate([np.ones((n, 1)), (x - mean) / unit], axis=1)
    inverse = np.linalg.pinv(design.T @ design, _RANK, hermitian=True)
    half = design @ inverse
    left = 1.0 - np.einsum("ij,ij->i", half, design)
    half *= (error / np.maximum(left, 1.0 / n))[:, None]
    back = np.zeros((k + 1, k + 1))
    back[0, 0], back[0, 1:] = 1.0, -mean / unit
    back[np.arange(1, k + 1), np.arange(1, k + 1)] = 1.0 / unit
    covariance: Floats = back @ (half.T @ half) @ back.T
    return covariance
