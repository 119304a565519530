"""Rows of codes with weights: a sparse joint table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isthmus.errors import SchemaError
from isthmus.types import Integers

Codes = NDArray[np.unsignedinteger[Any]]

DIRECT = 2**24
"""A histogram of at most this many cells is quicker than sorting."""


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
    return _totals(_keys(rows.codes, cardinalities), rows.weights, cells)


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
