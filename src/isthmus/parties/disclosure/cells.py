"""The smallest non-empty cell of a statistic."""

from __future__ import annotations

from isthmus.statistics import Statistic


def smallest_cell(statistic: Statistic) -> int | None:
    """Return the smallest number of rows in a non-empty cell; ``None`` where there are no cells."""
    smallest = [int(t[t > 0].min()) for t in statistic.cells() if (t > 0).any()]
    return min(smallest, default=None)
