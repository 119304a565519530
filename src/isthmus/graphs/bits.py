"""Sets of node indices as Python integers: bit ``i`` is set when node ``i`` is in."""

from __future__ import annotations

from operator import index as index_of
from typing import TYPE_CHECKING

from isthmus.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["bits", "check_masks", "index_of", "mask_of", "transpose"]


def bits(mask: int) -> Iterator[int]:
    """Give the members of a set in ascending order."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def check_masks(masks: Sequence[int], size: int) -> list[int]:
    """Return bitsets as Python integers; refuse members that are not among `size` nodes."""
    try:
        checked = [index_of(mask) for mask in masks]
    except TypeError:
        raise GraphError(f"Bitsets are integers, one per node; {masks!r} was given.") from None
    for mask in checked:
        # A negative integer has infinitely many bits.
        if mask < 0 or mask >> size:
            raise GraphError(
                f"A bitset over {size} nodes lies between 0 and {2**size - 1}; {mask} was given."
            )
    return checked


def mask_of(members: Iterable[int]) -> int:
    """Build a set from its members."""
    mask = 0
    for member in members:
        mask |= 1 << member
    return mask


def transpose(masks: Iterable[int], size: int) -> list[int]:
    """Turn parents into children and children into parents."""
    turned = [0] * size
    for i, mask in enumerate(masks):
        bit = 1 << i
        for j in bits(mask):
            turned[j] |= bit
    return turned
