"""Conditional normal distributions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError
from isthmus.models.least_squares import spectrum
from isthmus.types import Floats

_IMPOSSIBLE = 1e-6
"""Tolerance, in standard deviations, for evidence that other evidence determines."""


def regression_on(
    covariance: Floats,
    targets: NDArray[np.intp],
    given: NDArray[np.intp],
    errors: Floats | float = 0.0,
) -> tuple[Floats, Floats]:
    """Return the regression of targets on measurements, and a basis of what is impossible.

    Measurements have errors with the given standard deviations.
    The first array has the shape (targets, given). The columns of the second are combinations of
    the given variables, in units of their standard deviations, whose variance is zero.
    """
    seen = covariance[np.ix_(given, given)]
    seen[np.diag_indices(len(given))] += np.square(errors)
    parts = spectrum(seen)
    cross = covariance[np.ix_(given, targets)] / parts.spread[:, None]
    weights = parts.solve(cross) / parts.spread[:, None]
    return weights.T, parts.vectors[:, ~parts.free] / parts.spread[:, None]


def condition(
    mean: Floats,
    covariance: Floats,
    targets: NDArray[np.intp],
    given: NDArray[np.intp],
    values: Floats,
    errors: Floats,
) -> tuple[Floats, Floats]:
    """Return mean and covariance of the targets given measurements of variables."""
    if not len(given):
        return mean[targets], covariance[np.ix_(targets, targets)]
    weights, fixed = regression_on(covariance, targets, given, errors)
    surprise = values - mean[given]
    if fixed.size and np.abs(surprise @ fixed).max() > _IMPOSSIBLE:
        raise DataError(
            "The evidence is impossible in this network: some of its values are determined by "
            "the others, and differ from them."
        )
    rest = covariance[np.ix_(targets, targets)] - weights @ covariance[np.ix_(given, targets)]
    rest = (rest + rest.T) / 2
    np.fill_diagonal(rest, np.maximum(rest.diagonal(), 0.0))
    return mean[targets] + weights @ surprise, rest
