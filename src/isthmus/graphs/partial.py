"""Graphs with directed and undirected edges: PDAG and CPDAG."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from isthmus import hooks
from isthmus.errors import GraphError, counted
from isthmus.graphs.dag import DAG
from isthmus.graphs.names import (
    MaskRows,
    bits,
    check_nodes,
    checked_order,
    edges_in_words,
    edges_of,
    listed,
    position,
    transpose,
)
from isthmus.graphs.orientation import (
    Mixed,
    UndirectedGraph,
    consistent_extension,
    extensions,
    preferred_extension,
    random_extension,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray


class PartialGraph(ABC):
    """Base class of `PDAG` and `CPDAG`: an immutable graph with directed and undirected edges."""

    __slots__ = ("_hash", "_index", "_neighbours", "_nodes", "_parents")

    _nodes: tuple[str, ...]
    _index: dict[str, int]
    _parents: Sequence[int]  # directed edges, one bitset per node
    _neighbours: Sequence[int]  # undirected edges, stored at both ends
    _hash: int | None

    def __init__(
        self,
        nodes: Iterable[str],
        directed: Iterable[tuple[str, str]] = (),
        undirected: Iterable[tuple[str, str]] = (),
    ) -> None:
        names, index = check_nodes(nodes)
        parents, neighbours = [0] * len(names), [0] * len(names)
        for edge in edges_of(directed, "directed"):
            a, b = _ends(index, edge)
            parents[b] |= 1 << a
        for edge in edges_of(undirected, "undirected"):
            a, b = _ends(index, edge)
            neighbours[a] |= 1 << b
            neighbours[b] |= 1 << a
        for i, (p, n) in enumerate(zip(parents, neighbours, strict=True)):
            if p & n:
                other = names[next(bits(p & n))]
                raise GraphError(
                    f"The edge between {other!r} and {names[i]!r} is given as directed and as "
                    "undirected; give it once."
                )
        checked_order(names, [tuple(bits(mask)) for mask in parents])
        _fill(self, names, index, parents, neighbours)
        self._check()

    @abstractmethod
    def _check(self) -> None:
        """Raise a GraphError if the edges do not make a graph of this type."""

    @classmethod
    def from_masks(
        cls, nodes: tuple[str, ...], parents: Sequence[int], neighbours: Sequence[int]
    ) -> Self:
        """Build a graph from valid bitsets, without checks."""
        graph = cls.__new__(cls)
        _fill(graph, nodes, {name: i for i, name in enumerate(nodes)}, parents, neighbours)
        return graph

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("Graphs are immutable; build a new one.")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_masks, (self._nodes, self._parents, self._neighbours)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes, in the order given."""
        return self._nodes

    @property
    def directed(self) -> tuple[tuple[str, str], ...]:
        """Directed edges, as pairs ``(from, to)``."""
        names = self._nodes
        children = transpose(self._parents, len(names))
        return tuple((names[a], names[b]) for a, mask in enumerate(children) for b in bits(mask))

    @property
    def undirected(self) -> tuple[tuple[str, str], ...]:
        """Undirected edges, each once, with the node that comes first in `nodes` first."""
        return UndirectedGraph.from_masks(self._nodes, self._neighbours).edges

    def index(self, name: str) -> int:
        """Return the position of a node in `nodes`."""
        return position(self._index, name)

    def parents(self, node: str) -> tuple[str, ...]:
        """Return the nodes with a directed edge to a node."""
        return tuple(self._nodes[i] for i in bits(self._parents[self.index(node)]))

    def neighbours(self, node: str) -> tuple[str, ...]:
        """Return the nodes with an undirected edge to a node."""
        return tuple(self._nodes[i] for i in bits(self._neighbours[self.index(node)]))

    @property
    def parent_masks(self) -> Sequence[int]:
        """For each node, the nodes with a directed edge to it, as a bitset over positions."""
        return self._parents

    @property
    def neighbour_masks(self) -> Sequence[int]:
        """For each node, the nodes with an undirected edge to it, as a bitset over positions."""
        return self._neighbours

    def adjacency(self) -> NDArray[np.bool_]:
        """Return the adjacency matrix ``[from, to]``; an undirected edge sets both entries."""
        matrix = np.zeros((len(self._nodes), len(self._nodes)), dtype=np.bool_)
        for j, (p, n) in enumerate(zip(self._parents, self._neighbours, strict=True)):
            matrix[list(bits(p | n)), j] = True
        return matrix

    def skeleton(self) -> UndirectedGraph:
        """Return the undirected graph with the same edges."""
        return UndirectedGraph.from_masks(
            self._nodes, Mixed(self._parents, self._neighbours).adjacent
        )

    def to_dag(self) -> DAG:
        """Return a DAG with these directed edges, the same skeleton and no new v-structure.

        Raises
        ------
        GraphError
            If there is no such DAG.
        """
        parents = consistent_extension(self._parents, self._neighbours)
        if parents is None:
            raise GraphError(
                f"This {type(self).__name__} has no consistent extension: every orientation of its "
                f"undirected edges ({len(self.undirected)}) has a cycle or a new v-structure."
            )
        return DAG.from_masks(self._nodes, parents)

    def members(self) -> Iterator[DAG]:
        """Yield every consistent extension once; see `to_dag`.

        Their number can be exponential in the number of undirected edges.
        """
        self.to_dag()
        graph = Mixed(self._parents, self._neighbours)
        graph.close()
        for parents in extensions(graph):
            yield DAG.from_masks(self._nodes, parents)

    def preferred_dag(self, edges: Iterable[tuple[str, str]]) -> DAG:
        """Return the consistent extension that has these edges as far as possible; see `to_dag`.

        The undirected edges among them are directed one after the other, unless those before
        have determined a direction. The others follow `to_dag`.

        Examples
        --------
        >>> import isthmus as ist
        >>> chain = ist.CPDAG(["a", "b", "c"], undirected=[("a", "b"), ("b", "c")])
        >>> chain.preferred_dag([("b", "a"), ("c", "b")]).edges
        (('b', 'a'), ('c', 'b'))
        """
        self.to_dag()
        graph = Mixed(self._parents, self._neighbours)
        graph.close()
        wanted = [(self._index[a], self._index[b]) for a, b in edges]
        parents = preferred_extension(graph, wanted)
        return type(self).from_masks(self._nodes, parents, graph.neighbours).to_dag()

    def random_dag(self, rng: np.random.Generator) -> DAG:
        """Return a random consistent extension; see `to_dag`.

        The undirected edges are directed one after the other; if both directions are still
        possible, each has the same probability. Every extension can be drawn, but some are drawn
        more often than others.
        """
        self.to_dag()
        graph = Mixed(self._parents, self._neighbours)
        graph.close()
        return DAG.from_masks(self._nodes, random_extension(graph, rng))

    def reorder(self, nodes: Iterable[str]) -> Self:
        """Return the same graph with its nodes in another order."""
        names, _ = check_nodes(nodes)
        if names == self._nodes:
            return self
        if len(names) != len(self._nodes) or set(names) != set(self._nodes):
            raise GraphError(
                f"The new order must have the same {len(self._nodes)} nodes; got {listed(names)}."
            )
        place = {self._index[name]: i for i, name in enumerate(names)}

        def moved(masks: Sequence[int]) -> list[int]:
            return [sum(1 << place[j] for j in bits(masks[self._index[name]])) for name in names]

        return type(self).from_masks(names, moved(self._parents), moved(self._neighbours))

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self) or not isinstance(other, PartialGraph):
            return NotImplemented
        if self._nodes == other._nodes:
            return self._parents == other._parents and self._neighbours == other._neighbours
        return self._key() == other._key()

    def __hash__(self) -> int:
        if self._hash is None:
            value = hash(self._key())
            object.__setattr__(self, "_hash", value)
            return value
        return self._hash

    def _key(
        self,
    ) -> tuple[frozenset[str], frozenset[tuple[str, str]], frozenset[frozenset[str]]]:
        undirected = frozenset(frozenset(edge) for edge in self.undirected)
        return frozenset(self._nodes), frozenset(self.directed), undirected

    def _repr_html_(self) -> str | None:
        return hooks.notebook_drawing(self, repr(self))

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({counted(len(self._nodes), 'node')}, "
            f"{counted(len(self.directed), 'directed edge')}, "
            f"{counted(len(self.undirected), 'undirected edge')}"
            f"{edges_in_words(self.directed, self.undirected)})"
        )


@final
class PDAG(PartialGraph):
    """An immutable partially directed graph: some edges are directed, others undirected.

    Parameters
    ----------
    nodes
        Unique names.
    directed
        Pairs ``(from, to)``; they must not form a cycle.
    undirected
        Pairs of names in any order.
    """

    __slots__ = ()

    def _check(self) -> None:
        """Accept any edges; the constructor has already rejected directed cycles."""

    def meek(self) -> PDAG:
        """Return the graph with every orientation that follows from Meek's rules R1 to R4."""
        graph = Mixed(self._parents, self._neighbours)
        graph.close()
        return PDAG.from_masks(self._nodes, graph.parents, graph.neighbours)


@final
class CPDAG(PartialGraph):
    """A completed PDAG: it represents a class of Markov-equivalent DAGs.

    Directed edges have the same direction in all members of the class. Each undirected edge has one
    direction in some members and the opposite direction in others. Usually built by `DAG.cpdag`.

    Raises
    ------
    GraphError
        If the edges do not represent an equivalence class. Use `PDAG` for such a graph.

    Examples
    --------
    >>> import isthmus as ist
    >>> dag = ist.DAG(["rain", "wet", "slippery"], [("rain", "wet"), ("wet", "slippery")])
    >>> cpdag = dag.cpdag()
    >>> cpdag.directed, cpdag.undirected
    ((), (('rain', 'wet'), ('wet', 'slippery')))
    """

    __slots__ = ()

    def _check(self) -> None:
        parents = consistent_extension(self._parents, self._neighbours)
        if parents is None or DAG.from_masks(self._nodes, parents).cpdag() != self:
            raise GraphError(
                "These edges do not form a CPDAG: they do not represent a class of "
                "Markov-equivalent DAGs. Use PDAG, or PDAG(...).to_dag().cpdag()."
            )


def _ends(index: dict[str, int], edge: tuple[str, str]) -> tuple[int, int]:
    a, b = edge
    start, end = position(index, a), position(index, b)
    if start == end:
        raise GraphError(f"Node {a!r} has an edge to itself.")
    return start, end


def _fill(
    graph: PartialGraph,
    nodes: tuple[str, ...],
    index: dict[str, int],
    parents: Sequence[int],
    neighbours: Sequence[int],
) -> None:
    put = object.__setattr__
    put(graph, "_nodes", nodes)
    put(graph, "_index", index)
    put(graph, "_parents", parents if isinstance(parents, MaskRows) else tuple(parents))
    put(graph, "_neighbours", neighbours if isinstance(neighbours, MaskRows) else tuple(neighbours))
    put(graph, "_hash", None)
