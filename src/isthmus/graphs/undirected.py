"""Undirected graphs: skeletons and moral graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

from isthmus.errors import GraphError
from isthmus.graphs.bits import MaskRows, bits
from isthmus.graphs.names import check_nodes, edges_in_words, edges_of, position
from isthmus.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray


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
