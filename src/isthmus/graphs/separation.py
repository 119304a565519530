"""Reachability along active trails, the basis of d-separation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isthmus.graphs.bits import bits
from isthmus.graphs.order import reach

if TYPE_CHECKING:
    from collections.abc import Sequence


def connected(parents: Sequence[int], children: Sequence[int], start: int, given: int) -> int:
    """Return all nodes outside of ``given`` that have an active trail from the set ``start``.

    Trails are followed in two directions at once: arriving from a child (going up) and arriving
    from a parent (going down). Each pair of node and direction is visited once.
    """
    above_given = reach(given, parents)
    up_seen, down_seen = start, 0
    up, down = start, 0
    while up or down:
        next_up = next_down = 0
        for node in bits(up & ~given):
            next_up |= parents[node]
            next_down |= children[node]
        for node in bits(down & ~given):
            next_down |= children[node]
        # A collider is active only if it or one of its descendants is given.
        for node in bits(down & above_given):
            next_up |= parents[node]
        up, down = next_up & ~up_seen, next_down & ~down_seen
        up_seen |= up
        down_seen |= down
    return (up_seen | down_seen) & ~given
