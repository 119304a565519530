"""Secret sharing (Shamir 1979): any `threshold` shares determine the secret, fewer reveal nothing.

A secret of 32 bytes is split into pieces of 20 bits, and each piece is shared with a polynomial of
its own over a small prime field. The field is small so that floating-point matrix products are
exact, which makes a thousand sites feasible. Secrecy does not depend on the size of the field.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from isthmus_joint.agreement.identity import Secret, stream

PRIME = 1_048_583
"""The smallest prime above 2^20."""

BITS = 20
SECRET = 32
PIECES = -(-8 * SECRET // BITS)
MOST = 4096
"""Largest number of recipients: a float64 sum of this many terms below 2^41 is exact."""

Shares = NDArray[np.uint32]
"""One row per recipient, one column per piece."""


def split(secret: bytes, threshold: int, recipients: int, key: Secret) -> Shares:
    """Return the shares; that of recipient ``i`` is the value of the polynomials at ``i + 1``.

    The coefficients of the polynomials are drawn from the stream of a key that is used only here.
    """
    if len(secret) != SECRET or not 1 <= threshold <= recipients <= MOST:
        raise ValueError(
            f"cannot make {threshold} of {recipients} shares of a secret of {len(secret)} bytes"
        )
    coefficients = np.empty((threshold, PIECES))
    coefficients[0] = _pieces(secret)
    coefficients[1:] = _uniform((threshold - 1) * PIECES, key).reshape(-1, PIECES)
    return np.mod(_powers(recipients, threshold) @ coefficients, PRIME).astype(np.uint32)


def join(positions: Sequence[int], shares: NDArray[np.uint32]) -> bytes:
    """Return the secret.

    Parameters
    ----------
    positions
        The recipients whose shares these are; exactly as many as the threshold.

    Raises
    ------
    ValueError
        The shares are not of one secret.
    """
    return join_many(positions, shares[:, None, :])[0]


def join_many(positions: Sequence[int], shares: NDArray[np.uint32]) -> list[bytes]:
    """Return many secrets; `shares` has the shape (recipients, secrets, pieces)."""
    weights = np.array(_weights([i + 1 for i in positions]), dtype=np.float64)
    flat = shares.reshape(len(positions), -1).astype(np.float64)
    pieces = np.mod(weights @ flat, PRIME).astype(np.int64).reshape(shares.shape[1:])
    return [_secret(row) for row in pieces]


def _weights(points: list[int]) -> list[int]:
    """Return the Lagrange coefficients at zero."""
    if len(set(points)) != len(points):
        raise ValueError("a recipient's share was given twice")
    weights = []
    for x in points:
        above = below = 1
        for y in points:
            if y != x:
                above = above * y % PRIME
                below = below * (y - x) % PRIME
        weights.append(above * pow(below, -1, PRIME) % PRIME)
    return weights


def _powers(recipients: int, threshold: int) -> NDArray[np.float64]:
    x = np.arange(1, recipients + 1, dtype=np.float64)
    powers = np.ones((recipients, threshold))
    for k in range(1, threshold):
        powers[:, k] = np.mod(powers[:, k - 1] * x, PRIME)
    return powers


def _uniform(count: int, key: Secret) -> NDArray[np.float64]:
    """Draw uniform elements of the field from a key stream, without bias."""
    limit = 2**32 // PRIME * PRIME
    length = count + 16
    while True:
        words = np.frombuffer(b"".join(stream(key, 4 * length)), "<u4")
        elements = words[words < limit]
        if len(elements) >= count:
            drawn: NDArray[np.float64] = np.mod(elements[:count], PRIME).astype(np.float64)
            return drawn
        length *= 2


def _pieces(secret: bytes) -> NDArray[np.float64]:
    number = int.from_bytes(secret, "little")
    mask = (1 << BITS) - 1
    return np.array([(number >> (BITS * k)) & mask for k in range(PIECES)], dtype=np.float64)


def _secret(pieces: NDArray[np.int64]) -> bytes:
    number = sum(int(v) << (BITS * k) for k, v in enumerate(pieces))
    if int(pieces.max()) >> BITS or number >> (8 * SECRET):
        raise ValueError("the shares are not of one secret")
    return number.to_bytes(SECRET, "little")
