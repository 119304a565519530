"""Sort and regress: the trivial learner every benchmark should carry."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError
from isthmus.graphs import DAG
from isthmus.simulate.sortability import column_names, r_squared, second_moments
from isthmus.simulate.streams import Purpose, stream
from isthmus.types import Floats

COLLINEAR = 1e-10
"""Share of a column's variance that must be left for it to enter a regression."""


class SortBy(StrEnum):
    """What the nodes are sorted by, smallest first."""

    VARIANCE = "variance"
    R_SQUARED = "r_squared"
    RANDOM = "random"


def sort_and_regress(data: Any, *, by: SortBy = SortBy.VARIANCE, seed: int = 0) -> DAG:
    """Sort the columns, regress each on those before it, and keep what BIC keeps.

    A method that does no better than this has learned nothing but scale (`SortBy.VARIANCE`, arXiv
    2102.13647) or explained share (`SortBy.R_SQUARED`, arXiv 2303.18211). The papers select
    regressors by a BIC-tuned adaptive lasso; here it is forward–backward stepwise selection by
    BIC, which needs moments only.

    Parameters
    ----------
    data
        A `Simulation`, `Moments`, or a mapping or table of numeric columns by name.
    by
        What to sort by. `SortBy.RANDOM` is the control: any sparse graph along a random order.
    seed
        For `SortBy.RANDOM` only.
    """
    names = column_names(data)
    covariance, n = second_moments(data, names)
    order = _order(covariance, names, by, seed)
    parents: list[list[int]] = [[] for _ in names]
    for position in range(1, len(names)):
        target, before = int(order[position]), order[:position]
        chosen = stepwise(
            covariance[np.ix_(before, before)],
            covariance[before, target],
            float(covariance[target, target]),
            n,
        )
        parents[target] = [int(before[k]) for k in chosen]
    return DAG.from_parents(names, parents)


def _order(covariance: Floats, names: tuple[str, ...], by: SortBy, seed: int) -> NDArray[np.int64]:
    if by is SortBy.RANDOM:
        return stream(seed, Purpose.SORTING).permutation(len(names))
    values = np.diag(covariance) if by is SortBy.VARIANCE else r_squared(covariance, names)
    return np.argsort(values, kind="stable").astype(np.int64)


def stepwise(gram: Floats, cross: Floats, variance: float, n: int) -> list[int]:
    """Choose regressors by forward–backward selection with BIC.

    Parameters
    ----------
    gram
        Covariance of the candidates.
    cross
        Their covariance with the target.
    variance
        Variance of the target.
    n
        Number of rows; the price of a regressor is log n, its gain n log(rss before / after).

    Returns
    -------
    list of int
        Indices of the regressors, ascending.
    """
    if n < 2:
        raise DataError(f"Regression needs at least 2 rows; there are {n}.")
    p = len(cross)
    scale = np.diag(gram).copy()
    # The swept matrix holds, for candidates outside, what is left of them after those inside.
    swept = np.empty((p + 1, p + 1))
    swept[:p, :p], swept[:p, p], swept[p, :p], swept[p, p] = gram, cross, cross, variance
    inside = np.zeros(p, dtype=np.bool_)
    price = np.log(n)
    while inside.sum() < min(p, n - 2) and swept[p, p] > COLLINEAR * variance:
        left = np.diag(swept)[:p]
        open_to = ~inside & (left > COLLINEAR * scale)
        explained = np.zeros(p)
        explained[open_to] = swept[:p, p][open_to] ** 2 / left[open_to]
        best = int(np.argmax(explained))
        share = min(explained[best] / swept[p, p], 1.0 - 1e-15)
        if -n * np.log1p(-share) <= price:
            break
        _sweep(swept, best)
        inside[best] = True
        _drop_needless(swept, inside, n, price, keep=best)
    return [int(k) for k in np.flatnonzero(inside)]


def _drop_needless(
    swept: Floats, inside: NDArray[np.bool_], n: int, price: float, *, keep: int
) -> None:
    """Take out regressors that no longer pay, the least useful first."""
    p = len(inside)
    while True:
        rivals = np.flatnonzero(inside)
        rivals = rivals[rivals != keep]
        if not len(rivals):
            return
        loss = swept[rivals, p] ** 2 / -np.diag(swept)[rivals]
        least = int(np.argmin(loss))
        if n * np.log1p(loss[least] / swept[p, p]) >= price:
            return
        _sweep(swept, int(rivals[least]), back=True)
        inside[rivals[least]] = False


def _sweep(matrix: Floats, k: int, *, back: bool = False) -> None:
    """Sweep pivot k in or out in place: a swept pivot is the negative of its inverse entry."""
    pivot = matrix[k, k]
    column = matrix[:, k].copy()
    matrix -= np.outer(column, column) / pivot
    matrix[:, k] = matrix[k, :] = -column / pivot if back else column / pivot
    matrix[k, k] = -1.0 / pivot
