"""Estimates of how long one family takes to score, from sizes alone.

They choose the default search and sampler. The figures are seconds on one core of the machine that
``benchmarks/exact/costs.py`` was run on, and they are never measured while learning: the choice,
and with it the graph, must not depend on the machine or on what else it does. A factor of two does
not matter, a factor of ten would.
"""

from __future__ import annotations

import numpy as np

from isthmus.objectives import FamilyCost
from isthmus.statistics import Schema
from isthmus.types import Floats, Integers

_PER_ROW, _PER_ROW_SPARSE = 2e-9, 5e-8
"""Counting one row in a small table, and in a table that does not fit into the cache."""
_LARGE_TABLE = 4096.0
"""Number of cells of such a table."""


def gaussian_cost(parents: int) -> float:
    """Return the seconds to solve one regression from a covariance matrix."""
    return 2e-7 + 3e-8 * parents**2


def block_cost(sizes: Integers | Floats) -> FamilyCost:
    """Return the cost of a regression whose variables are blocks of so many columns each."""
    # The cubic mean: a few wide blocks take nearly all of the time.
    width = float(np.mean(np.asarray(sizes, np.float64) ** 3) ** (1.0 / 3.0))

    def seconds(parents: int) -> float:
        columns = width * (parents + 1)
        return gaussian_cost(parents) + 1.5e-10 * (columns - parents - 1) * columns**2

    return seconds


def counting_cost(schema: Schema, rows: float) -> FamilyCost:
    """Return the cost of counting a family of discrete variables in coded rows.

    Parameters
    ----------
    schema
        The variables.
    rows
        Number of rows. There are at most as many distinct ones as cells, and sources differ in
        whether they keep the others, so that no estimate may depend on it.
    """
    levels = np.log(np.maximum(schema.cardinalities, 1).astype(np.float64))
    distinct = min(float(rows), float(np.exp(min(levels.sum(), 700.0))))
    mean = float(levels.mean()) if len(levels) else 0.0

    def seconds(parents: int) -> float:
        cells = float(np.exp(min((parents + 1) * mean, 700.0)))
        sparse = min(1.0, cells / _LARGE_TABLE)
        return 1e-6 + distinct * (_PER_ROW + _PER_ROW_SPARSE * sparse)

    return seconds


def process_cost(*, fixed: float = 0.0, per_parent: float = 0.0, draws: int = 0) -> FamilyCost:
    """Return the cost of the modes of a Gaussian-process regression, and of draws around them.

    Parameters
    ----------
    fixed, per_parent
        Number of coordinates of the regression: rows, and basis functions per parent.
    draws
        Number of evaluations of the density after the modes are found.
    """

    def seconds(parents: int) -> float:
        cube = (fixed + per_parent * parents) ** 3 if parents else 1.0
        modes = 1e-3 + 5e-3 * parents + 2.5e-9 * (parents + 1) * cube
        return modes + draws * (3e-5 + 1e-10 * cube)

    return seconds
