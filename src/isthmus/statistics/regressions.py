"""What regressions with Gaussian processes take from statistics: standardised variables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import MismatchError
from isthmus.statistics.features import Chebyshev
from isthmus.statistics.moments import Moments
from isthmus.statistics.rows import Rows
from isthmus.statistics.schema import Kind
from isthmus.types import Bools, Floats

if TYPE_CHECKING:
    from isthmus.gaussian_processes.families import MomentRegressions, RowRegressions


def regressions_from_rows(rows: Rows, *, interactions: bool = False) -> RowRegressions:
    """Standardise the columns of rows; a constant column becomes zero."""
    from isthmus.gaussian_processes.families import RowRegressions

    constant = list(rows.schema.indices(rows.constants()))
    with np.errstate(over="ignore"):
        values = rows.values - rows.values.mean(axis=0)
    values[:, constant] = 0.0
    spread = values.std(axis=0)
    spread[spread == 0.0] = 1.0
    return RowRegressions(values / spread, interactions)


def regressions_from_moments(moments: Moments, asker: str) -> MomentRegressions:
    """Take the products of Chebyshev polynomials from moments.

    Parameters
    ----------
    moments
        Moments of variables with basis functions.
    asker
        Name of the caller, for the error message.
    """
    from isthmus.gaussian_processes.families import MomentRegressions

    basis = _basis_of(moments, asker)
    starts = np.array([start for start, _ in moments.blocks], dtype=np.intp)
    columns = (starts[:, None] + 1 + np.arange(basis.terms)).ravel()
    scatter, mean, n = moments.scatter(), moments.mean()[columns], moments.n
    gram = np.empty((1 + len(columns), 1 + len(columns)))
    gram[0, 0] = n
    gram[0, 1:] = gram[1:, 0] = n * mean
    gram[1:, 1:] = scatter[np.ix_(columns, columns)] + n * np.outer(mean, mean)
    spread, constant = _spread(moments, starts)
    products = np.zeros((1 + len(columns), len(starts)))
    products[1:] = scatter[np.ix_(columns, starts)] / spread
    products[:, constant] = 0.0
    squares = np.where(constant, 0.0, float(n))
    return MomentRegressions(gram, products, squares, n, basis.terms, basis.radius)


def variance_beyond(moments: Moments) -> dict[str, float]:
    """Return for each variable with values beyond the radius which share of its variance they add.

    Without such values the first polynomial is the variable itself, in other units. The share is
    one minus the variance of the clipped variable, in units of the variance.
    """
    shares = {}
    scatter = moments.scatter()
    for v, (start, _) in zip(moments.schema.variables, moments.blocks, strict=True):
        if v.features is None or not isinstance(v.features.basis, Chebyshev):
            continue
        unit = v.features.basis.radius * v.features.scale
        whole, clipped = scatter[start, start], scatter[start + 1, start + 1] * unit**2
        if whole > 0.0 and clipped < (1.0 - 1e-9) * whole:
            shares[v.name] = 1.0 - float(clipped / whole)
    return shares


def _basis_of(moments: Moments, asker: str) -> Chebyshev:
    moments.schema.require(Kind.CONTINUOUS, f"{asker} needs")
    kinds = {v.features.basis if v.features is not None else None for v in moments.schema.variables}
    basis = next(iter(kinds), None)
    if len(kinds) != 1 or not isinstance(basis, Chebyshev):
        raise MismatchError(
            f"{asker} needs Chebyshev polynomials of every variable, the same number of each. "
            "Give a table or a source, or the moments of WithFeatures(table, Chebyshev(48, 5.0))."
        )
    return basis


def _spread(moments: Moments, starts: NDArray[np.intp]) -> tuple[Floats, Bools]:
    names = set(moments.without_features().constants())
    constant = np.array([name in names for name in moments.schema.names], dtype=bool)
    spread = np.sqrt(moments.scatter().diagonal()[starts] / moments.n)
    return np.where(constant | (spread == 0.0), 1.0, spread), constant
