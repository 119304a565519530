"""Edge orientation on bitsets: compelled edges, Meek's rules, consistent extensions.

All functions work on lists of bitsets, one bitset per node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np

from isthmus.errors import GraphError, counted
from isthmus.graphs.names import (
    MaskRows,
    bits,
    check_nodes,
    edges_in_words,
    edges_of,
    position,
    reach,
    transpose,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray


def compelled_parents(parents: Sequence[int], order: Sequence[int]) -> Sequence[int]:
    """Return, for each node, the parents that it has in every Markov-equivalent DAG.

    This is the edge labelling of Chickering (UAI 1995). Visiting the parents of a node from last to
    first in the order, the first visit already labels all of them, so one step per node suffices.
    """
    if isinstance(parents, MaskRows):
        return _compelled_members(parents, order)
    rank = [0] * len(order)
    for place, node in enumerate(order):
        rank[node] = place
    compelled = [0] * len(order)
    for y in order:
        own = parents[y]
        if not own:
            continue
        x = max(bits(own), key=rank.__getitem__)
        if compelled[x] & ~own or own & ~parents[x] & ~(1 << x):
            # Some w -> x is compelled and w is no parent of y, or x -> y is in a v-structure; in
            # the second case the edges w -> y labelled compelled before are in `own` too.
            compelled[y] = own
        else:
            compelled[y] = compelled[x]
    return compelled


def _compelled_members(parents: MaskRows, order: Sequence[int]) -> MaskRows:
    """Do the same on sets of members."""
    rank = dict(zip(order, range(len(order)), strict=True))
    sets = [frozenset(own) for own in parents.members]
    compelled: list[frozenset[int]] = [frozenset()] * len(order)
    for y in order:
        own = sets[y]
        if own:
            x = max(own, key=rank.__getitem__)
            new = compelled[x] - own or own - sets[x] - {x}
            compelled[y] = own if new else compelled[x]
    return MaskRows([tuple(sorted(own)) for own in compelled])


class Mixed:
    """A mutable graph with directed and undirected edges, for orientation step by step.

    Parameters
    ----------
    parents
        Directed edges: the parents of each node.
    neighbours
        Undirected edges, stored at both ends.
    """

    __slots__ = ("adjacent", "children", "neighbours", "parents")

    def __init__(self, parents: Sequence[int], neighbours: Sequence[int]) -> None:
        self.parents = list(parents)
        self.children = list(transpose(parents, len(self.parents)))
        self.neighbours = list(neighbours)
        self.adjacent = [
            p | c | n for p, c, n in zip(parents, self.children, neighbours, strict=True)
        ]

    def copy(self) -> Mixed:
        """Return an independent copy; the skeleton is shared."""
        twin = Mixed.__new__(Mixed)
        twin.parents = self.parents.copy()
        twin.children = self.children.copy()
        twin.neighbours = self.neighbours.copy()
        twin.adjacent = self.adjacent
        return twin

    def orient(self, a: int, b: int) -> None:
        """Turn the undirected edge a - b into a -> b."""
        self.neighbours[a] &= ~(1 << b)
        self.neighbours[b] &= ~(1 << a)
        self.parents[b] |= 1 << a
        self.children[a] |= 1 << b

    def close(self, start: Iterator[tuple[int, int]] | None = None) -> None:
        """Apply Meek's rules R1 to R4 until no rule applies.

        Parameters
        ----------
        start
            The undirected edges to check first; all by default. After orienting one edge of a
            closed graph, the edges of `affected` suffice.
        """
        todo = set(self.undirected() if start is None else start)
        while todo:
            a, b = todo.pop()
            if not self.neighbours[a] >> b & 1:
                continue
            if self._is_forced(a, b):
                self.orient(a, b)
                todo.update(self.affected(a, b))
            elif self._is_forced(b, a):
                self.orient(b, a)
                todo.update(self.affected(b, a))

    def affected(self, x: int, y: int) -> Iterator[tuple[int, int]]:
        """Yield the undirected edges to which a rule may apply after the new edge x -> y."""
        for end in (x, y):
            for other in bits(self.neighbours[end]):
                yield (end, other) if end < other else (other, end)
        for a in bits(self.neighbours[x] & self.adjacent[y]):
            for b in bits(self.children[y] & self.neighbours[a]):
                yield (a, b) if a < b else (b, a)

    def undirected(self) -> Iterator[tuple[int, int]]:
        """Yield each undirected edge once, smaller index first."""
        for a, mask in enumerate(self.neighbours):
            for b in bits(mask >> (a + 1) << (a + 1)):
                yield a, b

    def _is_forced(self, a: int, b: int) -> bool:
        """Return whether one of the four rules orients a - b as a -> b."""
        far = ~(self.adjacent[b] | 1 << b)
        if self.parents[a] & far:  # R1: c -> a, c and b not adjacent
            return True
        into = self.parents[b]
        if self.children[a] & into:  # R2: a -> c -> b
            return True
        both = self.neighbours[a] & into
        for c in bits(both):  # R3: a - c -> b, a - d -> b, c and d not adjacent
            if both & ~(self.adjacent[c] | 1 << c):
                return True
        source = self.neighbours[a] & far
        # R4: a - d -> c -> b, a and c adjacent, d and b not adjacent
        return source != 0 and any(self.parents[c] & source for c in bits(into & self.adjacent[a]))


def extensions(graph: Mixed) -> Iterator[list[int]]:
    """Yield the parents of every DAG that a graph closed under Meek's rules represents.

    In a closed, extendable graph each undirected edge can be oriented both ways, so the search tree
    has no dead ends. The argument is modified.
    """
    stack = [graph]
    while stack:
        current = stack.pop()
        edge = next(current.undirected(), None)
        if edge is None:
            yield current.parents
            continue
        a, b = edge
        for x, y in ((b, a), (a, b)):
            branch = current.copy()
            branch.orient(x, y)
            branch.close(branch.affected(x, y))
            stack.append(branch)


def random_extension(graph: Mixed, rng: np.random.Generator) -> list[int]:
    """Return the parents of a random DAG that a graph closed under Meek's rules represents.

    The order and the directions are random. The argument is modified.
    """
    left = list(graph.undirected())
    order = rng.permutation(len(left)).tolist()
    return preferred_extension(
        graph, (left[i] if rng.random() < 0.5 else left[i][::-1] for i in order)
    )


def preferred_extension(graph: Mixed, edges: Iterable[tuple[int, int]]) -> list[int]:
    """Return the parents after orienting edges in turn, as far as the rules leave a choice.

    The graph must be closed under Meek's rules; it is modified. If the edges include all undirected
    ones, the result is a DAG that the graph represents.
    """
    for a, b in edges:
        if graph.neighbours[a] >> b & 1:
            graph.orient(a, b)
            graph.close(graph.affected(a, b))
    return graph.parents


def consistent_extension(parents: Sequence[int], neighbours: Sequence[int]) -> list[int] | None:
    """Orient the undirected edges without a cycle or a new v-structure (Dor and Tarsi, 1992).

    Returns
    -------
    list of int or None
        The parents of each node; None when there is no consistent extension.
    """
    size = len(parents)
    graph = Mixed(parents, neighbours)
    adjacent = graph.adjacent
    result = list(parents)
    removed = 0
    waiting = list(range(size - 1, -1, -1))
    queued = (1 << size) - 1
    while waiting:
        x = waiting.pop()
        bit = 1 << x
        queued &= ~bit
        if removed & bit or not _is_sink(graph, x):
            continue
        result[x] |= graph.neighbours[x]
        removed |= bit
        for y in bits(adjacent[x]):
            adjacent[y] &= ~bit
            graph.children[y] &= ~bit
            graph.neighbours[y] &= ~bit
        # Only nodes adjacent to x can have become sinks.
        candidates = adjacent[x] & ~removed & ~queued
        waiting.extend(bits(candidates))
        queued |= candidates
    return result if removed == (1 << size) - 1 else None


def nearest_extension(parents: Sequence[int], neighbours: Sequence[int]) -> tuple[list[int], int]:
    """Orient the undirected edges without a cycle, and with few new v-structures.

    It is `consistent_extension` for graphs that have none: if there is no sink that can be removed,
    the one whose removal makes the fewest v-structures is.

    Returns
    -------
    list of int
        The parents of each node.
    int
        Number of edges that became part of a new v-structure.
    """
    size = len(parents)
    graph = Mixed(parents, neighbours)
    result = list(parents)
    left = (1 << size) - 1
    contradictions = 0

    def cost(x: int) -> int:
        around = graph.adjacent[x] & left
        return sum(
            around & ~(graph.adjacent[y] | 1 << y) != 0 for y in bits(graph.neighbours[x] & left)
        )

    while left:
        sinks = [x for x in bits(left) if not graph.children[x] & left]
        x = min(sinks, key=cost)
        contradictions += cost(x)
        result[x] |= graph.neighbours[x] & left
        left &= ~(1 << x)
    return result, contradictions


def _is_sink(graph: Mixed, x: int) -> bool:
    """Return whether x can be removed as a sink in the algorithm of Dor and Tarsi.

    It has no children, and each of its neighbours is adjacent to all other nodes adjacent to x.
    """
    if graph.children[x]:
        return False
    around = graph.adjacent[x]
    return all(not around & ~(graph.adjacent[y] | 1 << y) for y in bits(graph.neighbours[x]))


# --- Undirected graphs: skeletons and moral graphs ----------------------------------------------


@final
class UndirectedGraph:
    """An immutable undirected graph with named nodes.

    Parameters
    ----------
    nodes
        Unique names.
    edges
        Pairs of names; the order within a pair does not matter.
    """

    __slots__ = ("_index", "_neighbours", "_nodes")

    _nodes: tuple[str, ...]
    _index: dict[str, int]
    _neighbours: tuple[int, ...]

    def __init__(self, nodes: Iterable[str], edges: Iterable[tuple[str, str]] = ()) -> None:
        names, index = check_nodes(nodes)
        masks = [0] * len(names)
        for edge in edges_of(edges):
            a, b = (position(index, name) for name in edge)
            if a == b:
                raise GraphError(f"Node {names[a]!r} has an edge to itself.")
            masks[a] |= 1 << b
            masks[b] |= 1 << a
        _fill(self, names, index, tuple(masks))

    @classmethod
    def from_masks(cls, nodes: tuple[str, ...], neighbours: Sequence[int]) -> UndirectedGraph:
        """Build a graph from valid bitsets: symmetric, without self-loops."""
        graph = cls.__new__(cls)
        kept = neighbours if isinstance(neighbours, MaskRows) else tuple(neighbours)
        _fill(graph, nodes, {name: i for i, name in enumerate(nodes)}, kept)
        return graph

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("Graphs are immutable; build a new one.")

    def __reduce__(self) -> tuple[Any, ...]:
        return UndirectedGraph.from_masks, (self._nodes, self._neighbours)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes, in the order given."""
        return self._nodes

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Edges, each once, with the node that comes first in `nodes` first."""
        return tuple(
            (self._nodes[a], self._nodes[b])
            for a, mask in enumerate(self._neighbours)
            for b in bits(mask >> (a + 1) << (a + 1))
        )

    def index(self, name: str) -> int:
        """Return the position of a node in `nodes`."""
        return position(self._index, name)

    def neighbours(self, node: str) -> tuple[str, ...]:
        """Return the nodes adjacent to a node."""
        return tuple(self._nodes[i] for i in bits(self._neighbours[self.index(node)]))

    def has_edge(self, a: str, b: str) -> bool:
        """Return whether two nodes are adjacent."""
        return bool(self._neighbours[self.index(a)] >> self.index(b) & 1)

    @property
    def neighbour_masks(self) -> Sequence[int]:
        """Neighbours of each node, as a bitset over positions in `nodes`."""
        return self._neighbours

    def adjacency(self) -> NDArray[np.bool_]:
        """Return the symmetric adjacency matrix."""
        matrix = np.zeros((len(self._nodes), len(self._nodes)), dtype=np.bool_)
        for a, mask in enumerate(self._neighbours):
            matrix[a, list(bits(mask))] = True
        return matrix

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UndirectedGraph):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[frozenset[str], frozenset[frozenset[str]]]:
        return frozenset(self._nodes), frozenset(frozenset(edge) for edge in self.edges)

    def __repr__(self) -> str:
        nodes, edges = counted(len(self._nodes), "node"), counted(len(self.edges), "edge")
        return f"UndirectedGraph({nodes}, {edges}{edges_in_words((), self.edges)})"


def _fill(
    graph: UndirectedGraph, nodes: tuple[str, ...], index: dict[str, int], masks: Sequence[int]
) -> None:
    object.__setattr__(graph, "_nodes", nodes)
    object.__setattr__(graph, "_index", index)
    object.__setattr__(graph, "_neighbours", masks)


# --- d-separation, and adjustment sets for effects ----------------------------------------------


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
