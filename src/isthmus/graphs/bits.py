"""Sets of node indices as Python integers: bit ``i`` is set when node ``i`` is in."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def bits(mask: int) -> Iterator[int]:
    """Give the members of a set in ascending order."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


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
