"""Integers modulo a power of two, many at once, as 32-bit limbs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isthmus.errors import DataError

Words = NDArray[np.uint32]
"""Shape (numbers, limbs), lowest limb first."""

LIMB = np.dtype("<u4")
LOW = np.int64(0xFFFFFFFF)


def from_ints(values: Iterable[int], limbs: int) -> Words:
    """Signed integers as words; refuses what does not fit."""
    size, bits = 4 * limbs, 32 * limbs
    half, modulus = 1 << (bits - 1), 1 << bits
    found = bytearray()
    for v in values:
        if not -half <= v < half:
            raise DataError(f"A number does not fit into {bits} bits.")
        found += (v % modulus).to_bytes(size, "little")
    return np.frombuffer(bytes(found), LIMB).reshape(-1, limbs)


def to_ints(words: Words) -> list[int]:
    """Words as signed integers."""
    limbs = words.shape[1]
    size, bits = 4 * limbs, 32 * limbs
    half, modulus = 1 << (bits - 1), 1 << bits
    data = to_bytes(words)
    found = (int.from_bytes(data[i : i + size], "little") for i in range(0, len(data), size))
    return [v - modulus if v >= half else v for v in found]


def from_int64(values: ArrayLike) -> Words:
    """Signed 64-bit integers as words of two limbs."""
    flat = np.ascontiguousarray(values, dtype="<i8").reshape(-1)
    return flat.view(LIMB).reshape(-1, 2)


def to_int64(words: Words) -> NDArray[np.int64]:
    """Words of two limbs as signed 64-bit integers."""
    if words.shape[1] != 2:
        raise DataError(f"Words of {words.shape[1]} limbs are not 64-bit integers.")
    return np.ascontiguousarray(words, dtype=LIMB).view("<i8").reshape(-1).astype(np.int64)


def to_bytes(words: Words) -> bytes:
    """Little-endian bytes, number by number."""
    return np.ascontiguousarray(words, dtype=LIMB).tobytes()


def from_bytes(data: bytes, limbs: int) -> Words:
    """Read what `to_bytes` wrote."""
    return np.frombuffer(data, LIMB).reshape(-1, limbs)


@final
class Accumulator:
    """Adds and subtracts words; carries are settled at the end.

    A limb is 32 bits wide and is added up in 64, so two thousand million terms are exact.
    """

    def __init__(self, size: int, limbs: int) -> None:
        self._sums = np.zeros((size, limbs), dtype=np.int64)

    def add(self, words: Words, sign: int = 1) -> None:
        """Add words, or take them away with a negative sign."""
        operation = np.add if sign > 0 else np.subtract
        operation(self._sums, words, out=self._sums)

    def total(self) -> Words:
        """The sum modulo two to the power of the bits of a word."""
        found = np.empty(self._sums.shape, dtype=LIMB)
        carry = np.zeros(len(self._sums), dtype=np.int64)
        for k in range(self._sums.shape[1]):
            limb = self._sums[:, k] + carry
            found[:, k] = limb & LOW
            carry = limb >> 32
        return found
