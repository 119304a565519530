"""Total effects of linear models by adjusted regression, from moments."""

from __future__ import annotations

import numpy as np

from isthmus.errors import DataError
from isthmus.graphs import DAG
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
            f"A regression on {len(x)} variables needs at least {len(x) + 2} rows for a standard "
            f"error; there are {moments.n}."
        )
    spread = np.sqrt(scatter[x, x])
    if not (spread > 0).all():
        raise DataError(f"{cause!r} or a variable to adjust for is constant: no effect to see.")
    within = scatter[np.ix_(x, x)] / np.outer(spread, spread)
    if np.linalg.cond(within) > 1e12:
        raise DataError(
            f"{cause!r} and {list(given)} are linearly dependent, so their effects cannot be told "
            "apart."
        )
    inverse = np.linalg.inv(within)
    cross = scatter[x, y] / spread
    weights = inverse @ cross
    residual = max(float(scatter[y, y] - cross @ weights), 0.0)
    error = float(np.sqrt(residual / degrees * inverse[0, 0])) / float(spread[0])
    return float(weights[0]) / float(spread[0]), error, degrees


def effect_in(moments: Moments, dag: DAG, cause: str, effect: str) -> tuple[float, float, int]:
    """Return the total effect in a graph with its standard error; zero without a path."""
    if effect not in dag.descendants(cause):
        return 0.0, 0.0, moments.n
    return adjusted_effect(moments, cause, effect, dag.adjustment_set(cause, effect))
