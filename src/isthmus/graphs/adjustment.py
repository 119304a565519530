"""Adjustment sets: which variables to control for when an effect is estimated."""

from __future__ import annotations

from collections.abc import Sequence

from isthmus.graphs.bits import bits
from isthmus.graphs.order import reach
from isthmus.graphs.separation import connected


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
