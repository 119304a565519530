"""Detection of duplicate variables."""

from __future__ import annotations

from collections.abc import Collection
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isthmus.statistics.coded import CodedRows
from isthmus.statistics.schema import Schema

TOLERANCE = 1e-12
"""A squared correlation within this distance of 1 is a duplicate: rounding errors are smaller."""


def group_pairs(
    pairs: list[tuple[int, int]], names: tuple[str, ...]
) -> tuple[tuple[str, ...], ...]:
    """Merge pairs of positions into groups of names."""
    group_of: dict[int, set[int]] = {}
    for i, j in pairs:
        joined = group_of.get(i, {i}) | group_of.get(j, {j})
        group_of.update(dict.fromkeys(joined, joined))
    groups = sorted({min(group): sorted(group) for group in group_of.values()}.items())
    return tuple(tuple(names[i] for i in group) for _, group in groups)


def one_to_one(table: NDArray[Any]) -> bool:
    """Return whether a table maps each level of one variable to one level of the other."""
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


def same_blocks(
    schema: Schema,
    n: int,
    mean: NDArray[np.float64] | None,
    scatter: NDArray[np.float64],
    constants: Collection[str],
) -> tuple[tuple[str, ...], ...]:
    """Groups of variables whose columns span the same space.

    Parameters
    ----------
    schema
        The variables, without basis functions.
    n, mean, scatter
        Number of rows, means and centred products of the columns. The mean is None for products
        within groups, which tell no frequencies.
    constants
        Names of variables to leave out.
    """
    if n < 3:
        return ()
    varying = [i for i, name in enumerate(schema.names) if name not in constants]
    single = [i for i in varying if schema.variables[i].width == 1]
    several = [slice(*schema.blocks[i]) for i in varying if schema.variables[i].width > 1]
    positions = [i for i in varying if schema.variables[i].width > 1]
    pairs = _single_pairs(scatter, schema.blocks, single)
    if mean is None:
        found = _spanning_pairs(scatter, several)
    else:
        found = _several_pairs(n, mean, scatter, several)
    pairs += [(positions[i], positions[j]) for i, j in found]
    return group_pairs(pairs, schema.names)


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


def _several_pairs(
    n: int, mean: NDArray[np.float64], scatter: NDArray[np.float64], blocks: list[slice]
) -> list[tuple[int, int]]:
    """Pairs of discrete variables with several columns whose contingency table is one-to-one."""
    candidates: dict[tuple[int, ...], list[int]] = {}
    for i, block in enumerate(blocks):  # duplicates have the same frequencies: compare only those
        frequencies = _with_first_level(np.rint(mean[block] * n).astype(np.int64), n)
        key = tuple(sorted(frequencies[frequencies > 0].tolist()))
        candidates.setdefault(key, []).append(i)
    return [
        (i, j)
        for members in candidates.values()
        for k, i in enumerate(members)
        for j in members[k + 1 :]
        if _one_to_one_blocks(n, mean, scatter, blocks[i], blocks[j])
    ]


def _spanning_pairs(scatter: NDArray[np.float64], blocks: list[slice]) -> list[tuple[int, int]]:
    """Pairs of blocks of equal width of which each is a linear function of the other."""
    return [
        (i, j)
        for i, a in enumerate(blocks)
        for j, b in enumerate(blocks[i + 1 :], start=i + 1)
        if a.stop - a.start == b.stop - b.start
        and _determines(scatter, a, b)
        and _determines(scatter, b, a)
    ]


def _determines(scatter: NDArray[np.float64], a: slice, b: slice) -> bool:
    """Return whether the columns of one block are linear functions of those of another."""
    cross = scatter[a, b]
    explained = cross.T @ np.linalg.lstsq(scatter[a, a], cross, rcond=TOLERANCE)[0]
    left = scatter[b, b].diagonal() - explained.diagonal()
    return bool((left <= 1e3 * TOLERANCE * scatter[b, b].diagonal()).all())


def _one_to_one_blocks(
    n: int, mean: NDArray[np.float64], scatter: NDArray[np.float64], a: slice, b: slice
) -> bool:
    """Return whether each level of one variable occurs with only one level of the other."""
    shown = np.rint(scatter[a, b] + n * np.outer(mean[a], mean[b]))
    # The first level of each variable has no column: it has the rows that the others leave.
    rows = np.vstack([np.rint(n * mean[b]) - shown.sum(axis=0), shown])
    totals = _with_first_level(np.rint(n * mean[a]), n)
    table = np.column_stack([totals - rows.sum(axis=1), rows])
    return one_to_one(table)


def _with_first_level(frequencies: NDArray[Any], n: int) -> NDArray[Any]:
    return np.concatenate([[n - frequencies.sum()], frequencies])
