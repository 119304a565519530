"""Compiled scores of linear Gaussian networks, shared by all Gaussian scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from isthmus.kernels.scoring import gaussian_score
from isthmus.objectives import LocalScore
from isthmus.scores.score_bounds import gaussian_bound
from isthmus.statistics import Moments
from isthmus.statistics.moments import correlate
from isthmus.types import Floats

TOLERANCE = 1e-10
"""Fraction of a column's variance below which it counts as determined by other columns."""


def bind_likelihood(moments: Moments, penalties: Floats) -> LocalScore:
    """Bind the maximised Gaussian log-likelihood minus ``penalties[number of parents]``."""
    n, d = moments.n, len(moments.schema)
    constant = np.full(d + 1, -0.5 * n * (np.log(2.0 * np.pi) + 1.0)) - penalties
    half = np.full(d + 1, 0.5 * n)
    return bind_matrix(
        moments.schema.names, moments.covariance(), (constant, half, np.zeros(d + 1))
    )


def bind_matrix(
    names: Sequence[str], matrix: Floats, tables: tuple[Floats, Floats, Floats]
) -> LocalScore:
    """Bind ``a[k] - b[k] log v(child | parents) - c[k] log det R[parents]`` for ``R = matrix``."""
    correlation, scale = correlate(matrix)
    constant, log_variance, log_determinant = tables
    kernel = gaussian_score(
        correlation,
        np.log(scale),
        constant=constant,
        log_variance=log_variance,
        log_determinant=log_determinant,
        tolerance=TOLERANCE,
    )
    return LocalScore(
        names,
        kernel,
        equivalent=True,
        ceiling=lambda: gaussian_bound(correlation, np.log(scale), tables, TOLERANCE),
    )
