"""Directed acyclic graphs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, final, overload

import numpy as np

from isthmus.errors import GraphError
from isthmus.graphs.bits import bits, check_masks, index_of, mask_of, transpose
from isthmus.graphs.names import check_nodes, edges_of, listed, position
from isthmus.graphs.order import checked_order, reach
from isthmus.graphs.orientation import compelled_parents
from isthmus.graphs.separation import connected
from isthmus.graphs.undirected import UndirectedGraph

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from isthmus.graphs.knowledge import Knowledge
    from isthmus.graphs.partial import CPDAG, PDAG

_SHOWN_EDGES = 4


@final
class DAG:
    """An immutable directed acyclic graph with named nodes.

    Parameters
    ----------
    nodes
        Names, all different.
    edges
        Pairs (from, to).

    Raises
    ------
    GraphError
        For a cycle (the message names one), an unknown node, a self loop or a doubled name.

    Examples
    --------
    >>> from isthmus.graphs import DAG
    >>> dag = DAG(["rain", "sprinkler", "wet"], [("rain", "wet"), ("sprinkler", "wet")])
    >>> dag.parents("wet")
    ('rain', 'sprinkler')
    >>> dag.d_separated("rain", "sprinkler"), dag.d_separated("rain", "sprinkler", "wet")
    (True, False)
    """

    __slots__ = ("_children", "_hash", "_index", "_nodes", "_order", "_parents")

    _nodes: tuple[str, ...]
    _index: dict[str, int]
    _parents: tuple[int, ...]  # one mask a node
    _order: tuple[int, ...]
    _children: tuple[int, ...]
    _hash: int | None

    def __init__(self, nodes: Iterable[str], edges: Iterable[tuple[str, str]] = ()) -> None:
        names, index = check_nodes(nodes)
        masks = [0] * len(names)
        for a, b in edges_of(edges):
            start, end = position(index, a), position(index, b)
            if start == end:
                raise GraphError(f"Node {a!r} has an edge to itself; a DAG has no self loops.")
            masks[end] |= 1 << start
        parents = [tuple(bits(mask)) for mask in masks]
        _fill(self, names, index, tuple(masks), checked_order(names, parents))

    @classmethod
    def from_parents(cls, nodes: Sequence[str], parents: Sequence[Iterable[int]]) -> DAG:
        """Build a DAG from the indices of the parents of each node.

        Parameters
        ----------
        nodes
            Names, all different.
        parents
            ``parents[i]`` holds the positions in `nodes` of the parents of node ``i``.
        """
        names, index = check_nodes(nodes)
        try:
            own = [tuple(index_of(p) for p in group) for group in parents]
        except TypeError:
            raise GraphError(
                "parents must hold, for each node, the positions of its parents as integers; "
                f"{parents!r} was given."
            ) from None
        if len(own) != len(names):
            raise GraphError(
                f"There are {len(names)} nodes but parents for {len(own)}; give one each."
            )
        for i, group in enumerate(own):
            for p in group:
                if not 0 <= p < len(names):
                    raise GraphError(
                        f"Node {names[i]!r} has parent index {p}; "
                        f"indices go from 0 to {len(names) - 1}."
                    )
            if i in group:
                raise GraphError(f"Node {names[i]!r} is its own parent.")
        dag = cls.__new__(cls)
        masks = tuple(mask_of(group) for group in own)
        if any(len(set(group)) != len(group) for group in own):
            own = [tuple(bits(mask)) for mask in masks]
        _fill(dag, names, index, masks, checked_order(names, own))
        return dag

    @classmethod
    def from_adjacency(cls, nodes: Sequence[str], matrix: ArrayLike) -> DAG:
        """Build a DAG from a matrix: ``matrix[i, j] != 0`` means node ``i`` -> node ``j``."""
        names, _ = check_nodes(nodes)
        try:
            array = np.asarray(matrix)
        except ValueError as error:
            raise GraphError(f"The adjacency matrix cannot be read: {error}.") from None
        d = len(names)
        if array.shape != (d, d):
            raise GraphError(
                f"For {d} nodes the adjacency matrix must have shape {(d, d)}, got {array.shape}."
            )
        if array.dtype.kind not in "biuf":
            raise GraphError(
                f"The adjacency matrix has the type {array.dtype}; Booleans or numbers are needed."
            )
        if array.dtype.kind == "f" and np.isnan(array).any():
            raise GraphError("The adjacency matrix holds NaN; use 0 where there is no edge.")
        return cls.from_parents(names, [np.flatnonzero(array[:, j]) for j in range(d)])

    @classmethod
    def from_masks(cls, nodes: Sequence[str], masks: Sequence[int]) -> DAG:
        """Build a DAG from bitsets: bit ``p`` of ``masks[i]`` means node ``p`` -> node ``i``."""
        names, _ = check_nodes(nodes)
        masks = check_masks(masks, len(names))
        return cls.from_parents(names, [tuple(bits(mask)) for mask in masks])

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("Graphs are immutable; build a new one.")

    def __reduce__(self) -> tuple[Any, ...]:
        return DAG.from_parents, (self._nodes, self.parent_indices())

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names, in the order given."""
        return self._nodes

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Pairs (from, to), sorted by the positions of the two nodes."""
        names = self._nodes
        return tuple(
            (names[a], names[b]) for a, mask in enumerate(self._children) for b in bits(mask)
        )

    def index(self, name: str) -> int:
        """Return the position of a node in `nodes`."""
        return position(self._index, name)

    def parents(self, node: str) -> tuple[str, ...]:
        """Return the direct causes of a node, in the order of `nodes`."""
        return self._named(self._parents[self.index(node)])

    def children(self, node: str) -> tuple[str, ...]:
        """Return the direct effects of a node, in the order of `nodes`."""
        return self._named(self._children[self.index(node)])

    def ancestors(self, node: str) -> tuple[str, ...]:
        """Return all nodes with a directed path to a node, the node itself left out."""
        start = 1 << self.index(node)
        return self._named(reach(start, self._parents) & ~start)

    def descendants(self, node: str) -> tuple[str, ...]:
        """Return all nodes with a directed path from a node, the node itself left out."""
        start = 1 << self.index(node)
        return self._named(reach(start, self._children) & ~start)

    def has_edge(self, a: str, b: str) -> bool:
        """Tell whether there is an edge a -> b."""
        return bool(self._children[self.index(a)] >> self.index(b) & 1)

    def parent_indices(self) -> tuple[tuple[int, ...], ...]:
        """Return, per node, the positions of its parents in ascending order."""
        return tuple(tuple(bits(mask)) for mask in self._parents)

    @property
    def parent_masks(self) -> tuple[int, ...]:
        """Per node, its parents as a bitset over positions in `nodes`."""
        return self._parents

    def adjacency(self) -> NDArray[np.bool_]:
        """Return the matrix whose entry [i, j] says whether node i -> node j."""
        matrix = np.zeros((len(self._nodes), len(self._nodes)), dtype=np.bool_)
        for j, mask in enumerate(self._parents):
            matrix[list(bits(mask)), j] = True
        return matrix

    def topological_order(self) -> tuple[str, ...]:
        """Return the nodes, causes before effects; among free nodes the first in `nodes` first."""
        return tuple(self._nodes[i] for i in self._order)

    def reorder(self, nodes: Iterable[str]) -> DAG:
        """Return the same graph with its nodes in another order."""
        names, _ = check_nodes(nodes)
        if len(names) != len(self._nodes) or set(names) != set(self._nodes):
            raise GraphError(
                f"A new order must hold the same {len(self._nodes)} nodes, got {listed(names)}."
            )
        return self if names == self._nodes else DAG(names, self.edges)

    def d_separated(
        self, x: str | Iterable[str], y: str | Iterable[str], given: str | Iterable[str] = ()
    ) -> bool:
        """Tell whether `given` blocks every trail between `x` and `y`.

        Parameters
        ----------
        x, y, given
            A name or several names. The three sets must not overlap.
        """
        left, right, known = self._set_of(x), self._set_of(y), self._set_of(given)
        if left & right or left & known or right & known:
            both = self._named(left & right | left & known | right & known)
            raise GraphError(
                f"x, y and given must not share nodes, but {listed(both)} stands in two of them."
            )
        return not connected(self._parents, self._children, left, known) & right

    def skeleton(self) -> UndirectedGraph:
        """Return the graph without its arrow heads."""
        both = [p | c for p, c in zip(self._parents, self._children, strict=True)]
        return UndirectedGraph.from_masks(self._nodes, both)

    def moral(self) -> UndirectedGraph:
        """Return the skeleton with all parents of a common child joined."""
        masks = [p | c for p, c in zip(self._parents, self._children, strict=True)]
        for family in self._parents:
            for parent in bits(family):
                masks[parent] |= family & ~(1 << parent)
        return UndirectedGraph.from_masks(self._nodes, masks)

    def v_structures(self) -> tuple[tuple[str, str, str], ...]:
        """Return all triples (a, c, b) with a -> c <- b and no edge between a and b."""
        names = self._nodes
        found: list[tuple[str, str, str]] = []
        for c, family in enumerate(self._parents):
            for a in bits(family):
                apart = family & ~(self._parents[a] | self._children[a])
                later = bits(apart >> (a + 1) << (a + 1))
                found.extend((names[a], names[c], names[b]) for b in later)
        return tuple(found)

    @overload
    def cpdag(self, knowledge: None = None) -> CPDAG: ...
    @overload
    def cpdag(self, knowledge: Knowledge) -> PDAG: ...
    def cpdag(self, knowledge: Knowledge | None = None) -> CPDAG | PDAG:
        """Return the graph that stands for all Markov-equivalent DAGs.

        Parameters
        ----------
        knowledge
            If given, only the equivalent DAGs that agree with it: the answer is then the
            maximally oriented `PDAG` (Meek's rules). This DAG itself must agree with it.
        """
        from isthmus.graphs.knowledge import require_knowledge
        from isthmus.graphs.partial import CPDAG

        if knowledge is not None:
            require_knowledge(knowledge)
        compelled = compelled_parents(self._parents, self._order)
        free = [own & ~forced for own, forced in zip(self._parents, compelled, strict=True)]
        neighbours = [a | b for a, b in zip(free, transpose(free, len(free)), strict=True)]
        pattern = CPDAG.from_masks(self._nodes, compelled, neighbours)
        return pattern if knowledge is None else knowledge.apply(pattern, self)

    def equivalent(self, other: DAG) -> bool:
        """Tell whether two DAGs imply the same independences (Verma and Pearl)."""
        if not isinstance(other, DAG):
            raise GraphError(
                f"equivalent compares two DAGs, got a {type(other).__name__}. "
                "Compare equivalence classes with ==."
            )
        if set(self._nodes) != set(other._nodes):
            return False
        return self.cpdag() == other.reorder(self._nodes).cpdag()

    def _named(self, mask: int) -> tuple[str, ...]:
        return tuple(self._nodes[i] for i in bits(mask))

    def _set_of(self, names: str | Iterable[str]) -> int:
        if isinstance(names, str) or not isinstance(names, Iterable):
            return 1 << self.index(names)
        return mask_of(self.index(name) for name in names)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DAG):
            return NotImplemented
        if self._nodes == other._nodes:
            return self._parents == other._parents
        return set(self._nodes) == set(other._nodes) and set(self.edges) == set(other.edges)

    def __hash__(self) -> int:
        if self._hash is None:
            value = hash((frozenset(self._nodes), frozenset(self.edges)))
            object.__setattr__(self, "_hash", value)
            return value
        return self._hash

    def __repr__(self) -> str:
        edges = self.edges
        shown = ", ".join(f"{a} → {b}" for a, b in edges[:_SHOWN_EDGES])
        more = ", …" if len(edges) > _SHOWN_EDGES else ""
        colon = ": " if edges else ""
        return f"DAG({len(self._nodes)} nodes, {len(edges)} edges{colon}{shown}{more})"


def _fill(
    dag: DAG,
    nodes: tuple[str, ...],
    index: dict[str, int],
    parents: tuple[int, ...],
    order: tuple[int, ...],
) -> None:
    put = object.__setattr__
    put(dag, "_nodes", nodes)
    put(dag, "_index", index)
    put(dag, "_parents", parents)
    put(dag, "_order", order)
    put(dag, "_children", tuple(transpose(parents, len(nodes))))
    put(dag, "_hash", None)
