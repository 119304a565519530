"""The smallest filled cell of what a site would send."""

from __future__ import annotations

import numpy as np

from isthmus.statistics import CodedRows, Counts, Kind, Moments


def smallest_cell(found: Moments | Counts) -> int | None:
    """The least number of rows in a filled cell; ``None`` where there are no cells.

    Moments of discrete variables are tables of single levels and of pairs of levels.
    """
    tables = _of_counts(found) if isinstance(found, Counts) else _of_moments(found)
    least = [int(t[t > 0].min()) for t in tables if (t > 0).any()]
    return min(least, default=None)


def _of_counts(counts: Counts) -> list[np.ndarray[tuple[int, ...], np.dtype[np.int64]]]:
    return [b.filled() if isinstance(b, CodedRows) else b for b in counts.tables.values()]


def _of_moments(moments: Moments) -> list[np.ndarray[tuple[int, ...], np.dtype[np.int64]]]:
    names = moments.schema.of_kind(Kind.DISCRETE)
    if not names:
        return []
    found = moments.select(names).shifted(np.zeros(sum(moments.schema[n].width for n in names)))
    p = len(found.columns)
    whole = np.empty((p + 1, p + 1))
    whole[0, 0] = found.n
    whole[0, 1:] = whole[1:, 0] = found.sums
    whole[1:, 1:] = found.gram
    # The first level of a variable has no column: it is the rest.
    levels = []
    for start, stop in found.blocks:
        first = np.zeros(p + 1)
        first[0], first[1 + start : 1 + stop] = 1.0, -1.0
        levels += [first, *np.eye(p + 1)[1 + start : 1 + stop]]
    maps = np.array(levels)
    return [np.rint(maps @ whole @ maps.T).astype(np.int64)]
