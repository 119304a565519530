"""The smallest non-empty cell of a statistic."""

from __future__ import annotations

import numpy as np

from isthmus.statistics import CodedRows, Counts, Kind, Moments


def smallest_cell(statistic: Moments | Counts) -> int | None:
    """Return the smallest number of rows in a non-empty cell; ``None`` where there are no cells.

    Moments of discrete variables contain the tables of single levels and of pairs of levels.
    """
    tables = _of_counts(statistic) if isinstance(statistic, Counts) else _of_moments(statistic)
    smallest = [int(t[t > 0].min()) for t in tables if (t > 0).any()]
    return min(smallest, default=None)


def _of_counts(counts: Counts) -> list[np.ndarray[tuple[int, ...], np.dtype[np.int64]]]:
    return [b.filled() if isinstance(b, CodedRows) else b for b in counts.tables.values()]


def _of_moments(moments: Moments) -> list[np.ndarray[tuple[int, ...], np.dtype[np.int64]]]:
    names = moments.schema.of_kind(Kind.DISCRETE)
    if not names:
        return []
    discrete = moments.select(names).shifted(np.zeros(sum(moments.schema[n].width for n in names)))
    p = len(discrete.columns)
    whole = np.empty((p + 1, p + 1))
    whole[0, 0] = discrete.n
    whole[0, 1:] = whole[1:, 0] = discrete.sums
    whole[1:, 1:] = discrete.gram
    # The first level of a variable has no column: its rows are those of no other level.
    levels = []
    for start, stop in discrete.blocks:
        first = np.zeros(p + 1)
        first[0], first[1 + start : 1 + stop] = 1.0, -1.0
        levels += [first, *np.eye(p + 1)[1 + start : 1 + stop]]
    maps = np.array(levels)
    return [np.rint(maps @ whole @ maps.T).astype(np.int64)]
