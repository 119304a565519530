"""Adjustment in graphs with hidden causes: which effects a PAG identifies, and by which variables.

This is the generalised adjustment criterion of Perković, Textor, Kalisch and Maathuis (2018).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.graphs.bits import bits, mask_of, transpose
from isthmus.graphs.order import reach
from isthmus.graphs.pag import ARROW, CIRCLE, PAG, TAIL
from isthmus.graphs.separation import connected


@final
@dataclass(frozen=True)
class Adjustment:
    """Whether an effect is identified by adjustment in a PAG.

    Attributes
    ----------
    variables
        Variables to adjust for; None if there is no valid set.
    has_path
        Whether the effect may differ from zero: a path may be directed from cause to effect.
    reason
        Why there is no valid set.
    """

    variables: tuple[str, ...] | None
    has_path: bool = True
    reason: str = ""


def find_adjustment(pag: PAG, cause: str, effect: str) -> Adjustment:
    """Return variables to adjust for that are valid in all graphs that a PAG stands for.

    If there is any valid set, one is found. Of the variables that are not needed, it has those that
    are adjacent to the effect, or to a variable between cause and effect: they reduce the variance.

    Parameters
    ----------
    pag
        The graph.
    cause, effect
        Names of two nodes.
    """
    x, y = pag.index(cause), pag.index(effect)
    size, matrix = len(pag.nodes), pag.matrix
    # Paths that may be directed have no arrowhead towards their start.
    steps = [_where((matrix[v] > 0) & (matrix[:, v] != ARROW)) for v in range(size)]
    around = [own & ~(1 << x) for own in steps]
    first = mask_of(v for v in bits(steps[x]) if reach(1 << v, around) >> y & 1)
    if not first:
        return Adjustment((), has_path=False)
    for v in bits(first):
        if matrix[v, x] != TAIL or not is_visible(pag, x, v):
            return Adjustment(None, reason=_confounded(pag, x, v))
    parents = _some_members_parents(pag, x)
    if parents is None:
        return Adjustment(
            None,
            reason="the marks of the learned graph contradict each other, so that no graph agrees "
            "with all of them",
        )
    for v in bits(first):  # what is left are the paths to block
        parents[v] &= ~(1 << x)
    children = transpose(parents, len(parents))
    forbidden = reach(first, steps) | 1 << x | 1 << y
    pool = reach(1 << x | 1 << y, transpose(steps, size)) & ~forbidden

    def blocks(given: int) -> bool:
        return not connected(parents, children, 1 << x, given) >> y & 1

    if not blocks(pool):
        return Adjustment(
            None, reason="no set of the measured variables blocks all paths that are not causal"
        )
    between = reach(first, around) & reach(1 << y, transpose(around, size))
    useful = _where(matrix[list(bits(between))].sum(axis=0))
    for v in bits(pool & ~useful):
        if blocks(pool & ~(1 << v)):
            pool &= ~(1 << v)
    return Adjustment(tuple(pag.nodes[v] for v in bits(pool)))


def is_visible(pag: PAG, a: int, b: int) -> bool:
    """Return whether an edge a --> b excludes a hidden common cause of the two.

    It does if a node that is not adjacent to b has an arrowhead at a, or is joined to a by
    colliders that are parents of b (Zhang 2008).

    Parameters
    ----------
    pag
        The graph.
    a, b
        Positions of the nodes of a directed edge.
    """
    matrix = pag.matrix
    into = [_where(matrix[:, v] == ARROW) for v in range(len(pag.nodes))]
    near_b = _where(matrix[b]) | 1 << b
    parents_of_b = _where((matrix[:, b] == ARROW) & (matrix[b] == TAIL))
    seen, waiting = 1 << a, [a]
    while waiting:
        v = waiting.pop()
        if into[v] & ~near_b & ~(1 << a):
            return True
        both = mask_of(c for c in bits(into[v]) if into[c] >> v & 1)
        for c in bits(both & parents_of_b & ~seen):
            seen |= 1 << c
            waiting.append(c)
    return False


def _some_members_parents(pag: PAG, first: int) -> list[int] | None:
    """Return the parents in a DAG that the PAG stands for, with hidden nodes at the end.

    Circles at the tails of ``o->`` become tails, and edges ``o-o`` get directions without new
    colliders, away from a node (Zhang 2008). None if that gives a cycle, or a hidden cause of a
    variable and its own cause: the marks contradict each other.
    """
    matrix, size = pag.matrix, len(pag.nodes)
    open_ends = (matrix == CIRCLE) & (matrix.T == CIRCLE)
    left, order = set(range(size)), []
    visited = np.zeros(size, int)
    visited[first] = 1  # it comes first in its component
    while left:  # maximum cardinality search
        v = max(left, key=lambda u: (visited[u], -u))
        left.remove(v)
        order.append(v)
        visited += open_ends[v]
    rank = np.argsort(order)
    arrow = matrix == ARROW
    directed = (arrow & ~arrow.T) | (open_ends & (rank[:, None] < rank[None, :]))
    parents = [_where(column) for column in directed.T]
    above = [reach(own, parents) for own in parents]
    if any(above[v] >> v & 1 for v in range(size)):
        return None
    for a, b in np.argwhere(np.triu(arrow & arrow.T)).tolist():
        if above[a] >> b & 1 or above[b] >> a & 1:
            return None
        parents[a] |= 1 << len(parents)
        parents[b] |= 1 << len(parents)
        parents.append(0)
    return parents


def _where(flags: NDArray[Any]) -> int:
    """Return the positions of nonzero values as a bitset."""
    return mask_of(np.flatnonzero(flags).tolist())


def _confounded(pag: PAG, x: int, v: int) -> str:
    a, b = pag.nodes[x], pag.nodes[v]
    kind = next(own for one, own, other in pag.edges if {one, other} == {a, b})
    if kind == "-->":
        return f"{a} --> {b} does not exclude that they also have a hidden common cause"
    shown = f"{a} {kind} {b}"
    return f"{shown} leaves open whether {a} is a cause of {b} or they have a hidden common cause"
