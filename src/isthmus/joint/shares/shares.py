"""Additive shares as arrays: linear computations need no message.

A secret is the sum of two ring elements, one at each party. Each party can add, select and sum its
own, which is the same on the secret. Only products and comparisons need messages. Counts and scores
have one word of 64 bits. Polynomials are evaluated with two words, low and high, in a last axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Words: TypeAlias = NDArray[np.uint64]
"""Ring elements of 64 bits, or of 128 with a last axis of two."""

FRACTION = 30
"""Bits of the fraction of a score."""

HALF = np.uint64(32)
LOW = np.uint64(2**32 - 1)


def encoded(value: Any) -> Words:
    """Return numbers as scores of 64 bits, for the party that knows them."""
    numbers: NDArray[np.int64] = np.rint(np.asarray(value) * 2.0**FRACTION).astype(np.int64)
    return numbers.view(np.uint64)


def decoded(words: NDArray[Any]) -> NDArray[np.float64]:
    """Return scores as numbers, from the sum of both shares."""
    numbers: NDArray[np.float64] = words.view(np.int64) / 2.0**FRACTION
    return numbers


# --- two words -----------------------------------------------------------------------------------


def wide(numbers: Sequence[int]) -> Words:
    """Return whole numbers as ring elements of 128 bits."""
    pairs = [(x & 2**64 - 1, x >> 64 & 2**64 - 1) for x in numbers]
    return np.array(pairs, dtype=np.uint64).reshape(-1, 2)


def added(first: Words, second: Words) -> Words:
    """Return sums of elements of 128 bits."""
    total = first + second
    total[..., 1] += total[..., 0] < second[..., 0]
    return total


def negative(words: Words) -> Words:
    """Return the elements of 128 bits that add up to zero with these."""
    opposite = ~words
    opposite[..., 0] += np.uint64(1)
    opposite[..., 1] += opposite[..., 0] == 0
    return opposite


def total(words: Words, axis: int) -> Words:
    """Return sums of elements of 128 bits along an axis, counted from the first."""
    # Halves of words: their sums do not exceed a word with fewer than 2^32 elements.
    lower, upper = (half.sum(axis=axis, dtype=np.uint64) for half in (words & LOW, words >> HALF))
    middle = upper[..., 0] + (lower[..., 0] >> HALF)
    result: Words = np.empty_like(lower)
    result[..., 0] = lower[..., 0] & LOW | middle << HALF
    result[..., 1] = lower[..., 1] + (upper[..., 1] << HALF) + (middle >> HALF)
    return result


def shifted(words: Words, places: NDArray[Any]) -> Words:
    """Return elements of 128 bits times a power of two, each below 2^64."""
    left = places.astype(np.uint64)
    result = np.empty(np.broadcast_shapes(words.shape[:-1], left.shape) + (2,), dtype=np.uint64)
    result[..., 0] = words[..., 0] << left
    # A word moved by 64 places is not zero, so it is moved twice.
    above = words[..., 0] >> np.uint64(1) >> (np.uint64(63) - left)
    result[..., 1] = words[..., 1] << left | above
    return result


def divided(words: Words, places: int) -> Words:
    """Return elements of 128 bits divided by a power of two below 2^64 and rounded down."""
    right, left = np.uint64(places), np.uint64(63 - places)
    result = words >> right
    result[..., 0] |= words[..., 1] << left << np.uint64(1)
    return result


def truncated(words: Words, places: int, rank: int) -> Words:
    """Return shares of secrets that are divided by a power of two, wrong by at most one.

    A secret below 2^k in size becomes a random number with probability 2^(k - 127): if shares of
    one that is not negative do not exceed the ring, or those of one that is negative do.
    """
    return divided(words, places) if rank == 0 else negative(divided(negative(words), places))
