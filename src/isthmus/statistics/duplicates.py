"""Finding variables that carry the same information twice."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isthmus.statistics.coded import CodedRows

if TYPE_CHECKING:
    from isthmus.statistics.moments import Moments

TOLERANCE = 1e-12
"""A squared correlation within this distance of 1 is a duplicate: rounding errors are smaller."""


def group_pairs(
    pairs: list[tuple[int, int]], names: tuple[str, ...]
) -> tuple[tuple[str, ...], ...]:
    """Join pairs of positions into groups of names."""
    group_of: dict[int, set[int]] = {}
    for i, j in pairs:
        joined = group_of.get(i, {i}) | group_of.get(j, {j})
        group_of.update(dict.fromkeys(joined, joined))
    groups = sorted({min(group): sorted(group) for group in group_of.values()}.items())
    return tuple(tuple(names[i] for i in group) for _, group in groups)


def one_to_one(table: NDArray[Any]) -> bool:
    """Whether each level of one variable of a table occurs with one level of the other only."""
    occurs = table > 0
    return bool((occurs.sum(axis=0) <= 1).all() and (occurs.sum(axis=1) <= 1).all())


def equal_columns(rows: CodedRows, cardinalities: NDArray[np.int64]) -> list[list[int]]:
    """Groups of variables that are the same up to the names of their levels, in linear time."""
    occurring = rows.nonzero()
    groups: dict[bytes, list[int]] = {}
    for i, (codes, levels) in enumerate(zip(occurring.codes, cardinalities.tolist(), strict=True)):
        digest = blake2b(_first_occurrences(codes, levels).tobytes()).digest()
        groups.setdefault(digest, []).append(i)
    return list(groups.values())


def _first_occurrences(codes: NDArray[Any], levels: int) -> NDArray[np.int64]:
    """For each row, the first row with the same code, whatever the codes are called."""
    rows = np.arange(len(codes), dtype=np.int64)
    first = np.zeros(levels, dtype=np.int64)
    first[codes[::-1]] = rows[::-1]  # of several rows the last one written stays
    occurrences: NDArray[np.int64] = first[codes]
    return occurrences


def same_blocks(moments: Moments) -> tuple[tuple[str, ...], ...]:
    """Groups of variables whose feature columns span the same space."""
    if moments.n < 3:
        return ()
    constant = set(moments.constants())
    schema, scatter = moments.schema, moments.scatter()
    varying = [i for i, name in enumerate(schema.names) if name not in constant]
    single = [i for i in varying if schema.blocks[i][1] - schema.blocks[i][0] == 1]
    several = [i for i in varying if schema.blocks[i][1] - schema.blocks[i][0] > 1]
    return group_pairs(
        _single_pairs(scatter, schema.blocks, single) + _several_pairs(moments, several),
        schema.names,
    )


def _single_pairs(
    scatter: NDArray[np.float64], blocks: tuple[tuple[int, int], ...], single: list[int]
) -> list[tuple[int, int]]:
    """Pairs of variables of one column each whose correlation is 1 or -1."""
    pairs: list[tuple[int, int]] = []
    at = np.array([blocks[i][0] for i in single], dtype=np.intp)
    spread = np.sqrt(scatter.diagonal()[at])
    for k, i in enumerate(single):  # row by row: d² numbers at once would double the memory
        # Divided one by one: products of very small or very large scales leave the range of floats.
        correlation = scatter[at[k], at[k + 1 :]] / spread[k] / spread[k + 1 :]
        same = correlation * correlation >= 1 - TOLERANCE
        pairs += [(i, single[k + 1 + int(j)]) for j in np.flatnonzero(same)]
    return pairs


def _several_pairs(moments: Moments, several: list[int]) -> list[tuple[int, int]]:
    """Pairs of discrete variables with several columns whose contingency table is one-to-one."""
    blocks, mean = moments.blocks, moments.mean()
    candidates: dict[tuple[int, ...], list[int]] = {}
    for i in several:  # duplicates have the same frequencies: most pairs are never compared
        shown = np.rint(mean[slice(*blocks[i])] * moments.n).astype(np.int64)
        frequencies = _with_first_level(shown, moments.n)
        key = tuple(sorted(frequencies[frequencies > 0].tolist()))
        candidates.setdefault(key, []).append(i)
    return [
        (i, j)
        for members in candidates.values()
        for k, i in enumerate(members)
        for j in members[k + 1 :]
        if _one_to_one_blocks(moments, slice(*blocks[i]), slice(*blocks[j]))
    ]


def _one_to_one_blocks(moments: Moments, a: slice, b: slice) -> bool:
    """Whether each level of one variable occurs with one level of the other only."""
    n, mean = moments.n, moments.mean()
    shown = np.rint(moments.scatter()[a, b] + n * np.outer(mean[a], mean[b]))
    # The first level of each variable has no column: it has the rows that the others leave.
    rows = np.vstack([np.rint(n * mean[b]) - shown.sum(axis=0), shown])
    totals = _with_first_level(np.rint(n * mean[a]), n)
    table = np.column_stack([totals - rows.sum(axis=1), rows])
    return one_to_one(table)


def _with_first_level(frequencies: NDArray[Any], n: int) -> NDArray[Any]:
    return np.concatenate([[n - frequencies.sum()], frequencies])
