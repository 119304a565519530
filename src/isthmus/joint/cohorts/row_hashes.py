"""Hashes of rows, chunk by chunk, so that rows in a file are never all in memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from isthmus.types import Floats, Integers

Words = NDArray[np.uint64]

CHUNK = 2**16
"""Number of rows that are in memory at once, where they are in a file."""


def chunks(rows: int) -> Iterator[slice]:
    """Yield slices that cover all rows."""
    for start in range(0, rows, CHUNK):
        yield slice(start, min(start + CHUNK, rows))


def canonical_order(values: Floats) -> Integers:
    """Return an order of rows that depends on their values only; that of equal rows is arbitrary.

    It is the order of a hash, so that the first rows are not the smallest ones.
    """
    words = np.zeros(len(values), dtype=np.uint64)
    for rows in chunks(len(values)):
        words[rows] = row_words(np.asarray(values[rows]))
    return np.argsort(words, kind="stable")


def row_words(values: Floats) -> Words:
    """Return a hash of each row."""
    found = np.zeros(len(values), dtype=np.uint64)
    for i, column in enumerate(values.T):
        found = mixed(found + bits_of(column) + np.uint64(i + 1))
    return found


def bits_of(column: Floats) -> Words:
    """Return the bits of numbers; -0.0 is 0.0."""
    return np.ascontiguousarray(column + 0.0).view(np.uint64)


def mixed(words: Words) -> Words:
    """Mix the bits of each word (the finaliser of SplitMix64)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
