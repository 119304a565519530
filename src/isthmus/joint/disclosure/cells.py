"""Small cells: values, pairs of values and cells of tables that few persons have."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from isthmus.joint.disclosure.material import ReleaseCandidates
from isthmus.statistics import Statistic
from isthmus.types import Integers

CHUNK = 2**16


def smallest_cell(statistic: Statistic) -> int | None:
    """Return the smallest number of rows in a non-empty cell; ``None`` where there are no cells."""
    return _smallest(*statistic.cells())


def fewest_in_a_cell(material: ReleaseCandidates) -> int | None:
    """Return the smallest number of persons that something released singles out.

    Four kinds of groups are counted, whatever the declared kinds of the variables are:

    - the persons in a cell of a table;
    - the persons with a value, where the released sums determine how many have it: ``f`` functions
      of a variable and their products determine the numbers of up to ``2 f + 1`` different values;
    - the persons with a pair of such values of two variables, because products are released;
    - the persons who differ from the most common value of a variable, because the sums about that
      value are theirs alone.
    """
    found = [_smallest(*material.tables)]
    few: list[tuple[Integers, int]] = []
    for name, values in material.values.items():
        distinct, persons = np.unique(values, return_counts=True)
        levels = len(distinct)
        if levels == 1:
            continue
        is_few = name in material.by_level or levels <= 2 * material.functions + 1
        if is_few or material.persons is not None:
            # In as few bytes as possible: there may be many rows.
            codes = np.searchsorted(distinct, values).astype(np.min_scalar_type(levels))
            persons = material.tally(codes.astype(np.int64), levels)
        if is_few:
            found.append(_smallest(persons))
            few.append((codes, levels))
        if name not in material.by_level:
            common = int(persons.argmax())
            rest = int(persons.sum()) - int(persons[common])
            found.append(rest if material.persons is None else material.count(codes != common))
    if material.columns.shape[1]:
        found.append(_smallest_pair(material, few))
    return min((n for n in found if n is not None), default=None)


def _smallest(*tables: Integers) -> int | None:
    return min((int(t[t > 0].min()) for t in tables if (t > 0).any()), default=None)


def _smallest_pair(material: ReleaseCandidates, few: list[tuple[Integers, int]]) -> int | None:
    """Return the smallest number of persons with a pair of values of two variables."""
    if len(few) < 2:
        return None
    if material.persons is None:
        return _smallest(_pairs_of_rows(few))
    wide = [(codes.astype(np.int64), levels) for codes, levels in few]
    tables = (material.tally(a * k + b, j * k) for (a, j), (b, k) in combinations(wide, 2))
    return _smallest(*tables)


def _pairs_of_rows(few: list[tuple[Integers, int]]) -> Integers:
    """Return how many rows have each pair of values, over all variables at once."""
    starts = np.cumsum([0, *(levels for _, levels in few)])
    cells = np.zeros((starts[-1], starts[-1]))
    rows = len(few[0][0])
    for at in range(0, rows, CHUNK):
        part = np.zeros((min(CHUNK, rows - at), starts[-1]), dtype=np.float32)
        for (codes, _), start in zip(few, starts, strict=False):
            part[np.arange(len(part)), start + codes[at : at + CHUNK]] = 1.0
        cells += part.T @ part
    return np.rint(cells).astype(np.int64)
