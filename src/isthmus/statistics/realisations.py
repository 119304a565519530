"""Whether realisations of a process differ in level."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isthmus.types import Floats

_FALSE_ALARMS = 0.002
"""Nominal probability that series of one level are said to differ in some variable. It is below the
1 % that tests/repro/test_w14_bootstrap_series.py allows, because short series with strong
autocorrelation exceed it."""
_MIN_ROWS = 12
"""Realisations with fewer rows are not compared: a third of them would be too few steps."""


def different_levels(rows: Floats, variables: int, owners: NDArray[np.int64]) -> list[int]:
    """Return the variables whose level differs between realisations.

    A variable is predicted from its own past, and the mean errors in the first and in the last
    third of each realisation are compared. The middle third keeps them apart, so that they are
    nearly independent if the levels are equal, also if more steps of the past matter than are
    given. They are similar within a realisation if levels differ, which an F test detects.

    Parameters
    ----------
    rows
        Rows of all realisations, in the order of time within each: the variables now, then one
        step earlier, and so on.
    variables
        Number of variables.
    owners
        The realisation of each row; rows of one realisation are adjacent.
    """
    from scipy.stats import f as f_distribution

    kept = np.bincount(owners)[owners] >= _MIN_ROWS
    rows, owners = rows[kept], owners[kept]
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    groups = len(starts)
    if groups < 2:
        return []
    sizes = np.diff(starts, append=len(owners))
    thirds = sizes // 3
    first, last = starts, starts + sizes - thirds
    found = []
    for v in range(variables):
        errors = _errors(rows[:, v::variables], starts, sizes)
        sums = np.concatenate([[0.0], np.cumsum(errors)])
        a, c = ((sums[begin + thirds] - sums[begin]) / thirds for begin in (first, last))
        middle = (a + c) / 2.0 - np.average((a + c) / 2.0, weights=thirds)
        between = 2.0 * float(thirds @ middle**2) / (groups - 1)
        within = float(thirds @ (a - c) ** 2) / 2.0 / groups
        if between > 0.0 and (
            within <= 0.0
            or f_distribution.sf(between / within, groups - 1, groups) < _FALSE_ALARMS / variables
        ):
            found.append(v)
    return found


def _errors(columns: Floats, starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> Floats:
    """Errors of a prediction from the past, which is fitted within realisations.

    Fitted across realisations, the past would stand for the level, and hide that levels differ.
    Fitted within short ones, it explains too little. Half of that bias is seen when they are cut in
    halves, and is subtracted (Dhaene and Jochmans 2015).
    """
    columns = columns - columns.mean(axis=0)
    halves = np.sort(np.concatenate([starts, starts + (sizes + 1) // 2]))
    slopes = 2.0 * _slopes_within(columns, starts) - _slopes_within(columns, halves)
    errors: Floats = columns[:, 0] - columns[:, 1:] @ slopes
    return errors


def _slopes_within(columns: Floats, starts: NDArray[np.int64]) -> Floats:
    """Coefficients of the first column on the others, with an intercept for each part."""
    sizes = np.diff(starts, append=len(columns))
    means = np.add.reduceat(columns, starts, axis=0) / np.maximum(sizes, 1)[:, None]
    own = columns - np.repeat(means, sizes, axis=0)
    return np.asarray(np.linalg.lstsq(own[:, 1:], own[:, 0], rcond=None)[0], dtype=np.float64)
