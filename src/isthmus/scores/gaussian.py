"""Compiled scores of linear Gaussian networks, shared by all Gaussian scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from isthmus.kernels.scoring import gaussian_score
from isthmus.models.least_squares import spectrum
from isthmus.objectives import LocalScore, PythonLocalScore
from isthmus.scores.costs import gaussian_cost
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
        score_bound=lambda: gaussian_bound(correlation, np.log(scale), tables, TOLERANCE),
        cost=gaussian_cost,
    )


def bind_shifted(
    names: Sequence[str], matrix: Floats, shift: Floats, tables: tuple[Floats, Floats, Floats]
) -> LocalScore:
    """Bind the same score for ``R = matrix + outer(shift, shift)``, however long the shift is.

    The determinant of each block is ``det(matrix) (1 + shift' matrix^-1 shift)``. The first factor
    is that of `bind_matrix`. The matrix is never added up, so it is not lost next to the shift.
    """
    centred = bind_matrix(names, matrix, tables)
    _, log_variance, log_determinant = tables

    def log_factor(within: list[int]) -> float:
        parts = spectrum(matrix[np.ix_(within, within)])
        scaled = (shift[within] / parts.spread)[:, None]
        return float(np.log1p((scaled * parts.solve(scaled)).sum()))

    def local(child: int, parents: tuple[int, ...]) -> float:
        k, own = len(parents), list(parents)
        before, after = log_factor(own), log_factor([*own, child])
        value = centred.local(child, own) - float(log_variance[k]) * (after - before)
        return value - float(log_determinant[k]) * before

    return PythonLocalScore(names, local, equivalent=True)
