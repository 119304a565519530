"""Arrays of integers modulo a power of two, stored as 32-bit limbs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isthmus.errors import DataError

LimbArray = NDArray[np.uint32]
"""Shape (numbers, limbs), lowest limb first."""

LIMB = np.dtype("<u4")
LOW = np.int64(0xFFFFFFFF)


def from_ints(values: Iterable[int], limbs: int) -> LimbArray:
    """Return signed integers as limbs; `DataError` for a number that does not fit."""
    size, bits = 4 * limbs, 32 * limbs
    half, modulus = 1 << (bits - 1), 1 << bits
    data = bytearray()
    for v in values:
        if not -half <= v < half:
            raise DataError(f"A number does not fit into {bits} bits, so it cannot be summed.")
        data += (v % modulus).to_bytes(size, "little")
    return np.frombuffer(bytes(data), LIMB).reshape(-1, limbs)


def from_digits(digits: NDArray[np.int64], lowest: int, limbs: int) -> LimbArray:
    """Return numbers that are sums of shifted integers, modulo two to the power of their bits.

    Parameters
    ----------
    digits
        Signed integers below 2⁶² in absolute value, shape (digits, numbers). Number n is the sum
        of ``digits[k, n] << (16 * k + lowest)`` over all k.
    lowest
        Number of bits by which the lowest digit is shifted.
    """
    first, bits = divmod(lowest, 16)
    halves = np.zeros((2 * limbs, digits.shape[1]), dtype=np.int64)
    carry = np.zeros(digits.shape[1], dtype=np.int64)
    for k in range(2 * limbs - first):
        value = carry + digits[k] if k < len(digits) else carry
        halves[first + k] = value & 0xFFFF
        carry = value >> 16
    halves <<= bits
    halves[1:] += halves[:-1] >> 16
    halves &= 0xFFFF
    return np.ascontiguousarray((halves[::2] | halves[1::2] << 16).T).astype(LIMB)


def to_ints(numbers: LimbArray) -> list[int]:
    """Return limbs as signed integers."""
    limbs = numbers.shape[1]
    size, bits = 4 * limbs, 32 * limbs
    half, modulus = 1 << (bits - 1), 1 << bits
    data = to_bytes(numbers)
    values = (int.from_bytes(data[i : i + size], "little") for i in range(0, len(data), size))
    return [v - modulus if v >= half else v for v in values]


def from_int64(values: ArrayLike) -> LimbArray:
    """Return signed 64-bit integers as pairs of limbs."""
    flat = np.ascontiguousarray(values, dtype="<i8").reshape(-1)
    return flat.view(LIMB).reshape(-1, 2)


def to_int64(limbs: LimbArray) -> NDArray[np.int64]:
    """Return pairs of limbs as signed 64-bit integers."""
    if limbs.shape[1] != 2:
        raise DataError(f"Numbers of {limbs.shape[1]} limbs are not 64-bit integers.")
    return np.ascontiguousarray(limbs, dtype=LIMB).view("<i8").reshape(-1).astype(np.int64)


def to_bytes(limbs: LimbArray) -> bytes:
    """Return little-endian bytes, number by number."""
    return np.ascontiguousarray(limbs, dtype=LIMB).tobytes()


def from_bytes(data: bytes, limbs: int) -> LimbArray:
    """Read what `to_bytes` wrote."""
    return np.frombuffer(data, LIMB).reshape(-1, limbs)


@final
class LimbAccumulator:
    """Adds and subtracts arrays of limbs; carries are propagated at the end.

    Limbs of 32 bits are added in 64 bits, so two billion terms are exact.
    """

    def __init__(self, size: int, limbs: int) -> None:
        self._sums = np.zeros((size, limbs), dtype=np.int64)

    def add(self, limbs: LimbArray, sign: int = 1) -> None:
        """Add numbers, or subtract them with a negative sign."""
        operation = np.add if sign > 0 else np.subtract
        operation(self._sums, limbs, out=self._sums)

    def add_bytes(self, pieces: Iterable[bytes], sign: int = 1) -> None:
        """Add or subtract what `to_bytes` wrote, in pieces of whole limbs."""
        sums, at = self._sums.reshape(-1), 0
        operation = np.add if sign > 0 else np.subtract
        for piece in pieces:
            limbs = np.frombuffer(piece, LIMB)
            part = sums[at : at + len(limbs)]
            operation(part, limbs, out=part)
            at += len(limbs)

    def total(self) -> LimbArray:
        """Return the sum, modulo two to the power of the bits of a number."""
        total = np.empty(self._sums.shape, dtype=LIMB)
        carry = np.zeros(len(self._sums), dtype=np.int64)
        for k in range(self._sums.shape[1]):
            limb = self._sums[:, k] + carry
            total[:, k] = limb & LOW
            carry = limb >> 32
        return total
