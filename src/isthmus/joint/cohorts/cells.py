"""Small cells: values, pairs of values and cells of tables that few persons have."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from isthmus.joint.cohorts.candidates import ReleaseCandidates
from isthmus.joint.cohorts.row_hashes import chunks
from isthmus.types import Floats, Integers


def fewest_in_a_cell(candidates: ReleaseCandidates) -> int | None:
    """Return the smallest number of persons that something released singles out.

    Four kinds of groups are counted, whatever the declared kinds of the variables are:

    - the persons in a cell of a table;
    - the persons with a value, where the released sums determine how many have it: ``f`` functions
      of a variable and their products determine the numbers of up to ``2 f + 1`` different values;
    - the persons with a pair of such values of two variables, because products are released;
    - the persons who differ from the most common value of a variable, because the sums about that
      value are theirs alone.

    Values that were blurred count as one value if they can be the same.
    """
    fewest = [_smallest(*candidates.tables)]
    few: list[tuple[Integers, int]] = []
    for name, values in candidates.values.items():
        codes, levels, narrow = _distinct(values, candidates.resolutions.get(name, 0.0))
        if levels < 2:
            continue
        is_few = name in candidates.by_level or (
            levels <= 2 * candidates.functions + 1 and bool(narrow.all())
        )
        persons = candidates.tally(codes.astype(np.int64), levels)
        if is_few:
            fewest.append(_smallest(persons))
            few.append((codes, levels))
        common = int(persons.argmax())
        if name not in candidates.by_level and narrow[common]:
            fewest.append(candidates.count(codes != common))
    if candidates.columns.shape[1]:
        fewest.append(_smallest_pair(candidates, few))
    return min((n for n in fewest if n is not None), default=None)


def _distinct(values: Floats, resolution: float) -> tuple[Integers, int, NDArray[np.bool_]]:
    """Return the group of values to which each belongs, and how many groups there are.

    The values of a group follow one another in steps smaller than the resolution. The last array
    says which groups are so narrow that all their values can be one value that was blurred.
    """
    distinct, codes = np.unique(np.asarray(values, dtype=np.float64), return_inverse=True)
    groups = np.arange(len(distinct))
    if resolution:
        groups = np.cumsum(np.diff(distinct, prepend=distinct[:1]) >= resolution)
    levels = int(groups.max(initial=-1)) + 1
    starts = np.searchsorted(groups, np.arange(levels))
    ends = np.append(starts, len(distinct))[1:] - 1
    narrow = distinct[ends] - distinct[starts] <= resolution
    # In as few bytes as possible: there may be many rows.
    return groups[codes.reshape(-1)].astype(np.min_scalar_type(levels)), levels, narrow


def _smallest(*tables: Integers) -> int | None:
    return min((int(t[t > 0].min()) for t in tables if (t > 0).any()), default=None)


def _smallest_pair(candidates: ReleaseCandidates, few: list[tuple[Integers, int]]) -> int | None:
    """Return the smallest number of persons with a pair of values of two variables."""
    if len(few) < 2:
        return None
    if candidates.persons is None:
        return _smallest(_pairs_of_rows(few))
    wide = [(codes.astype(np.int64), levels) for codes, levels in few]
    tables = (candidates.tally(a * k + b, j * k) for (a, j), (b, k) in combinations(wide, 2))
    return _smallest(*tables)


def _pairs_of_rows(few: list[tuple[Integers, int]]) -> Integers:
    """Return how many rows have each pair of values, over all variables at once."""
    starts = np.cumsum([0, *(levels for _, levels in few)])
    cells = np.zeros((starts[-1], starts[-1]))
    for rows in chunks(len(few[0][0])):
        part = np.zeros((rows.stop - rows.start, starts[-1]), dtype=np.float32)
        for (codes, _), start in zip(few, starts, strict=False):
            part[np.arange(len(part)), start + codes[rows]] = 1.0
        cells += part.T @ part
    return np.rint(cells).astype(np.int64)
