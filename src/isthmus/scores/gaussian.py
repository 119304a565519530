"""Compiled scores of linear Gaussian networks, shared by all Gaussian scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from isthmus.kernels.scoring import LocalScore as LocalScoreKernel
from isthmus.kernels.scoring import gaussian_score, python_score
from isthmus.models.least_squares import spectrum
from isthmus.objectives import (
    BoundWork,
    ColumnCorrelations,
    Correlations,
    CorrelationScore,
    LocalScore,
    MatrixCorrelations,
    PythonLocalScore,
)
from isthmus.scores.costs import gaussian_cost
from isthmus.scores.family_rows import at_own_rows
from isthmus.scores.score_bounds import gaussian_bound
from isthmus.statistics import Moments, StandardisedColumns
from isthmus.statistics.moments import correlate
from isthmus.types import Floats

TOLERANCE = 1e-12
"""Fraction of a column's variance below which it counts as determined by other columns.

Rounding leaves about 1e-14 of a column that others determine. In dense graphs 1e-11 can be left of
one that they do not determine."""


def bind_likelihood(
    statistics: Moments | StandardisedColumns, prices: Callable[[int], Floats]
) -> LocalScore:
    """Bind the maximised Gaussian log-likelihood minus a penalty.

    Parameters
    ----------
    statistics
        The statistics.
    prices
        Returns the penalties of 0, 1, … d parents for a number of rows.
    """
    n, d = statistics.n, len(statistics.schema)
    penalties = prices(n)
    constant = np.full(d + 1, -0.5 * n * (np.log(2.0 * np.pi) + 1.0)) - penalties
    bound: Callable[[], BoundWork] | None = None
    correlations: Correlations
    if isinstance(statistics, StandardisedColumns):
        scale = np.where(statistics.deviation > 0.0, statistics.deviation, 1.0) ** 2
        correlations = ColumnCorrelations(statistics.values)
        kernel = _on_demand(correlations, np.log(scale), constant, 0.5 * n)
    else:
        correlation, scale = correlate(statistics.covariance())
        correlations = MatrixCorrelations(correlation)
        tables = (constant, np.full(d + 1, 0.5 * n), np.zeros(d + 1))
        kernel = _kernel(correlation, np.log(scale), tables)
        bound = partial(gaussian_bound, correlation, np.log(scale), tables, TOLERANCE)
    score = CorrelationScore(
        statistics.schema.names,
        kernel,
        correlations,
        constant=constant,
        factor=0.5 * n,
        log_variances=np.log(scale),
        tolerance=TOLERANCE,
        score_bound=bound,
        cost=gaussian_cost,
    )
    if isinstance(statistics, StandardisedColumns):
        return score
    return at_own_rows(score, statistics, prices)


def _kernel(
    correlation: Floats, log_scale: Floats, tables: tuple[Floats, Floats, Floats]
) -> LocalScoreKernel:
    constant, log_variance, log_determinant = tables
    return gaussian_score(
        correlation,
        log_scale,
        constant=constant,
        log_variance=log_variance,
        log_determinant=log_determinant,
        tolerance=TOLERANCE,
    )


def _on_demand(
    correlations: Correlations, log_scale: Floats, constant: Floats, factor: float
) -> LocalScoreKernel:
    """Score each family by the correlations of its own columns."""

    def local(child: int, parents: tuple[int, ...]) -> float:
        family, k = np.array([*parents, child], dtype=np.int64), len(parents)
        tables = (constant[: k + 2], np.full(k + 2, factor), np.zeros(k + 2))
        kernel = _kernel(correlations.among(family), log_scale[family], tables)
        own = np.arange(k, dtype=np.int64)
        return float(kernel.extensions(k, own, np.empty(0, np.int64))[0])

    return python_score(len(correlations), local)


def bind_matrix(
    names: Sequence[str], matrix: Floats, tables: tuple[Floats, Floats, Floats]
) -> LocalScore:
    """Bind ``a[k] - b[k] log v(child | parents) - c[k] log det R[parents]`` for ``R = matrix``."""
    correlation, scale = correlate(matrix)
    return LocalScore(
        names,
        _kernel(correlation, np.log(scale), tables),
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
