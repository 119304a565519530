"""Exact linear relations between columns, such as those of totals and their parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Bools, Floats
from isthmus.errors import MismatchError
from isthmus.statistics.features import Chebyshev
from isthmus.statistics.moments import Moments, correlate
from isthmus.statistics.rows import Rows
from isthmus.statistics.schema import Kind

if TYPE_CHECKING:
    from isthmus.gp.families import MomentRegressions, RowRegressions

_DETERMINED = 1e-10
"""Share of its variance below which the rest of a column counts as determined by others."""
_SHARE = 1e-4
"""Smallest coefficient, between columns of variance one, that makes a column part of a relation."""
_MOST_COLUMNS = 2000
"""Up to this many columns the search takes well under a second."""


def linear_relations(moments: Moments) -> tuple[tuple[str, ...], ...]:
    """Return groups of variables of which one is an exact linear combination of the others.

    There is one group per relation. Constants take part in none. With no more rows than columns,
    every column is a combination of others, and nothing is returned; nor for very many columns.
    Rare levels that occur in the same rows are no relation of their variables.
    """
    moments = moments.without_features()
    p = moments.schema.width
    if p < 2 or moments.n <= p + 1 or p > _MOST_COLUMNS:
        return ()
    owner = np.repeat(
        np.arange(len(moments.blocks)), [stop - start for start, stop in moments.blocks]
    )
    constant = np.isin(owner, moments.schema.indices(moments.constants()))
    columns = np.flatnonzero(~constant & (np.diagonal(moments.scatter()) > 0.0))
    if not len(columns):
        return ()
    correlation = correlate(covariance_without_rare(moments))[0][np.ix_(columns, columns)]
    if _has_full_rank(correlation):
        return ()
    from scipy.linalg import cho_solve, lapack  # half a second, so only where it is needed

    factor, pivots, rank, _ = lapack.dpstrf(correlation, tol=_DETERMINED, lower=1)
    order = pivots - 1
    kept, dependent = order[:rank], order[rank:]
    names = moments.schema.names
    groups = []
    for column in sorted(dependent.tolist()):
        weights = cho_solve((factor[:rank, :rank], True), correlation[kept, column])
        members = {int(owner[columns[column]])}
        members.update(owner[columns[kept[np.abs(weights) > _SHARE]]].tolist())
        if len(members) > 1:
            groups.append(tuple(names[v] for v in sorted(members)))
    return tuple(dict.fromkeys(groups))


def _has_full_rank(correlation: Floats) -> bool:
    try:
        pivots = np.diagonal(np.linalg.cholesky(correlation)) ** 2
    except np.linalg.LinAlgError:
        return False
    return bool(pivots.min() > 100.0 * _DETERMINED)


_COMMON = 1.0
"""A level is rare if it has fewer than this times the square root of n rows. Two such levels are
expected to share less than one row. See the rows with rare levels in ``benchmarks/false_edges.py``:
0.4 lets false edges through, and 2 misses strong effects of rare levels."""


def covariance_without_rare(moments: Moments) -> Floats:
    """Return the covariance of all columns, with independent noise added to rare levels.

    A Gaussian likelihood takes two levels that occur once, in the same row, for an exact linear
    relation. Here the variance of the indicator of a rare level is raised to that of a level with
    about ``sqrt(n)`` rows, so that one shared row counts half a nat. The matrix stays positive
    semidefinite, and the levels of a variable still sum to one: the levels that are not rare make
    up for the noise of the others, each by its share of rows. So neither the names of the levels
    nor the choice of the one without a column matters.
    """
    covariance = moments.covariance()
    mean = moments.mean() if moments.groups is None else shares_within(moments)
    for variable, (start, stop) in zip(moments.schema.variables, moments.blocks, strict=True):
        if variable.kind is not Kind.DISCRETE or start == stop:
            continue
        share, n = mean[start:stop], moments.rows_about([variable.name])
        fewest = _COMMON * np.sqrt(n)
        rows = n * np.concatenate([[1.0 - share.sum()], share])
        noise = np.maximum(fewest - rows, 0.0) / n
        common = np.where(rows > fewest * (1.0 - 1e-9), rows, 0.0)  # rows have rounding errors
        if not common.any():
            common = rows
        spread = np.eye(len(rows)) - (common / common.sum())[:, None]
        added = (spread * noise) @ spread.T
        covariance[start:stop, start:stop] += added[1:, 1:]
    return covariance


def shares_within(moments: Moments) -> Floats:
    """Return for each level the share of rows whose indicator varies as much within groups.

    A level of a few groups only, or of all rows of some groups, is rare in what is left of the
    rows: a share p has the variance p (1 - p). The level that varies most is the most common one.
    """
    shares = np.zeros(moments.schema.width)
    for variable, (start, stop) in zip(moments.schema.variables, moments.blocks, strict=True):
        if variable.kind is not Kind.DISCRETE or start == stop:
            continue
        block = moments.scatter()[start:stop, start:stop] / moments.n
        variances = np.concatenate([[block.sum()], block.diagonal()])
        own = 0.5 - np.sqrt(np.maximum(0.25 - variances, 0.0))
        most = int(own.argmax())
        own[most] = 1.0 - (own.sum() - own[most])
        shares[start:stop] = own[1:]
    return shares


# --- What regressions with Gaussian processes take from statistics: standardised variables ------


def regressions_from_rows(rows: Rows, *, interactions: bool = False) -> RowRegressions:
    """Standardise the columns of rows; a constant column becomes zero."""
    from isthmus.gp.families import RowRegressions

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
    from isthmus.gp.families import MomentRegressions

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
