"""Total effects of linear models by adjusted regression, from moments."""

from __future__ import annotations

import numpy as np

from isthmus.errors import DataError
from isthmus.models.least_squares import regress, spectrum
from isthmus.plurals import counted
from isthmus.statistics import Moments


def adjusted_effect(
    moments: Moments, cause: str, effect: str, given: tuple[str, ...]
) -> tuple[float, float, int]:
    """Return a regression coefficient, its standard error and its degrees of freedom.

    Parameters
    ----------
    moments
        Moments of continuous variables.
    cause, effect
        The variable whose coefficient is returned, and the one that is regressed.
    given
        Further regressors.
    """
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
    fitted = regress(scatter[np.ix_([*x, y], [*x, y])])
    if fitted.rank < len(x):
        raise DataError(
            f"{cause!r} and {list(given)} are linearly dependent, so their effects cannot be told "
            "apart."
        )
    parts = spectrum(scatter[np.ix_(x, x)])
    precision = float(parts.spread[0]) / np.sqrt((parts.vectors[0] ** 2 / parts.values).sum())
    error = float(np.sqrt(fitted.variance / degrees) / precision)
    return float(fitted.coefficients[0]), error, degrees
