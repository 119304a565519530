"""Covariances in which rare levels of discrete variables count for no more than they can tell."""

from __future__ import annotations

import numpy as np

from isthmus.statistics.moments import Moments
from isthmus.statistics.schema import Kind
from isthmus.types import Floats

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
    n, mean = moments.n, moments.mean()
    fewest = _COMMON * np.sqrt(n)
    for variable, (start, stop) in zip(moments.schema.variables, moments.blocks, strict=True):
        if variable.kind is not Kind.DISCRETE or start == stop:
            continue
        share = mean[start:stop]
        rows = n * np.concatenate([[1.0 - share.sum()], share])
        noise = np.maximum(fewest - rows, 0.0) / n
        common = np.where(rows > fewest * (1.0 - 1e-9), rows, 0.0)  # rows have rounding errors
        if not common.any():
            common = rows
        spread = np.eye(len(rows)) - (common / common.sum())[:, None]
        added = (spread * noise) @ spread.T
        covariance[start:stop, start:stop] += added[1:, 1:]
    return covariance
