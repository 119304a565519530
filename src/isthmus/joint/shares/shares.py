"""Additive shares as arrays: linear computations need no engine.

A secret is the sum of two arrays of ring elements, one at each party. Each party can add, select
and sum its own array, which is the same on the secret. Only products and comparisons need messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import ArgumentError

if TYPE_CHECKING:
    from spu.libspu import Share

Words = NDArray[np.uint64]

FRACTION = 40
"""Bits of a fraction in the ring of 128 bits, in which the engine computes."""

MODULUS = 1 << 128

SHARED = "cheetah.AShr<FM128>"
"""What the engine calls an additive share."""


@final
@dataclass(frozen=True, eq=False)
class SecretShare:
    """One party's share of an array.

    Attributes
    ----------
    words
        Ring elements: one word each with 64 bits, two (low, high) in a last axis with 128.
    bits
        Size of the ring.
    real
        Whether the array holds fractions; integers otherwise.
    """

    words: NDArray[Any]
    bits: int
    real: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the secret array."""
        return self.words.shape if self.bits == 64 else self.words.shape[:-1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of its numbers."""
        return np.dtype(np.float64 if self.real else np.int64)

    def combine(self, other: Words) -> NDArray[Any]:
        """Put the shares of both parties together: the value."""
        if self.bits == 64:
            return (self.words + other).view(np.int64)
        pairs = zip(self.numbers(), SecretShare(other, 128).numbers(), strict=True)
        unit = 2.0**FRACTION if self.real else 1
        total = [signed(a + b) for a, b in pairs]
        values = [x / unit for x in total] if self.real else total
        return np.array(values, dtype=self.dtype).reshape(self.shape)

    def widened(self) -> SecretShare:
        """Return an integer secret of 64 bits in the ring of 128 bits, without a message.

        Both shares are read as signed numbers. Their sum is right unless the first share is within
        the secret's size of the end of its range: for counts up to n that has the probability
        n / 2^63.
        """
        if self.bits != 64 or self.real:
            raise ArgumentError("Only integer secrets of 64 bits can be widened.")
        sign = (self.words.view(np.int64) >> 63).view(np.uint64)
        return SecretShare(np.stack([self.words, sign], axis=-1), 128)

    def numbers(self) -> list[int]:
        """Return the ring elements of 128 bits as Python's integers, in the order of memory."""
        low, high = self.words.reshape(-1, 2).T.tolist()
        return [a | b << 64 for a, b in zip(low, high, strict=True)]

    @classmethod
    def from_numbers(cls, numbers: Sequence[int], shape: tuple[int, ...]) -> SecretShare:
        """Return fractions of 128 bits from this party's ring elements."""
        flat = [(x & (1 << 64) - 1, x >> 64 & (1 << 64) - 1) for x in numbers]
        words = np.array(flat, dtype=np.uint64).reshape(*shape, 2)
        return cls(words, 128, real=True)


def encoded(value: float) -> int:
    """Return a number as ring element of 128 bits, for the party that knows it."""
    return round(value * 2.0**FRACTION) % MODULUS


def signed(element: int) -> int:
    """Return a ring element of 128 bits as signed number."""
    element %= MODULUS
    return element - MODULUS if element >> 127 else element


def pack(value: SecretShare | NDArray[Any]) -> Share:
    """Return what the runtime of the engine takes: a share, or an array that both parties know."""
    from spu.libspu import DataType, Share, ValueChunk, ValueMeta, Visibility

    meta = ValueMeta()
    meta.data_type = DataType.DT_F64 if value.dtype == np.float64 else DataType.DT_I64
    meta.is_complex = False
    meta.shape = list(value.shape)
    if isinstance(value, SecretShare):
        if value.bits != 128:
            raise ArgumentError(f"The engine takes secrets of 128 bits, got {value.bits}.")
        words = value.words
        meta.visibility, meta.storage_type = Visibility.VIS_SECRET, SHARED
    else:
        words = _elements(value)
        meta.visibility, meta.storage_type = Visibility.VIS_PUBLIC, "Pub2k<FM128>"
    content = np.ascontiguousarray(words).tobytes()
    chunk = ValueChunk()
    chunk.total_bytes, chunk.chunk_offset, chunk.content = len(content), 0, content
    share = Share()
    share.meta = meta.SerializeToString()
    share.share_chunks = [chunk.SerializeToString()]
    return share


def unpack(share: Share) -> SecretShare:
    """Return a result of the engine's runtime as array."""
    from spu.libspu import DataType, ValueChunk, ValueMeta

    meta = ValueMeta()
    meta.ParseFromString(share.meta)
    if meta.storage_type != SHARED:
        raise ArgumentError(f"A program gave {meta.storage_type}; additive shares are needed.")
    parts = []
    for data in share.share_chunks:
        chunk = ValueChunk()
        chunk.ParseFromString(data)
        parts.append(chunk.content)
    words = np.frombuffer(b"".join(parts), dtype=np.uint64).reshape(*meta.shape.dims, 2)
    return SecretShare(words, 128, real=meta.data_type == DataType.DT_F64)


def _elements(values: NDArray[Any]) -> Words:
    """Return public numbers as ring elements."""
    if values.dtype == np.float64:
        low = np.rint(values * 2.0**FRACTION)
        # The absolute value is split exactly; -1 and 2^64 are not neighbours in floating point.
        high = np.floor(np.abs(low) / 2.0**64)
        rest = (np.abs(low) - high * 2.0**64).astype(np.uint64)
        negative = low < 0
        above = np.where(negative, ~high.astype(np.uint64), high.astype(np.uint64))
        below = np.where(negative, ~rest + np.uint64(1), rest)
        carry = (negative & (rest == 0)).astype(np.uint64)
        return np.stack([below, above + carry], axis=-1)
    words = np.ascontiguousarray(values, dtype=np.int64).view(np.uint64)
    return np.stack([words, (words.view(np.int64) >> 63).view(np.uint64)], axis=-1)
