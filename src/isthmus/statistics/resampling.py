"""Which rows a replicate of the bootstrap draws."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats, Integers
from isthmus.errors import counted
from isthmus.statistics.schema import Schema

# --- Whether realisations of a process differ in level ------------------------------------------

_FALSE_ALARMS = 0.002
"""Nominal probability that series of one level are said to differ in some variable. It is below the
1 % that tests/verbs/test_bootstrap_of_series.py allows, because short series with strong
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


# --- Which rows a replicate of the bootstrap draws ----------------------------------------------

_MIN_REALISATIONS = 5
"""With fewer, there are too few ways to draw whole ones: ten with three, 126 with five."""


class RowSampler(Protocol):
    """Draws the rows of a replicate."""

    def draw(self, rng: np.random.Generator) -> Integers:
        """Return the indices of the drawn rows."""


@final
@dataclass(frozen=True)
class IndependentRows(RowSampler):
    """Draws each row on its own, with replacement."""

    rows: int

    def draw(self, rng: np.random.Generator) -> Integers:
        return rng.integers(self.rows, size=self.rows)


@final
@dataclass(frozen=True, eq=False)
class WholeRealisations(RowSampler):
    """Draws as many realisations as there are, with replacement and with all of their rows."""

    starts: Integers
    sizes: Integers

    @property
    def note(self) -> str:
        return (
            f"Rows of a realisation depend on each other: each replicate draws {len(self.sizes)} "
            "whole realisations with replacement."
        )

    def draw(self, rng: np.random.Generator) -> Integers:
        drawn = rng.integers(len(self.sizes), size=len(self.sizes))
        return np.concatenate([np.arange(self.sizes[i]) + self.starts[i] for i in drawn])


@final
@dataclass(frozen=True, eq=False)
class Blocks(RowSampler):
    """Draws blocks of consecutive rows within each realisation, which is closed to a circle.

    References
    ----------
    .. [1] D. N. Politis and J. P. Romano, "A circular block-resampling procedure for stationary
       data", in Exploring the Limits of Bootstrap, 1992.
    """

    starts: Integers
    sizes: Integers
    length: int

    @property
    def note(self) -> str:
        text = (
            "Consecutive rows depend on each other: each replicate draws blocks of "
            f"{counted(self.length, 'row')}."
        )
        if len(self.sizes) > 1:
            text += (
                f" With {len(self.sizes)} realisations, the shares do not show how much "
                "realisations differ."
            )
        return text

    def draw(self, rng: np.random.Generator) -> Integers:
        parts = []
        for start, size in zip(self.starts.tolist(), self.sizes.tolist(), strict=True):
            first = rng.integers(size, size=-(-size // self.length))
            rows = (first[:, None] + np.arange(self.length)).ravel() % size
            parts.append(start + rows[:size])
        return np.concatenate(parts)


def with_equal_levels(
    rows: Floats, realisations: Integers, schema: Schema
) -> tuple[Floats, tuple[str, ...]]:
    """Return the rows, centred within realisations if their levels differ, and a note if so.

    All rows of a realisation share its level, so a few levels that are related by chance would make
    an edge in nearly every replicate.
    """
    variables = sum(lag.steps == 0 for lag in schema.lag_of.values())
    if not different_levels(rows, variables, realisations):
        return rows, ()
    sizes = np.bincount(realisations)
    sums = np.stack([np.bincount(realisations, column) for column in rows.T], axis=1)
    centred: Floats = rows - (sums / np.maximum(sizes, 1)[:, None])[realisations]
    note = (
        "The replicates are learned from centred realisations, as by Series(..., centre=True): "
        "levels that are related by chance would otherwise look like stable edges."
    )
    return centred, (note,)


def sampler_of_rows(realisations: Integers, rows: Floats, lags: int) -> WholeRealisations | Blocks:
    """Return how to draw rows of time series.

    Parameters
    ----------
    realisations
        The realisation of each row. Rows of one realisation are adjacent and in order.
    rows
        The rows.
    lags
        Number of earlier steps in each row.
    """
    starts = np.flatnonzero(np.diff(realisations, prepend=-1))
    sizes = np.diff(starts, append=len(rows))
    if len(starts) >= _MIN_REALISATIONS:
        return WholeRealisations(starts, sizes)
    return Blocks(starts, sizes, _block_length(rows, starts, sizes, lags))


def _block_length(rows: Floats, starts: Integers, sizes: Integers, lags: int) -> int:
    """Length of blocks for the most persistent variable, by the rule of Carlstein (1986).

    For an autocorrelation ``r`` and ``n`` rows it is ``(sqrt(6) r / (1 - r**2)) ** (2 / 3) *
    n ** (1 / 3)``. Rows that share a step are in one block, and there are four blocks at least.
    """
    means = np.add.reduceat(rows, starts, axis=0) / sizes[:, None]
    centred = rows - np.repeat(means, sizes, axis=0)
    inside = np.ones(len(rows) - 1, dtype=np.bool_)
    inside[starts[1:] - 1] = False
    products = np.einsum("ij,ij->j", centred[1:][inside], centred[:-1][inside])
    squares = np.einsum("ij,ij->j", centred, centred)
    r = float(np.max(np.abs(products) / np.where(squares > 0.0, squares, np.inf), initial=0.0))
    r = min(r, 0.99)
    n = float(np.mean(sizes))
    wanted: float = (math.sqrt(6.0) * r / (1.0 - r * r)) ** (2.0 / 3.0) * n ** (1.0 / 3.0)
    return max(1, min(max(lags + 1, math.ceil(wanted)), int(n) // 4))
