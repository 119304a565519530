"""Directed acyclic graphs."""

from __future__ import annotations

from collections.abc import Iterable
from operator import index as index_of
from typing import TYPE_CHECKING, Any, final, overload

import numpy as np

from isthmus import hooks
from isthmus.errors import GraphError, a_type, counted
from isthmus.graphs.names import (
    MaskRows,
    bits,
    check_masks,
    check_nodes,
    checked_order,
    edges_in_words,
    edges_of,
    listed,
    mask_of,
    packed,
    position,
    reach,
    transpose,
)
from isthmus.graphs.orientation import (
    UndirectedGraph,
    compelled_parents,
    connected,
    is_valid_adjustment,
    optimal_adjustment,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from isthmus.graphs.knowledge import Knowledge
    from isthmus.graphs.partial import CPDAG, PDAG


@final
class DAG:
    """An immutable directed acyclic graph with named nodes.

    Parameters
    ----------
    nodes
        Unique names.
    edges
        Pairs ``(from, to)``.

    Raises
    ------
    GraphError
        If there is a cycle, an unknown node, a self-loop or a duplicate name.

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
    _parents: Sequence[int]  # one bitset per node
    _order: tuple[int, ...]
    _children: Sequence[int]
    _hash: int | None

    def __init__(self, nodes: Iterable[str], edges: Iterable[tuple[str, str]] = ()) -> None:
        names, index = check_nodes(nodes)
        parents: list[set[int]] = [set() for _ in names]
        for a, b in edges_of(edges):
            start, end = position(index, a), position(index, b)
            if start == end:
                raise GraphError(f"Node {a!r} has an edge to itself; a DAG has no self-loops.")
            parents[end].add(start)
        families = [tuple(sorted(own)) for own in parents]
        _fill(self, names, index, packed(families, len(names)), checked_order(names, families))

    @classmethod
    def from_parents(cls, nodes: Sequence[str], parents: Sequence[Iterable[int]]) -> DAG:
        """Build a DAG from the indices of the parents of each node.

        Parameters
        ----------
        nodes
            Unique names.
        parents
            ``parents[i]`` holds the positions in `nodes` of the parents of node ``i``.
        """
        names, index = check_nodes(nodes)
        try:
            families = [tuple(index_of(p) for p in group) for group in parents]
        except TypeError:
            raise GraphError(
                "parents must hold, for each node, the positions of its parents as integers; "
                f"{parents!r} was given."
            ) from None
        if len(families) != len(names):
            raise GraphError(
                f"There are {len(names)} nodes, but parents were given for {len(families)}; give "
                "one list of parents per node."
            )
        for i, group in enumerate(families):
            for p in group:
                if not 0 <= p < len(names):
                    raise GraphError(
                        f"Node {names[i]!r} has parent index {p}; "
                        f"indices must be between 0 and {len(names) - 1}."
                    )
            if i in group:
                raise GraphError(f"Node {names[i]!r} is its own parent.")
        dag = cls.__new__(cls)
        families = [tuple(sorted(set(group))) for group in families]
        _fill(dag, names, index, packed(families, len(names)), checked_order(names, families))
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
                f"The adjacency matrix has type {array.dtype}; it must hold Booleans or numbers."
            )
        if array.dtype.kind == "f" and np.isnan(array).any():
            raise GraphError("The adjacency matrix contains NaN; use 0 where there is no edge.")
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
        """Names of the nodes, in the order given."""
        return self._nodes

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Edges as pairs ``(from, to)``, sorted by the positions of the two nodes."""
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
        """Return all nodes with a directed path to a node, without the node itself."""
        start = 1 << self.index(node)
        return self._named(reach(start, self._parents) & ~start)

    def descendants(self, node: str) -> tuple[str, ...]:
        """Return all nodes with a directed path from a node, without the node itself."""
        start = 1 << self.index(node)
        return self._named(reach(start, self._children) & ~start)

    def markov_blanket(self, node: str) -> tuple[str, ...]:
        """Return the parents, the children and the other parents of the children of a node.

        Given these nodes, the node is independent of all others.
        """
        i = self.index(node)
        blanket = self._parents[i] | self._children[i]
        for child in bits(self._children[i]):
            blanket |= self._parents[child]
        return self._named(blanket & ~(1 << i))

    def adjustment_set(self, cause: str, effect: str) -> tuple[str, ...]:
        """Return the nodes to adjust for in order to estimate the total effect of `cause`.

        Among all valid sets, this one gives the estimate with the smallest variance in a linear
        model (Henckel, Perković and Maathuis 2022). If there is no directed path from `cause` to
        `effect`, the effect is zero and the set is empty.

        Parameters
        ----------
        cause, effect
            Names of two nodes.
        """
        x, y = self._two(cause, effect)
        return self._named(optimal_adjustment(self._parents, self._children, x, y))

    def is_adjustment_set(self, cause: str, effect: str, given: str | Iterable[str]) -> bool:
        """Return whether adjusting for some nodes gives the total effect of a node on another.

        Parameters
        ----------
        cause, effect
            Names of two nodes.
        given
            Names of the nodes to adjust for.
        """
        x, y = self._two(cause, effect)
        return is_valid_adjustment(self._parents, self._children, x, y, self._set_of(given))

    def _two(self, cause: str, effect: str) -> tuple[int, int]:
        if cause == effect:
            raise GraphError(f"Cause and effect are the same node, {cause!r}; name two.")
        return self.index(cause), self.index(effect)

    def has_edge(self, a: str, b: str) -> bool:
        """Return whether there is an edge a -> b."""
        return bool(self._children[self.index(a)] >> self.index(b) & 1)

    def parent_indices(self) -> tuple[tuple[int, ...], ...]:
        """Return the positions of the parents of each node, in ascending order."""
        return tuple(tuple(bits(mask)) for mask in self._parents)

    @property
    def parent_masks(self) -> Sequence[int]:
        """Parents of each node, as a bitset over positions in `nodes`."""
        return self._parents

    def adjacency(self) -> NDArray[np.bool_]:
        """Return the adjacency matrix: entry ``[i, j]`` is True if node i -> node j."""
        matrix = np.zeros((len(self._nodes), len(self._nodes)), dtype=np.bool_)
        for j, mask in enumerate(self._parents):
            matrix[list(bits(mask)), j] = True
        return matrix

    def topological_order(self) -> tuple[str, ...]:
        """Return the nodes with causes before effects; ties are broken by position in `nodes`."""
        return tuple(self._nodes[i] for i in self._order)

    def reorder(self, nodes: Iterable[str]) -> DAG:
        """Return the same graph with its nodes in another order."""
        names, _ = check_nodes(nodes)
        if len(names) != len(self._nodes) or set(names) != set(self._nodes):
            raise GraphError(
                f"The new order must have the same {len(self._nodes)} nodes; got {listed(names)}."
            )
        return self if names == self._nodes else DAG(names, self.edges)

    def d_separated(
        self, x: str | Iterable[str], y: str | Iterable[str], given: str | Iterable[str] = ()
    ) -> bool:
        """Return whether `given` d-separates `x` and `y`, that is, blocks every trail between them.

        Parameters
        ----------
        x, y, given
            One or more names. The three sets must be disjoint.
        """
        left, right, fixed = self._set_of(x), self._set_of(y), self._set_of(given)
        if left & right or left & fixed or right & fixed:
            both = self._named(left & right | left & fixed | right & fixed)
            raise GraphError(
                f"x, y and given must be disjoint, but {listed(both)} is in more than one of them."
            )
        return not connected(self._parents, self._children, left, fixed) & right

    def skeleton(self) -> UndirectedGraph:
        """Return the undirected graph with the same edges."""
        both = [p | c for p, c in zip(self._parents, self._children, strict=True)]
        return UndirectedGraph.from_masks(self._nodes, both)

    def moral(self) -> UndirectedGraph:
        """Return the moral graph: the skeleton with edges between all parents of a common child."""
        masks = [p | c for p, c in zip(self._parents, self._children, strict=True)]
        for family in self._parents:
            for parent in bits(family):
                masks[parent] |= family & ~(1 << parent)
        return UndirectedGraph.from_masks(self._nodes, masks)

    def v_structures(self) -> tuple[tuple[str, str, str], ...]:
        """Return all triples (a, c, b) with a -> c <- b and no edge between a and b."""
        names = self._nodes
        triples: list[tuple[str, str, str]] = []
        for c, family in enumerate(self._parents):
            for a in bits(family):
                apart = family & ~(self._parents[a] | self._children[a])
                later = bits(apart >> (a + 1) << (a + 1))
                triples.extend((names[a], names[c], names[b]) for b in later)
        return tuple(triples)

    @overload
    def cpdag(self, knowledge: None = None) -> CPDAG: ...
    @overload
    def cpdag(self, knowledge: Knowledge) -> PDAG: ...
    def cpdag(self, knowledge: Knowledge | None = None) -> CPDAG | PDAG:
        """Return the CPDAG, which represents all DAGs that are Markov equivalent to this one.

        Parameters
        ----------
        knowledge
            If given, only equivalent DAGs that agree with it are represented, and the result is
            the maximally oriented `PDAG` (Meek's rules). This DAG must agree with it too.
        """
        from isthmus.graphs.knowledge import require_knowledge
        from isthmus.graphs.partial import CPDAG

        if knowledge is not None:
            require_knowledge(knowledge)
        compelled = compelled_parents(self._parents, self._order)
        pattern = CPDAG.from_masks(self._nodes, compelled, _both_ways(self._parents, compelled))
        return pattern if knowledge is None else knowledge.apply(pattern, self)

    def equivalent(self, other: DAG) -> bool:
        """Return whether two DAGs are Markov equivalent: they imply the same independences."""
        if not isinstance(other, DAG):
            raise GraphError(
                f"equivalent compares two DAGs, got {a_type(other)}. "
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

    def _repr_html_(self) -> str | None:
        return hooks.notebook_drawing(self, repr(self))

    def __repr__(self) -> str:
        sizes = f"{counted(len(self._nodes), 'node')}, {counted(len(self.edges), 'edge')}"
        return f"DAG({sizes}{edges_in_words(self.edges)})"


def _both_ways(parents: Sequence[int], compelled: Sequence[int]) -> Sequence[int]:
    """Return the neighbours by edges that are not compelled."""
    size = len(parents)
    if isinstance(parents, MaskRows) and isinstance(compelled, MaskRows):
        pairs = zip(parents.members, compelled.members, strict=True)
        rest = MaskRows([tuple(v for v in own if v not in forced) for own, forced in pairs])
        other = transpose(rest, size)
        assert isinstance(other, MaskRows)
        return packed((a + b for a, b in zip(rest.members, other.members, strict=True)), size)
    free = [own & ~forced for own, forced in zip(parents, compelled, strict=True)]
    return [a | b for a, b in zip(free, transpose(free, size), strict=True)]


def _fill(
    dag: DAG,
    nodes: tuple[str, ...],
    index: dict[str, int],
    parents: Sequence[int],
    order: tuple[int, ...],
) -> None:
    put = object.__setattr__
    put(dag, "_nodes", nodes)
    put(dag, "_index", index)
    put(dag, "_parents", parents)
    put(dag, "_order", order)
    children = transpose(parents, len(nodes))
    put(dag, "_children", children if isinstance(children, MaskRows) else tuple(children))
    put(dag, "_hash", None)
