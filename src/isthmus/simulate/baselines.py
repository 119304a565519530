"""Sort-and-regress baselines."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError
from isthmus.graphs import DAG
from isthmus.options import as_choice
from isthmus.simulate.result import Purpose, stream
from isthmus.simulate.sortability import column_names, r_squared, second_moments
from isthmus.types import Floats

COLLINEAR = 1e-10
"""A column enters a regression only if more than this fraction of its variance is unexplained."""


class SortBy(StrEnum):
    """Key by which nodes are sorted, smallest first."""

    VARIANCE = "variance"
    R_SQUARED = "r_squared"
    RANDOM = "random"


def sort_and_regress(data: Any, *, by: SortBy = SortBy.VARIANCE, seed: int = 0) -> DAG:
    """Sort the columns and regress each column on those before it, with selection by BIC.

    A method that is not better than this baseline has learned only the scale of the columns
    (`SortBy.VARIANCE`, arXiv 2102.13647) or their explained variance (`SortBy.R_SQUARED`, arXiv
    2303.18211). The papers select regressors by an adaptive lasso tuned by BIC. This function uses
    forward–backward stepwise selection by BIC, which needs moments only.

    Parameters
    ----------
    data
        A `Simulation`, `Moments`, or a mapping or table of named numeric columns.
    by
        Sort key. `SortBy.RANDOM` is a control: a sparse graph along a random order.
    seed
        Random seed, for `SortBy.RANDOM` only.
    """
    by = as_choice(by, SortBy, "by", "sort_and_regress")
    names = column_names(data)
    covariance, n = second_moments(data, names)
    order = _order(covariance, names, by, seed)
    parents: list[list[int]] = [[] for _ in names]
    for position in range(1, len(names)):
        target, candidates = int(order[position]), order[:position]
        selected = stepwise(
            covariance[np.ix_(candidates, candidates)],
            covariance[candidates, target],
            float(covariance[target, target]),
            n,
        )
        parents[target] = [int(candidates[k]) for k in selected]
    return DAG.from_parents(names, parents)


def _order(covariance: Floats, names: tuple[str, ...], by: SortBy, seed: int) -> NDArray[np.int64]:
    if by is SortBy.RANDOM:
        return stream(seed, Purpose.SORTING).permutation(len(names))
    values = np.diag(covariance) if by is SortBy.VARIANCE else r_squared(covariance, names)
    return np.argsort(values, kind="stable").astype(np.int64)


def stepwise(gram: Floats, cross: Floats, variance: float, n: int) -> list[int]:
    """Select regressors by forward–backward stepwise selection with BIC.

    Parameters
    ----------
    gram
        Covariance matrix of the candidates.
    cross
        Covariances of the candidates with the target.
    variance
        Variance of the target.
    n
        Number of rows. A regressor costs log n and gains n log(rss before / rss after).

    Returns
    -------
    list of int
        Indices of the regressors, ascending.
    """
    if n < 2:
        raise DataError(f"Regression needs at least 2 rows; there are {n}.")
    p = len(cross)
    scale = np.diag(gram).copy()
    # After sweeping, the other entries are residual covariances given the selected candidates.
    swept = np.empty((p + 1, p + 1))
    swept[:p, :p], swept[:p, p], swept[p, :p], swept[p, p] = gram, cross, cross, variance
    selected = np.zeros(p, dtype=np.bool_)
    penalty = np.log(n)
    while selected.sum() < min(p, n - 2) and swept[p, p] > COLLINEAR * variance:
        residual = np.diag(swept)[:p]
        available = ~selected & (residual > COLLINEAR * scale)
        explained = np.zeros(p)
        explained[available] = swept[:p, p][available] ** 2 / residual[available]
        best = int(np.argmax(explained))
        fraction = min(explained[best] / swept[p, p], 1.0 - 1e-15)
        if -n * np.log1p(-fraction) <= penalty:
            break
        _sweep(swept, best)
        selected[best] = True
        _backward(swept, selected, n, penalty, keep=best)
    return [int(k) for k in np.flatnonzero(selected)]


def _backward(
    swept: Floats, selected: NDArray[np.bool_], n: int, penalty: float, *, keep: int
) -> None:
    """Remove regressors whose gain is below the penalty, the least useful first."""
    p = len(selected)
    while True:
        removable = np.flatnonzero(selected)
        removable = removable[removable != keep]
        if not len(removable):
            return
        loss = swept[removable, p] ** 2 / -np.diag(swept)[removable]
        least = int(np.argmin(loss))
        if n * np.log1p(loss[least] / swept[p, p]) >= penalty:
            return
        _sweep(swept, int(removable[least]), back=True)
        selected[removable[least]] = False


def _sweep(matrix: Floats, k: int, *, back: bool = False) -> None:
    """Sweep pivot k in or, with ``back``, out, in place."""
    pivot = matrix[k, k]
    column = matrix[:, k].copy()
    matrix -= np.outer(column, column) / pivot
    matrix[:, k] = matrix[k, :] = -column / pivot if back else column / pivot
    matrix[k, k] = -1.0 / pivot
