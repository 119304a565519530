"""Sets of node indices as Python integers: bit ``i`` is set if node ``i`` is a member."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index as index_of
from typing import TYPE_CHECKING, final, overload

from isthmus.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["MaskRows", "bits", "check_masks", "index_of", "mask_of", "packed", "transpose"]

_MANY_NODES = 4096
"""With more nodes, bitsets are made when they are used: all of them have d² / 8 bytes."""


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


@final
class MaskRows(Sequence[int]):
    """One bitset per node, kept as sorted lists of members.

    Parameters
    ----------
    members
        The members of each set, in ascending order.
    """

    __slots__ = ("members",)

    def __init__(self, members: Sequence[tuple[int, ...]]) -> None:
        self.members = tuple(members)

    def __len__(self) -> int:
        return len(self.members)

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> MaskRows: ...
    def __getitem__(self, index: int | slice) -> int | MaskRows:
        if isinstance(index, slice):
            return MaskRows(self.members[index])
        return mask_of(self.members[index])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MaskRows):
            return NotImplemented
        return self.members == other.members

    def __hash__(self) -> int:
        return hash(self.members)


def packed(members: Iterable[Iterable[int]], size: int) -> Sequence[int]:
    """Return one bitset per node, as a tuple, or as `MaskRows` if there are many nodes."""
    if size <= _MANY_NODES:
        return tuple(mask_of(own) for own in members)
    return MaskRows([tuple(sorted(set(own))) for own in members])


def transpose(masks: Iterable[int], size: int) -> Sequence[int]:
    """Return the children of each node from the parents of each node, or the reverse."""
    if isinstance(masks, MaskRows):
        lists: list[list[int]] = [[] for _ in range(size)]
        for i, own in enumerate(masks.members):
            for j in own:
                lists[j].append(i)
        return MaskRows([tuple(own) for own in lists])
    transposed = [0] * size
    for i, mask in enumerate(masks):
        bit = 1 << i
        for j in bits(mask):
            transposed[j] |= bit
    return transposed
