"""Rows of codes with weights: a sparse joint table."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isthmus.arrays import Integers
from isthmus.errors import SchemaError
from isthmus.statistics.schema import Schema

Codes = NDArray[np.unsignedinteger[Any]]

DIRECT = 2**24
"""A histogram of at most this many cells is quicker than sorting."""
_AT_ONCE = 2**16
"""Rows whose cells are looked up at a time."""


def as_codes(values: NDArray[Any], cardinalities: Integers) -> Codes:
    """Convert codes to the smallest type that fits all of these variables."""
    if cardinalities.max(initial=1) <= 2**8:
        return values.astype(np.uint8, copy=False)
    return values.astype(np.uint16, copy=False)


def as_counts(values: ArrayLike, what: str) -> Integers:
    """Convert frequencies to int64; fractions and negative numbers raise an error."""
    given = np.asarray(values)
    if given.dtype.kind == "f":
        whole = bool((np.isfinite(given) & (given == np.floor(given)) & (given < 2.0**53)).all())
    else:
        whole = given.dtype.kind in "iub" and bool((given <= np.iinfo(np.int64).max).all())
    if not whole or (given.size and given.min() < 0):
        raise SchemaError(
            f"{what} holds values that are not whole numbers of at least zero "
            f"(its type is {given.dtype}). Counts say how often something occurred: "
            "give integers."
        )
    return np.ascontiguousarray(given, dtype=np.int64)


@final
@dataclass(frozen=True, eq=False)
class CodedRows:
    """Rows as codes of levels, each with its frequency; arrays are not copied.

    Attributes
    ----------
    codes
        Shape (d, m), one contiguous row per variable.
    weights
        Shape (m,), or ``None`` when every row counts once.
    """

    codes: Codes
    weights: Integers | None = None

    def __post_init__(self) -> None:
        codes = np.ascontiguousarray(self.codes)
        if codes.ndim != 2 or codes.dtype not in (np.dtype(np.uint8), np.dtype(np.uint16)):
            raise SchemaError(
                f"Codes have the shape {codes.shape} and the type {codes.dtype}; "
                "(variables, rows) of uint8 or uint16 is needed."
            )
        object.__setattr__(self, "codes", _read_only(codes, self.codes))
        if self.weights is not None:
            weights = as_counts(self.weights, "The array of weights")
            if weights.shape != codes.shape[1:]:
                raise SchemaError(
                    f"Weights have the shape {weights.shape}; {codes.shape[1:]} is needed: "
                    "one weight per row."
                )
            object.__setattr__(self, "weights", _read_only(weights, self.weights))

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor: pickled arrays forget that they are read-only.
        return CodedRows, (self.codes, self.weights)

    @property
    def n(self) -> int:
        """Number of rows, each counted with its weight."""
        return self.codes.shape[1] if self.weights is None else int(self.weights.sum())

    @property
    def size(self) -> int:
        """Number of values in the arrays."""
        return self.codes.size + (0 if self.weights is None else self.weights.size)

    def take(self, positions: tuple[int, ...]) -> CodedRows:
        """Return the rows of some of the variables."""
        return CodedRows(self.codes[list(positions)], self.weights)

    def joined(self, other: CodedRows) -> CodedRows:
        """Return the rows of both."""
        kind = np.promote_types(self.codes.dtype, other.codes.dtype)
        codes = np.concatenate([self.codes.astype(kind), other.codes.astype(kind)], axis=1)
        if self.weights is None and other.weights is None:
            return CodedRows(codes)
        return CodedRows(codes, np.concatenate([self.filled(), other.filled()]))

    def nonzero(self) -> CodedRows:
        """Return the rows with a weight above zero."""
        if self.weights is None or self.weights.all():
            return self
        occurs = self.weights > 0
        return CodedRows(self.codes[:, occurs], self.weights[occurs])

    def filled(self) -> Integers:
        """Return the weights, or ones if there are none."""
        if self.weights is not None:
            return self.weights
        return np.ones(self.codes.shape[1], dtype=np.int64)

    def distinct(self, cardinalities: Integers) -> CodedRows:
        """Return the distinct rows in ascending order, with their weights."""
        cells = math.prod(cardinalities.tolist())
        d, m = self.codes.shape
        if d == 0:
            return CodedRows(self.codes[:, : min(m, 1)], np.array([self.n] if m else [], np.int64))
        if cells <= min(DIRECT, max(2**16, 4 * m)):
            table = histogram(self, cardinalities)
            keys: NDArray[Any] = np.flatnonzero(table)
            return CodedRows(self._unravel(keys, cardinalities), table[keys])
        if cells < 2**63:
            keys, places = np.unique(_keys(self.codes, cardinalities), return_inverse=True)
            codes = self._unravel(keys, cardinalities)
        else:
            rows = np.ascontiguousarray(self.codes.T)
            different, places = np.unique(rows, axis=0, return_inverse=True)
            codes = np.ascontiguousarray(different.T)
        totals = _totals(places.ravel(), self.weights, codes.shape[1])
        occurs = totals > 0
        return CodedRows(codes[:, occurs], totals[occurs])

    def _unravel(self, keys: NDArray[Any], cardinalities: Integers) -> Codes:
        codes = np.empty((len(cardinalities), len(keys)), dtype=self.codes.dtype)
        left = keys.astype(np.int64)
        for i in range(len(cardinalities) - 1, -1, -1):
            left, codes[i] = np.divmod(left, cardinalities[i])
        return codes


def histogram(rows: CodedRows, cardinalities: Integers) -> Integers:
    """Return the number of rows in each cell, in C order over the variables of `rows`."""
    cells = math.prod(cardinalities.tolist())
    if len(cardinalities) == 0:
        return np.array([rows.n], dtype=np.int64)
    totals = np.zeros(cells, dtype=np.int64)
    step = max(_AT_ONCE, 4 * cells)  # positions take eight times the memory of codes
    for start in range(0, rows.codes.shape[1], step):
        here = slice(start, start + step)
        weights = None if rows.weights is None else rows.weights[here]
        totals += _totals(_keys(rows.codes[:, here], cardinalities), weights, cells)
    return totals


def _keys(codes: Codes, cardinalities: Integers) -> Integers:
    keys: Integers = codes[0].astype(np.int64)
    for row, k in zip(codes[1:], cardinalities[1:], strict=True):
        keys *= k
        keys += row
    return keys


def _totals(keys: Integers, weights: Integers | None, size: int) -> Integers:
    if weights is None:
        return np.asarray(np.bincount(keys, minlength=size), dtype=np.int64)
    # NumPy adds weights as floats, which is exact: every partial sum is an integer below 2^53.
    totals = np.bincount(keys, weights=weights, minlength=size)
    return np.asarray(totals, dtype=np.int64)


def _read_only(values: NDArray[Any], given: object) -> NDArray[Any]:
    """Return a read-only view; the flags of the given array do not change."""
    if values is given and values.flags.writeable:
        values = values.view()
    values.flags.writeable = False
    return values


# --- Detection of duplicate variables -----------------------------------------------------------

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
