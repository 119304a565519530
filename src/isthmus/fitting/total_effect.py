"""Total effects of linear models by adjusted regression, from moments and, if possible, rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from isthmus.errors import DataError
from isthmus.graphs.names import listed
from isthmus.models.least_squares import Spectrum, regress, spectrum
from isthmus.plurals import counted
from isthmus.statistics import Moments
from isthmus.types import Floats

_FULL_LEVERAGE = 1.0 - 1e-6
"""Leverage above which a row determines a coefficient alone, so that it has no residual."""


def adjusted_effect(
    moments: Moments,
    cause: str,
    effect: str,
    given: tuple[str, ...],
    *,
    rows: Callable[[Sequence[str]], Floats] | None = None,
) -> tuple[float, float, float, bool, None, float]:
    """Return a coefficient, its standard error, its degrees of freedom, a flag, and a correlation.

    The last number is the partial correlation of cause and effect. The flag says whether the
    standard error is valid if the variance of the noise depends on the regressors
    (heteroscedasticity). That needs rows: moments do not show such a dependence.

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
        robust = _robust_error(centred, fitted.coefficients, float(fitted.variance), parts)
        if robust is not None:
            return value, *robust, True, None, partial
    error = float(np.sqrt(fitted.variance / degrees) / precision)
    return value, error, degrees, False, None, partial


def _robust_error(
    centred: Floats, coefficients: Floats, squares: float, parts: Spectrum
) -> tuple[float, float] | None:
    """Return a standard error of the first coefficient (HC2), and its degrees of freedom.

    The degrees of freedom are those of Bell and McCaffrey (2002): few if the coefficient rests on
    few rows, such as those of a rare flag, for which the usual number gives intervals that are too
    narrow. None if a row has no residual of its own, or if the rows are no longer those of the
    moments, since a user may change an array in place.
    """
    n, k = centred.shape[0], centred.shape[1] - 1
    root = parts.vectors / np.sqrt(parts.values) / parts.spread[:, None]
    basis = np.full((n, k + 1), 1.0 / np.sqrt(n))  # orthonormal, with the intercept
    basis[:, :k] = centred[:, :k] @ root
    leverage = np.einsum("ij,ij->i", basis, basis)
    residual = centred[:, k] - centred[:, :k] @ coefficients
    same = np.isclose([leverage.sum(), residual @ residual], [k + 1.0, squares], rtol=1e-6).all()
    if not same or leverage.max() > _FULL_LEVERAGE:
        return None
    influence = basis[:, :k] @ root[0]  # of each row on the coefficient
    left = 1.0 - leverage
    weight = influence**2 / left
    error = float(np.sqrt(weight @ residual**2))
    # Mean and variance of the squared error, if the variance of the noise were constant.
    mean = float(influence @ influence)
    inner = basis.T @ (weight[:, None] * basis)
    spread = float((weight**2) @ (left**2 - leverage**2) + (inner**2).sum())
    return error, mean**2 / spread
