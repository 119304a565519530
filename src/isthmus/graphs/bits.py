"""Sets of node indices as Python integers: bit ``i`` is set if node ``i`` is a member."""

from __future__ import annotations

from operator import index as index_of
from typing import TYPE_CHECKING

from isthmus.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["bits", "check_masks", "index_of", "mask_of", "transpose"]


def bits(mask: int) -> Iterator[int]:
    """Yield the members of a set in ascending order."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def check_masks(masks: Sequence[int], size: int) -> list[int]:
    """Return bitsets as Python integers; raise a GraphError for members outside of `size` nodes."""
    try:
        checked = [index_of(mask) for mask in masks]
    except TypeError:
        raise GraphError(f"Bitsets must be integers, one per node; {masks!r} was given.") from None
    for mask in checked:
        # A negative integer has infinitely many bits.
        if mask < 0 or mask >> size:
            raise GraphError(
                f"A bitset over {size} nodes must be between 0 and {2**size - 1}; {mask} was given."
            )
    return checked


def mask_of(members: Iterable[int]) -> int:
    """Return the bitset of some members."""
    mask = 0
    for member in members:
        mask |= 1 << member
    return mask


def transpose(masks: Iterable[int], size: int) -> list[int]:
    """Return the children of each node from the parents of each node, or the reverse."""
    transposed = [0] * size
    for i, mask in enumerate(masks):
        bit = 1 << i
        for j in bits(mask):
            transposed[j] |= bit
    return transposed
