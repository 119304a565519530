"""Moments within groups: sums of products about the mean of each group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError
from isthmus.statistics.checks import OVERFLOW
from isthmus.statistics.moments import Moments
from isthmus.statistics.schema import Kind, Schema
from isthmus.types import Floats, Integers

_BLOCK = 2**20
"""Number of values of wide columns in memory at once."""


def wide_columns(schema: Schema, columns: Sequence[NDArray[Any]]) -> Floats:
    """Return the values, basis functions and indicators of variables, shape (width, rows)."""
    wide = np.empty((schema.width, len(columns[0])))
    parts = dict(zip(schema.names, columns, strict=True))
    for v, (start, stop) in zip(schema.variables, schema.blocks, strict=True):
        x = parts[v.name]
        if v.kind is Kind.DISCRETE:
            wide[start:stop] = x == np.arange(1, len(v.levels))[:, None]
            continue
        wide[start] = x
        if v.features is not None:
            wide[start + 1 : stop] = v.features.evaluate(np.asarray(x, dtype=np.float64), parts)
    return wide


def moments_within(schema: Schema, columns: Sequence[NDArray[Any]], groups: Integers) -> Moments:
    """Compute moments within groups of complete rows.

    Deviations are taken from the first row of each group and moved to its mean, so that a column
    that is constant within the groups has exact zeros, whatever its values are.

    Parameters
    ----------
    schema
        The variables.
    columns
        Numbers or codes of levels, one array per variable.
    groups
        The group of each row, numbered from zero without gaps.
    """
    order = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups)
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    refuse_single_rows(len(groups), len(sizes))
    anchors = wide_columns(schema, [x[order[first]] for x in columns])
    sums, gram = np.zeros_like(anchors), np.zeros((schema.width, schema.width))
    step = max(_BLOCK // max(schema.width, 1), 1)
    with np.errstate(all="ignore"):  # what is not finite is looked for below
        for start in range(0, len(order), step):
            rows = order[start : start + step]
            own = groups[rows]
            wide = wide_columns(schema, [x[rows] for x in columns])
            wide -= anchors[:, own]
            gram += wide @ wide.T
            begins = np.flatnonzero(np.diff(own, prepend=-1))
            sums[:, own[begins]] += np.add.reduceat(wide, begins, axis=1)
        scatter = gram - (sums / sizes) @ sums.T
        mean = (anchors @ sizes + sums.sum(axis=1)) / len(order)
    if not np.isfinite(scatter).all():
        Moments.from_columns(schema, columns)  # names infinite values and values that are too large
        raise DataError(OVERFLOW)
    return from_scatter(schema, len(order), len(sizes), mean, scatter)


def from_scatter(schema: Schema, rows: int, groups: int, mean: Floats, scatter: Floats) -> Moments:
    """Return the moments of rows whose products within groups are known.

    Parameters
    ----------
    schema
        The variables.
    rows, groups
        Number of rows and of groups.
    mean
        Mean of each column over all rows.
    scatter
        Products about the mean of each group.
    """
    refuse_single_rows(rows, groups)
    scatter = 0.5 * (scatter + scatter.T)
    # Rounding must leave neither a negative sum of squares nor products of a constant.
    still = scatter.diagonal() <= 0.0
    scatter[still, :] = scatter[:, still] = 0.0
    return Moments(schema, rows - groups + 1, mean, np.zeros(schema.width), scatter, groups=groups)


def refuse_single_rows(rows: int, groups: int) -> None:
    """Raise `DataError` if every group has one row."""
    if rows <= groups:
        raise DataError(
            f"There are {groups:,} groups of one row each, so nothing varies within groups. Name "
            "a column with several rows per group, or leave out groups."
        )


def sampled_rows(
    schema: Schema, columns: Sequence[NDArray[Any]], groups: Integers
) -> tuple[Floats, Floats]:
    """Return rows about the means of their groups, for a bootstrap, and their probabilities.

    A row of a group of m rows is scaled by ``sqrt(m / (m - 1))`` and drawn with a probability in
    proportion to ``(m - 1) / m``. The products of n - K rows that are drawn so from n rows in K
    groups then have the scatter within groups as their mean, whatever the sizes of the groups are.
    """
    sizes = np.bincount(groups)
    wide = wide_columns(schema, columns)
    order = np.argsort(groups, kind="stable")
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    wide -= wide[:, order[first]][:, groups]
    wide -= (np.add.reduceat(wide[:, order], first, axis=1) / sizes)[:, groups]
    share = 1.0 - 1.0 / sizes[groups]
    wide *= np.sqrt(np.divide(1.0, share, out=np.zeros_like(share), where=share > 0.0))
    return wide.T, share / share.sum()
