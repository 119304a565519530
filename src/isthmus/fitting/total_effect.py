"""Total effects of linear models by adjusted regression, from moments and, if possible, rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from isthmus.errors import DataError
from isthmus.fitting.average_slope import average_slope
from isthmus.fitting.curved_terms import RegressionColumn, rows_needed
from isthmus.fitting.estimate import Estimate
from isthmus.fitting.incomplete_effect import incomplete_error
from isthmus.fitting.sandwich import sandwich
from isthmus.graphs.names import listed
from isthmus.models.least_squares import Spectrum, regress, spectrum
from isthmus.plurals import counted
from isthmus.statistics import Moments
from isthmus.types import Floats, Integers

_FULL_LEVERAGE = 1.0 - 1e-6
"""Leverage above which a row determines a coefficient alone, so that it has no residual."""


def adjusted_effect(
    moments: Moments,
    cause: str,
    effect: str,
    given: tuple[str, ...],
    *,
    rows: Callable[[Sequence[str]], Floats] | None = None,
    variables: Sequence[tuple[int, bool]] | None = None,
    clusters: Integers | None = None,
    incomplete: Callable[[Sequence[str]], Floats] | None = None,
) -> Estimate:
    """Return the effect of one unit of a continuous cause, adjusted for further variables.

    It is the coefficient of a regression on lines, if these survive the challenge by curves and
    interactions (see `average_slope`), and otherwise the average slope of the larger regression.
    The challenge, and a standard error that is valid if the variance of the noise depends on the
    regressors (heteroscedasticity), need rows: moments do not show such a dependence. If values are
    missing, lines are challenged on the rows that have all values, and estimated from all rows; if
    they do not survive, the answer is that of the complete rows.

    Parameters
    ----------
    moments
        Moments of continuous variables.
    cause, effect
        The variable whose coefficient is returned, and the one that is regressed.
    given
        Further regressors.
    rows
        Returns the columns with some names, as an array of shape (rows, names).
    variables
        Of each regressor, the variable that it belongs to, and whether it is a number, which can
        have a curve; by default each is a number of its own.
    clusters
        The cluster of each row, numbered from zero; by default, rows are independent.
    incomplete
        Returns the columns with some names, with NaN for missing values, if the moments maximise
        the likelihood of incomplete rows.
    """
    moments = moments.about((cause, *given, effect))
    schema, scatter = moments.schema, moments.scatter()
    x = [schema.index(v) for v in (cause, *given)]
    y = schema.index(effect)
    degrees = moments.n - len(x) - 1
    if degrees < 1:
        raise DataError(
            f"A regression on {counted(len(x), 'variable')} needs at least {len(x) + 2} rows for a "
            f"standard error; there {'is' if moments.n == 1 else 'are'} {moments.n}."
        )
    if {cause, *given} & set(moments.constants()) or not (scatter[x, x] > 0.0).all():
        raise DataError(f"{cause!r} or a variable to adjust for is constant: no effect to see.")
    if effect in moments.constants():
        raise DataError(
            f"Column {effect!r} is constant: it has the same value in all rows, so there is no "
            "effect to estimate."
        )
    fitted = regress(scatter[np.ix_([*x, y], [*x, y])])
    if fitted.rank < len(x):
        raise DataError(
            f"{listed((cause, *given))} are linearly dependent: one of them follows exactly from "
            "the others (such as a sum), so their effects cannot be told apart. Leave one of them "
            "out of the table, and learn again."
        )
    parts = spectrum(scatter[np.ix_(x, x)])
    value = float(fitted.coefficients[0])
    precision = float(parts.spread[0]) / np.sqrt((parts.vectors[0] ** 2 / parts.values).sum())
    explained = (value * precision) ** 2
    total = explained + float(fitted.variance)
    partial = float(np.copysign(np.sqrt(explained / total), value)) if total > 0.0 else 0.0
    if rows is not None and fitted.variance > 0.0:
        centred = rows((cause, *given, effect)) - moments.mean()[[*x, y]]
        if _are_rows_of(centred, scatter[np.ix_([*x, y], [*x, y])]):
            larger = _challenged(centred, (cause, *given), variables, clusters)
            if larger is not None:
                return larger
            robust = _robust_error(centred, fitted.coefficients, parts)
            if robust is not None:
                return Estimate(value, *robust, partial_correlation=partial)
    if incomplete is not None and fitted.variance > 0.0:
        values = incomplete((cause, *given, effect))
        found = _of_incomplete(values, (cause, *given), moments, fitted.coefficients)
        if np.isfinite(found.standard_error):
            return found if found.terms else found._replace(partial_correlation=partial)
    error = float(np.sqrt(fitted.variance / degrees) / precision)
    return Estimate(
        value, error, degrees, robust=False, partial_correlation=partial, challenged=False
    )


def _of_incomplete(
    values: Floats, regressors: tuple[str, ...], moments: Moments, slopes: Floats
) -> Estimate:
    """Return the estimate of lines from all rows, or that of curves from the complete ones.

    The error is not a number if the information of incomplete rows is not computed.

    Parameters
    ----------
    values
        The regressors, the cause first, and the outcome, with NaN for missing values.
    regressors
        Their names.
    moments
        Those that maximise the likelihood of the values.
    slopes
        The coefficients of lines.
    """
    complete = values[~np.isnan(values).any(axis=1)]
    tried = len(complete) if len(complete) >= rows_needed(len(regressors)) else 0
    if tried and (np.ptp(complete, axis=0) > 0.0).all():
        larger = _challenged(complete - complete.mean(axis=0), regressors, None, None)
        if larger is not None:
            return larger._replace(complete_rows=tried)
    error = incomplete_error(values, moments.mean(), moments.scatter() / moments.n, slopes)
    degrees = moments.n - len(slopes) - 1
    error *= float(np.sqrt(moments.n / degrees))
    challenged = bool(tried)
    return Estimate(float(slopes[0]), error, degrees, challenged=challenged, complete_rows=tried)


def _challenged(
    centred: Floats,
    regressors: Sequence[str],
    variables: Sequence[tuple[int, bool]] | None,
    clusters: Integers | None,
) -> Estimate | None:
    """Return the estimate of a larger regression; None if lines survive the challenge."""
    spread = np.sqrt((centred[:, :-1] ** 2).mean(axis=0))
    own = variables or [(i, True) for i in range(len(regressors))]
    columns = [
        RegressionColumn(v, centred[:, i] / spread[i], *own[i]) for i, v in enumerate(regressors)
    ]
    return average_slope(columns, centred[:, -1], float(spread[0]), clusters)


def _are_rows_of(centred: Floats, scatter: Floats) -> bool:
    """Whether rows are those of the moments: a user may have changed an array in place."""
    spread = np.sqrt(scatter.diagonal())
    return bool(
        np.allclose(centred.T @ centred, scatter, rtol=1e-6, atol=1e-6 * np.outer(spread, spread))
    )


def _robust_error(
    centred: Floats, coefficients: Floats, parts: Spectrum
) -> tuple[float, float] | None:
    """Return a standard error of the first coefficient (HC2), and its degrees of freedom.

    The degrees of freedom are those of Bell and McCaffrey (2002): few if the coefficient rests on
    few rows, such as those of a rare flag, for which the usual number gives intervals that are too
    narrow. None if a row has no residual of its own.
    """
    n, k = centred.shape[0], centred.shape[1] - 1
    root = parts.vectors / np.sqrt(parts.values) / parts.spread[:, None]
    basis = np.full((n, k + 1), 1.0 / np.sqrt(n))  # orthonormal, with the intercept
    basis[:, :k] = centred[:, :k] @ root
    leverage = np.einsum("ij,ij->i", basis, basis)
    residual = centred[:, k] - centred[:, :k] @ coefficients
    if leverage.max() > _FULL_LEVERAGE:
        return None
    influence = basis[:, :k] @ root[0]  # of each row on the coefficient
    contributions, freedom = sandwich(basis, influence, residual)
    return float(np.sqrt(contributions @ contributions)), freedom
