"""Accumulation of the sums and products of columns, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isthmus.arrays import Floats
from isthmus.errors import SchemaError
from isthmus.statistics.base import (
    UNDERFLOW,
    methods_for,
    overflow,
    refuse_empty,
    refuse_infinite,
    refuse_missing,
    refuse_underflow,
)
from isthmus.statistics.schema import Kind, Schema, Variable

# --- Symmetric matrices that are so large that work on them should be interruptible -------------

_NUMBERS = 2**22
"""Numbers per block of rows: some 10 ms of work, after which Python can handle Ctrl-C."""

_TILE = 128
"""Side of square tiles that are read along rows and along columns: two of them fit the cache."""


def row_blocks(rows: int, cost: int) -> Iterator[tuple[int, int]]:
    """Split rows into blocks, given what one of them costs in operations on numbers."""
    step = max(1, _NUMBERS // max(cost, 1))
    for start in range(0, rows, step):
        yield start, min(start + step, rows)


def symmetrise(matrix: Floats) -> None:
    """Replace a matrix by its symmetric part, ``(A + A.T) / 2``, in place."""
    tiles = [slice(at, at + _TILE) for at in range(0, len(matrix), _TILE)]
    for i, rows in enumerate(tiles):
        for columns in tiles[i:]:
            upper, lower = matrix[rows, columns], matrix[columns, rows]
            mean = (upper + lower.T) / 2
            upper[:] = mean
            lower[:] = mean.T


def mirror(matrix: Floats) -> None:
    """Copy what is above the diagonal to below it, in place."""
    for start, stop in row_blocks(len(matrix), len(matrix)):
        matrix[stop:, start:stop] = matrix[start:stop, stop:].T
        square = matrix[start:stop, start:stop]
        for i in range(1, stop - start):
            square[i, :i] = square[:i, i]


# --- Accumulation of the sums and products of columns, batch by batch ---------------------------

_SPEED = 64
"""Multiplications in a product of matrices that take as long as moving one number."""


class Sums(NamedTuple):
    """Number of rows, shift, sums and products of the columns of a schema."""

    n: int
    shift: Floats
    sums: Floats
    gram: Floats


@final
class Accumulator:
    """Adds up rows in blocks of a fixed size, so that the result does not depend on the batches.

    Missing and infinite cells cost nothing to find: they make the sums not finite, and only then
    are they counted. They are refused in `finish`, when all are known.

    Parameters
    ----------
    schema
        The variables. Basis functions are computed here, from the values of their variable.
    shift
        Values near the means of the columns; by default the means of the first block.
    """

    def __init__(self, schema: Schema, shift: ArrayLike | None = None) -> None:
        self._schema = schema
        width = schema.width
        self._shift: Floats | None = None if shift is None else np.array(shift, dtype=np.float64)
        self._rows = 0
        self._weight = 0
        self._sums = np.zeros(width)
        self._gram = np.zeros((width, width))
        self._missing = dict.fromkeys(schema.names, 0)
        self._infinite = dict.fromkeys(schema.names, 0)
        self._spoiled = False
        self._large: list[str] = []
        self._varies = np.zeros(width, dtype=np.bool_)
        self._block = int(np.clip(2**18 // max(width, 1), 1024, 16384))
        self._buffer = np.empty((width, self._block))
        self._filled = 0
        self._weights: Floats | None = None
        self._waiting: list[tuple[list[NDArray[Any]], NDArray[Any] | None]] = []

    def update(self, columns: Sequence[NDArray[Any]], weights: NDArray[Any] | None = None) -> None:
        """Add rows, given as one array per variable (codes for a discrete one)."""
        n = len(columns[0])
        if any(len(c) != n for c in columns):
            raise SchemaError("The columns have different lengths.")
        self._rows += n
        self._weight += n if weights is None else int(weights.sum())
        if self._shift is not None:
            self._take(columns, weights)
            return
        self._waiting.append((list(columns), weights))
        if self._rows >= self._block:
            self._begin()

    def miss(self, name: str, count: int) -> None:
        """Record missing cells that the caller found in the batches."""
        self._missing[name] += count

    def _begin(self) -> None:
        """Choose the shift from the first rows, and add the rows that were buffered for it."""
        waiting, self._waiting = self._waiting, []
        first = []
        for j in range(len(self._schema)):
            parts = [columns[j][: self._block] for columns, _ in waiting]
            whole = parts[0] if len(parts) == 1 else np.concatenate(parts)
            first.append(whole[: self._block])
        self._shift = self._guess(first)
        for columns, weights in waiting:
            self._take(columns, weights)

    def _guess(self, columns: list[NDArray[Any]]) -> Floats:
        """Return the means of finite cells; other cells raise an error later."""
        shift = np.zeros(self._schema.width)
        for v, (start, _), x in zip(
            self._schema.variables, self._schema.blocks, columns, strict=True
        ):
            # The middle of an indicator is any number between 0 and 1; zero is exact.
            if v.kind is Kind.CONTINUOUS:
                finite = np.asarray(x, dtype=np.float64)
                finite = finite[np.isfinite(finite)]
                if len(finite):
                    # The anchor keeps a constant exact.
                    anchor = finite[0]
                    with np.errstate(over="ignore"):  # what overflows is refused later
                        shift[start] = anchor + ((finite - anchor) / len(finite)).sum()
                    if v.features is not None:  # products have means near zero
                        functions = v.features.basis.evaluate(v.features.standardised(finite))
                        shift[start + 1 : start + 1 + len(functions)] = functions.mean(axis=1)
        return np.where(np.isfinite(shift), shift, 0.0)

    def _take(self, columns: Sequence[NDArray[Any]], weights: NDArray[Any] | None) -> None:
        """Copy rows into the block, and add it up whenever it is full."""
        n, at = len(columns[0]), 0
        while at < n:
            stop = min(n, at + self._block - self._filled)
            place = slice(self._filled, self._filled + stop - at)
            parts = {
                v.name: x[at:stop] for v, x in zip(self._schema.variables, columns, strict=True)
            }
            for v, (first, last) in zip(self._schema.variables, self._schema.blocks, strict=True):
                self._write(v, first, last, parts, place)
            if weights is not None and self._weights is None:
                self._weights = np.ones(self._block)
            if self._weights is not None:
                self._weights[place] = 1.0 if weights is None else weights[at:stop]
            self._filled = place.stop
            at = stop
            if self._filled == self._block:
                self._flush()

    def _write(
        self,
        variable: Variable,
        first: int,
        last: int,
        parts: Mapping[str, NDArray[Any]],
        place: slice,
    ) -> None:
        """Write the columns of one variable into the block, less the shift."""
        assert self._shift is not None
        buffer, shift, x = self._buffer, self._shift, parts[variable.name]
        if variable.kind is Kind.DISCRETE:
            codes = self._codes(variable.name, x, last - first + 1)
            for j in range(first, last):
                np.subtract(
                    codes == j - first + 1, shift[j], out=buffer[j, place], dtype=np.float64
                )
            return
        np.subtract(x, shift[first], out=buffer[first, place], dtype=np.float64)
        if variable.features is not None:
            functions = variable.features.evaluate(np.asarray(x, dtype=np.float64), parts)
            rows = slice(first + 1, last)
            np.subtract(functions, shift[rows, None], out=buffer[rows, place])

    def _codes(self, name: str, x: NDArray[Any], levels: int) -> NDArray[Any]:
        if x.dtype.kind == "f" and np.isnan(x).any():
            self._missing[name] += int(np.isnan(x).sum())
            self._spoiled = True
            return x
        if len(x) and (x.min() < 0 or x.max() >= levels):
            raise SchemaError(
                f"Variable {name!r} has codes from {x.min()} to {x.max()}; "
                f"with {levels} levels they go from 0 to {levels - 1}."
            )
        return x

    def _flush(self) -> None:
        """Add up the rows of the block."""
        buffer = self._buffer[:, : self._filled]
        weights = None if self._weights is None else self._weights[: self._filled]
        with np.errstate(all="ignore"):  # what is not finite is inspected below
            weighted = buffer if weights is None else buffer * weights
            sums = weighted.sum(axis=1)
            # Upper triangle only, and in blocks, so that Ctrl-C does not wait for large tables.
            for start, stop in row_blocks(len(buffer), self._filled * len(buffer) // _SPEED):
                products = weighted[start:stop] @ buffer[start:].T
                squares = products.diagonal()
                if self._spoiled or not np.isfinite(squares).all():
                    self._inspect(buffer)
                    break
                small = start + np.flatnonzero(squares < UNDERFLOW)  # constants, or tiny values
                self._varies[small] |= buffer[small].any(axis=1)
                self._gram[start:stop, start:] += products
            self._sums += sums
        self._filled = 0

    def _inspect(self, buffer: Floats) -> None:
        """Count the cells that made the sums infinite or NaN."""
        self._spoiled = True
        for v, (start, _) in zip(self._schema.variables, self._schema.blocks, strict=True):
            if v.kind is Kind.CONTINUOUS:
                self._missing[v.name] += int(np.isnan(buffer[start]).sum())
                self._infinite[v.name] += int(np.isinf(buffer[start]).sum())
                if not np.isfinite(buffer[start] @ buffer[start]):
                    self._large.append(v.name)

    def finish(self) -> Sums:
        """Return the sums over all rows; missing and infinite cells raise an error."""
        if self._shift is None and self._rows:
            self._begin()
        if self._filled:
            self._flush()
        methods = methods_for(
            continuous=bool(self._schema.of_kind(Kind.CONTINUOUS)),
            level=False,
        )
        refuse_missing(self._missing, self._rows, methods)
        refuse_infinite(self._infinite)
        refuse_empty(self._weight)
        if self._spoiled:
            raise overflow(self._large)
        assert self._shift is not None
        refuse_underflow(self._schema.column_names, self._varies, self._gram.diagonal())
        mirror(self._gram)
        self._gram.flags.writeable = False
        return Sums(self._weight, self._shift, self._sums, self._gram)
