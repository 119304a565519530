"""d-separation, and adjustment sets for effects."""

from __future__ import annotations

from collections.abc import Sequence
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


def causal_nodes(parents: Sequence[int], children: Sequence[int], x: int, y: int) -> int:
    """Return the nodes on directed paths from x to y, without x, as a bitset."""
    return reach(1 << x, children) & reach(1 << y, parents) & ~(1 << x)


def forbidden_nodes(parents: Sequence[int], children: Sequence[int], x: int, y: int) -> int:
    """Return x and the descendants of the nodes between x and y, which nobody may adjust for."""
    causal = causal_nodes(parents, children, x, y)
    return reach(causal, children) | 1 << x


def optimal_adjustment(parents: Sequence[int], children: Sequence[int], x: int, y: int) -> int:
    """Return the valid adjustment set of least variance in linear models (Henckel et al. 2022).

    It has the parents of the nodes between x and y that are neither x nor forbidden.
    """
    around = 0
    for node in bits(causal_nodes(parents, children, x, y)):
        around |= parents[node]
    return around & ~forbidden_nodes(parents, children, x, y)


def is_valid_adjustment(
    parents: Sequence[int], children: Sequence[int], x: int, y: int, given: int
) -> bool:
    """Return whether the effect of x on y can be estimated by adjusting for some nodes.

    This is the criterion of Shpitser et al. (2010) and Perković et al. (2018): no forbidden node is
    in the set, and it blocks all paths from x to y that are not directed.
    """
    if given & (forbidden_nodes(parents, children, x, y) | 1 << y):
        return False
    causal = causal_nodes(parents, children, x, y)
    # Without the first edges of the directed paths, only the other paths are left.
    fewer_children, fewer_parents = list(children), list(parents)
    fewer_children[x] &= ~causal
    for node in bits(causal):
        fewer_parents[node] &= ~(1 << x)
    return not connected(fewer_parents, fewer_children, 1 << x, given) >> y & 1
