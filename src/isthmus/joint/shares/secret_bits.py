"""Secret bits: shared by exclusive or, multiplied by oblivious transfer.

Exclusive or, and a change by a constant, need no message; each party changes its own share. What a
party obtains from a product is masked by random numbers of the other party, so it learns nothing,
whatever its program (Goldreich, Micali and Wigderson 1987, on transfers that are checked).
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from isthmus.joint.shares.secret_products import SecretProducts
from isthmus.joint.shares.shares import Words, added, negative, shifted, total

Bits: TypeAlias = NDArray[np.uint8]
"""Shares of bits: zeros and ones."""


def both(products: SecretProducts, first: Bits, second: Bits) -> Bits:
    """Return products of bits, shape (..., c), from shapes (...) and (..., c)."""
    numbers = second.reshape(first.size, second.shape[-1])
    crossed = products.crossed(first.ravel(), numbers).reshape(second.shape)
    result: Bits = first[..., None] & second ^ crossed & np.uint8(1)
    return result


def opposite(bits: Bits, rank: int) -> Bits:
    """Return bits that are one where these are zero."""
    result: Bits = bits ^ np.uint8(rank == 0)
    return result


def carried(products: SecretProducts, makes: Bits, passes: Bits) -> Bits:
    """Return for each place whether it or one before makes a carry that all between pass on.

    Parameters
    ----------
    makes, passes
        Shape (m, places). At no place both are one.
    """
    makes, passes = makes.copy(), passes.copy()
    width, reach = makes.shape[1], 1
    while reach < width:
        # Places in the second half of each block continue what the last one of the first half has.
        places = np.flatnonzero(np.arange(width) // reach % 2)
        before = places // reach * reach - 1
        earlier = np.stack([makes[:, before], passes[:, before]], axis=2)
        found = both(products, passes[:, places], earlier)
        makes[:, places] ^= found[:, :, 0]
        passes[:, places] = found[:, :, 1]
        reach *= 2
    return makes


def bits_of(products: SecretProducts, shares: Words, width: int, rank: int) -> Bits:
    """Return the bits of secrets modulo a power of two, the lowest first.

    Parameters
    ----------
    shares
        Words of 64 bits, shape (m,).

    Returns
    -------
    ndarray
        Shape (m, width).
    """
    own, makes = _halves(products, shares, width, rank)
    own[:, 1:] ^= carried(products, makes, own[:, :-1])
    return own


def negatives(products: SecretProducts, shares: Words, rank: int) -> Bits:
    """Return which secrets of 64 bits are negative, shape (m,)."""
    own, makes = _halves(products, shares, 64, rank)
    passes = own[:, :-1]
    while makes.shape[1] > 1:  # as `carried`, of which only the last is needed
        even = makes.shape[1] // 2 * 2
        low, high = slice(0, even, 2), slice(1, even, 2)
        earlier = np.stack([makes[:, low], passes[:, low]], axis=2)
        found = both(products, passes[:, high], earlier)
        makes = np.hstack([makes[:, high] ^ found[:, :, 0], makes[:, even:]])
        passes = np.hstack([found[:, :, 1], passes[:, even:]])
    result: Bits = own[:, -1] ^ makes[:, 0]
    return result


def _halves(products: SecretProducts, shares: Words, width: int, rank: int) -> tuple[Bits, Bits]:
    """Return the bits of one's own share, and where those of both are one, but the last."""
    places = np.arange(width, dtype=np.uint64)
    own = (shares[:, None] >> places & np.uint64(1)).astype(np.uint8)
    none = np.zeros_like(own)
    first, second = (own, none) if rank == 0 else (none, own)
    return own, both(products, first[:, :-1], second[:, :-1, None])[:, :, 0]


def times(products: SecretProducts, bits: Bits, numbers: Words) -> Words:
    """Return shares of bits, shape (m,), times secrets of 64 bits, shape (m, c)."""
    own = numbers * bits[:, None].astype(np.uint64)
    # Where one's own share of the bit is one, the product is the number minus the other's.
    other = np.where(bits[:, None], np.negative(numbers), numbers)
    result: Words = own + products.crossed(bits, other)
    return result


def scaled(products: SecretProducts, bits: Bits, numbers: Words, weights: NDArray[Any]) -> Words:
    """Return shares of secrets times numbers whose bits are secret.

    Parameters
    ----------
    bits
        Shape (m, k).
    numbers
        Elements of 128 bits, shape (m, 2).
    weights
        Powers of two by which each bit counts: their exponents, shape (k,).
    """
    moved = shifted(numbers[:, None], weights)
    chosen = bits[..., None].astype(bool)
    own = np.where(chosen, moved, np.uint64(0))
    other = np.where(chosen, negative(moved), moved)
    crossed = products.crossed(bits.ravel(), other.reshape(-1, 1, 2))
    return added(total(own, 1), total(crossed.reshape(own.shape), 1))
