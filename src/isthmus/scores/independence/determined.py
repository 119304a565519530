"""Which variables others determine exactly, so that a test given those others tells nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np

from isthmus.types import Bools, Floats

_NOTHING = 1e-10
"""Share of the variance of a column up to which the rest counts as rounding."""


@final
class DeterminedColumns:
    """Finds variables all of whose columns are linear functions of the columns of others.

    Given a copy of it, a variable is independent of everything, and so is the copy. If such tests
    counted as others do, both would lose their edges.

    Parameters
    ----------
    correlation
        Correlations of all columns.
    blocks
        First and last column (exclusive) of each variable.
    """

    def __init__(self, correlation: Floats, blocks: Sequence[tuple[int, int]]) -> None:
        self._correlation = correlation
        self._columns = [np.arange(start, stop) for start, stop in blocks]
        try:
            np.linalg.cholesky(correlation - 2.0 * _NOTHING * np.eye(len(correlation)))
        except np.linalg.LinAlgError:
            self._exist = True
        else:  # every column has a rest that no others determine
            self._exist = False

    def either(self, x: int, conditions: Sequence[int], others: Sequence[int]) -> Bools:
        """Return for each of the others whether the conditions determine it, or x."""
        if not self._exist or not len(conditions):
            return np.zeros(len(others), dtype=bool)
        inside = np.concatenate([self._columns[v] for v in conditions])
        values, vectors = np.linalg.eigh(self._correlation[np.ix_(inside, inside)])
        kept = values > _NOTHING
        directions = vectors[:, kept] / np.sqrt(values[kept])
        rests = np.array([self._rest(inside, directions, v) for v in (x, *others)])
        return np.asarray((rests[1:] <= _NOTHING) | (rests[0] <= _NOTHING))

    def _rest(self, inside: np.ndarray, directions: Floats, variable: int) -> float:
        """Return the largest share of a column of a variable that directions do not explain."""
        explained = self._correlation[np.ix_(self._columns[variable], inside)] @ directions
        return float((1.0 - np.square(explained).sum(axis=1)).max(initial=0.0))
