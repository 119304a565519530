"""Symmetric matrices that are so large that work on them should be interruptible."""

from __future__ import annotations

from collections.abc import Iterator

from isthmus.types import Floats

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
