"""Edge orientation on bitsets: compelled edges, Meek's rules, consistent extensions.

All functions work on lists of bitsets, one bitset per node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isthmus.graphs.bits import MaskRows, bits, transpose

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy as np


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
