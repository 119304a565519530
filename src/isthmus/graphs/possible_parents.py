"""Possible parents of a node in an equivalence class, and which effects the class identifies.

All functions take a CPDAG, or a PDAG closed under Meek's rules, and look at the edges of the causes
only: the number of members of the class does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from isthmus.graphs.dag import DAG
from isthmus.graphs.names import bits, mask_of, reach, topological, transpose
from isthmus.graphs.orientation import Mixed, consistent_extension

if TYPE_CHECKING:
    from isthmus.graphs.knowledge import Knowledge
    from isthmus.graphs.partial import PartialGraph


def possible_parents(graph: PartialGraph, node: str) -> Iterator[tuple[str, ...]]:
    """Yield every set of parents that a node has in some member of the class, once.

    Some of its neighbours can be its parents, and the others its children, if and only if the new
    parents are adjacent to each other and none of them is a child of a new child (Maathuis et al.
    2009; Fang and He 2020 with background knowledge). The smallest set comes first.

    Parameters
    ----------
    graph
        The equivalence class.
    node
        Name of a node.
    """
    x = graph.index(node)
    fixed, around = graph.parent_masks[x], graph.neighbour_masks[x]
    adjacent = _adjacent(graph)
    # Parents first, so that a node is considered after its parents.
    inside = [tuple(bits(own & around)) for own in graph.parent_masks]
    order = [v for v in topological(inside) or () if around >> v & 1]
    stack = [(0, 0)]
    while stack:
        chosen, start = stack.pop()
        yield tuple(graph.nodes[i] for i in bits(fixed | chosen))
        for place in range(len(order) - 1, start - 1, -1):
            v = order[place]
            if not (chosen & ~adjacent[v] or graph.parent_masks[v] & around & ~chosen):
                stack.append((chosen | 1 << v, place + 1))


def parent_configurations(graph: PartialGraph, nodes: Iterable[str]) -> Iterator[DAG]:
    """Yield one member of the class for each joint choice of the parents of some nodes.

    Parameters
    ----------
    graph
        The equivalence class.
    nodes
        Names of nodes.
    """
    chosen = [graph.index(name) for name in nodes]
    stack = [Mixed(graph.parent_masks, graph.neighbour_masks)]
    while stack:
        current = stack.pop()
        x = next((v for v in chosen if current.neighbours[v]), None)
        if x is None:
            parents = consistent_extension(current.parents, current.neighbours)
            assert parents is not None, "a closed graph of the class has a member"
            yield DAG.from_masks(graph.nodes, parents)
            continue
        other = next(bits(current.neighbours[x]))
        for a, b in ((other, x), (x, other)):
            stack.append(_oriented(current, a, b))


def is_identified(graph: PartialGraph, causes: Iterable[str], effects: Iterable[str]) -> bool:
    """Return whether all members of the class imply the same effect of some nodes on others.

    They do unless a possibly directed path leaves a cause by an undirected edge and reaches an
    effect without another cause on it (Perković 2020).

    Parameters
    ----------
    graph
        The equivalence class.
    causes, effects
        Names of nodes; the effects that are also causes are ignored.
    """
    start = mask_of(graph.index(name) for name in causes)
    goal = mask_of(graph.index(name) for name in effects) & ~start
    whole = Mixed(graph.parent_masks, graph.neighbour_masks)
    for x in bits(start):
        for first in bits(whole.neighbours[x] & ~start):
            if _may_reach(_oriented(whole, x, first), first, goal, start):
                return False
    return True


def possible_descendants(graph: PartialGraph, node: str) -> tuple[str, ...]:
    """Return the nodes that a path without an edge against its direction reaches from a node.

    Every descendant in a member of the class is among them.
    """
    children = transpose(graph.parent_masks, len(graph.nodes))
    steps = [c | n for c, n in zip(children, graph.neighbour_masks, strict=True)]
    x = graph.index(node)
    return tuple(graph.nodes[i] for i in bits(reach(1 << x, steps) & ~(1 << x)))


def outcome_parents(
    graph: PartialGraph, cause: str, effect: str, knowledge: Knowledge | None = None
) -> tuple[str, ...]:
    """Return the parents of the effect and of nodes before it that the cause cannot influence.

    Together with the parents of the cause, they are a valid adjustment set: no descendant of the
    cause is among them. They remain adjusted for if the search has missed their weaker edge to the
    cause, as in double selection (Belloni et al. 2014), and if the knowledge forbids an edge
    between them and the cause although they are dependent.

    A node that must come after the cause and may be its child is replaced by its own parents: it
    may be a mediator whose edge from the cause was missed.

    Parameters
    ----------
    graph
        The equivalence class.
    cause, effect
        Names of two nodes.
    knowledge
        What was known about the edges beforehand.
    """
    below = mask_of(graph.index(name) for name in possible_descendants(graph, cause))
    steps = [p | n for p, n in zip(graph.parent_masks, graph.neighbour_masks, strict=True)]
    x, y = graph.index(cause), graph.index(effect)
    between = below & reach(1 << y, steps) | 1 << y
    seen, found = below | between | 1 << x, 0
    while between:
        above = 0
        for node in bits(between):
            above |= graph.parent_masks[node]
        above &= ~seen
        seen |= above
        between = mask_of(v for v in bits(above) if _may_mediate(graph, knowledge, x, v))
        found |= above & ~between
    return tuple(graph.nodes[i] for i in bits(found))


def _may_mediate(graph: PartialGraph, knowledge: Knowledge | None, cause: int, node: int) -> bool:
    """Return whether a node must come after the cause by knowledge, and may be its child."""
    x, v = graph.nodes[cause], graph.nodes[node]
    return (
        knowledge is not None
        and knowledge.permits(x, v)
        and knowledge.excludes_path(graph.nodes, v, x)
    )


def _adjacent(graph: PartialGraph) -> list[int]:
    return Mixed(graph.parent_masks, graph.neighbour_masks).adjacent


def _oriented(graph: Mixed, a: int, b: int) -> Mixed:
    """Return a copy with a -> b instead of a - b, closed under Meek's rules."""
    changed = graph.copy()
    changed.orient(a, b)
    changed.close(changed.affected(a, b))
    return changed


def _may_reach(graph: Mixed, first: int, goal: int, avoided: int) -> bool:
    """Return whether some member has a directed path from a node to a goal around other nodes.

    A shortest directed path of a member is unshielded. Conversely, all edges of an unshielded path
    without an edge against its direction follow from the first one by Meek's first rule.
    """
    if goal >> first & 1:
        return True
    forward = [
        (graph.children[v] | graph.neighbours[v]) & ~avoided for v in range(len(graph.parents))
    ]
    seen = {(first, v) for v in bits(forward[first])}
    stack = list(seen)
    while stack:
        a, b = stack.pop()
        if goal >> b & 1:
            return True
        for c in bits(forward[b] & ~(graph.adjacent[a] | 1 << a)):
            if (b, c) not in seen:
                seen.add((b, c))
                stack.append((b, c))
    return False
