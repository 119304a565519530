"""The contingency tables that moments of discrete variables contain."""

from __future__ import annotations

import numpy as np

from isthmus.statistics.schema import Schema
from isthmus.types import Floats, Integers


def level_pairs(schema: Schema, n: int, sums: Floats, gram: Floats) -> Integers:
    """Count the rows of each level, and of each pair of levels, from indicator columns.

    Parameters
    ----------
    schema
        The variables, all discrete.
    n, sums, gram
        Number of rows, sums and products of the indicator columns, not shifted.
    """
    p = schema.width
    whole = np.empty((p + 1, p + 1))
    whole[0, 0] = n
    whole[0, 1:] = whole[1:, 0] = sums
    whole[1:, 1:] = gram
    # The first level of a variable has no column: its rows are those of no other level.
    levels = []
    for start, stop in schema.blocks:
        first = np.zeros(p + 1)
        first[0], first[1 + start : 1 + stop] = 1.0, -1.0
        levels += [first, *np.eye(p + 1)[1 + start : 1 + stop]]
    maps = np.array(levels)
    pairs: Integers = np.rint(maps @ whole @ maps.T).astype(np.int64)
    return pairs
