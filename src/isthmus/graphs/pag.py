"""Graphs of observed variables that may have hidden common causes: PAG."""

from __future__ import annotations

from collections import deque
from itertools import combinations
from typing import TYPE_CHECKING, Any, final

import numpy as np

from isthmus import hooks
from isthmus.errors import GraphError, counted
from isthmus.graphs.names import (
    LONGEST,
    bits,
    check_nodes,
    listed,
    mask_of,
    position,
    reach,
    transpose,
)
from isthmus.graphs.orientation import UndirectedGraph, connected

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from isthmus.graphs.dag import DAG

# --- Marks, while a search determines them -------------------------------------------------------
#
# The marks of a graph with hidden causes, and the rules by which one mark determines another.
#
# The rules are those of Zhang (Artificial Intelligence 2008), which are complete: what they leave
# open, the independences of the observed variables leave open. R5, R6 and R7 are not here. They
# concern undirected edges, which stand for selection (rows are in the table *because* of some
# variable); R5 makes the first of them from a cycle of circles without chords, which without
# selection does not exist, and R6 and R7 continue from those.

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Separators = Mapping[tuple[int, int], int]
    """For pairs that are not adjacent, smaller index first: a set that separates them."""


@final
class Marks:
    """A graph whose marks are determined one after the other; each edge begins as ``o-o``.

    Attributes
    ----------
    adjacent
        Nodes that share an edge with each node, as bitsets.
    arrows, tails, circles
        Neighbours of each node at whose edge *this* node has the mark.
    arrows_beyond, tails_beyond
        Neighbours of each node that have the mark at *their* end of the edge.
    """

    def __init__(self, adjacent: Sequence[int]) -> None:
        size = len(adjacent)
        self.adjacent = list(adjacent)
        self.circles = list(adjacent)
        self.arrows, self.tails = [0] * size, [0] * size
        self.arrows_beyond, self.tails_beyond = [0] * size, [0] * size

    def parents(self, node: int) -> int:
        """Return the nodes with an edge ``-->`` to a node."""
        return self.arrows[node] & self.tails_beyond[node]

    def children(self, node: int) -> int:
        """Return the nodes with an edge ``-->`` from a node."""
        return self.tails[node] & self.arrows_beyond[node]

    def put_arrow(self, a: int, b: int) -> bool:
        """Turn the circle at b of the edge between a and b into an arrowhead, if it is one."""
        if not self.circles[b] >> a & 1:
            return False
        self.circles[b] ^= 1 << a
        self.arrows[b] |= 1 << a
        self.arrows_beyond[a] |= 1 << b
        return True

    def put_tail(self, a: int, b: int) -> bool:
        """Turn the circle at b of the edge between a and b into a tail, if it is one."""
        if not self.circles[b] >> a & 1:
            return False
        self.circles[b] ^= 1 << a
        self.tails[b] |= 1 << a
        self.tails_beyond[a] |= 1 << b
        return True

    def put_colliders(self, separators: Separators) -> None:
        """R0: orient ``a *-> b <-* c`` if a and c are separated by a set without b."""
        for (a, c), separator in separators.items():
            for b in bits(self.adjacent[a] & self.adjacent[c] & ~separator):
                self.put_arrow(a, b)
                self.put_arrow(c, b)

    def close(self, separators: Separators) -> None:
        """Apply the rules R1 to R4 and R8 to R10 until none of them determines another mark."""
        while self._arrowheads() or self._discriminating(separators) or self._tails():
            pass

    def _circles(self) -> Iterator[tuple[int, int]]:
        """Yield pairs (a, b) with a circle at b, as they are now."""
        for b, mask in enumerate(list(self.circles)):
            for a in bits(mask):
                yield a, b

    def _arrowheads(self) -> bool:
        """Apply R1, R2 and R3 once to every circle and return whether one of them changed."""
        changed = False
        for a, b in self._circles():
            if not self.circles[b] >> a & 1:
                continue
            if self.arrows[b] & ~self.adjacent[a] & ~(1 << a):  # R1: c *-> b o-* a
                self.put_tail(a, b)
                self.put_arrow(b, a)
                changed = True
            elif (  # R2: a --> c *-> b, or a *-> c --> b
                self.children(a) & self.arrows[b]
                or self.arrows_beyond[a] & self.parents(b)
                or self._has_gap(self.arrows[b] & self.circles[a])  # R3: c *-o a o-* d
            ):
                self.put_arrow(a, b)
                changed = True
        return changed

    def _has_gap(self, nodes: int) -> bool:
        """Return whether two of these nodes are not adjacent."""
        return any(nodes & ~(self.adjacent[c] | 1 << c) for c in bits(nodes))

    def _discriminating(self, separators: Separators) -> bool:
        """R4: orient the last edge of discriminating paths; return whether a mark changed."""
        changed = False
        for c, b in self._circles():
            if not self.circles[b] >> c & 1:
                continue
            for a in bits(self.arrows_beyond[b] & self.parents(c)):
                start = self._start_of_path(a, b, c)
                if start is None:
                    continue
                pair = (start, c) if start < c else (c, start)
                if separators[pair] >> b & 1:
                    self.put_tail(c, b)
                    self.put_arrow(b, c)
                else:
                    self.put_arrow(a, b)
                    self.put_arrow(c, b)
                    self.put_arrow(b, c)
                changed = True
                break
        return changed

    def _start_of_path(self, a: int, b: int, c: int) -> int | None:
        """Return the first node of a discriminating path ``(start, …, a, b, c)`` for b, or None.

        All nodes between the first one and b are colliders on the path, and parents of c.
        """
        seen = 1 << a | 1 << b | 1 << c
        waiting = deque([a])
        parents = self.parents(c)
        while waiting:
            node = waiting.popleft()
            before = self.arrows[node] & ~seen
            start = before & ~self.adjacent[c]
            if start:
                return next(bits(start))
            both = before & parents & self.arrows_beyond[node]
            seen |= both
            waiting.extend(bits(both))
        return None

    def _tails(self) -> bool:
        """Apply R8, R9 and R10 once to every ``o->`` and return whether one of them changed."""
        changed = False
        for c, a in self._circles():
            if self.arrows[c] >> a & 1 and (
                self.children(a) & self.parents(c)  # R8: a --> b --> c
                or self._first_steps(a, c) & ~self.adjacent[c] & ~(1 << c)  # R9
                or self._two_ways(a, c)  # R10
            ):
                changed |= self.put_tail(c, a)
        return changed

    def _two_ways(self, a: int, c: int) -> bool:
        """R10: two parents of c are reached from a by paths whose second nodes are not adjacent."""
        parents = list(bits(self.parents(c) & ~(1 << a)))
        if len(parents) < 2:
            return False
        steps = [self._first_steps(a, b) for b in parents]
        return any(
            second & ~(self.adjacent[node] | 1 << node)
            for first, second in combinations(steps, 2)
            for node in bits(first)
        )

    def _possible(self, node: int) -> int:
        """Return where an edge that may be directed leads from a node."""
        return self.adjacent[node] & ~self.arrows[node] & ~self.tails_beyond[node]

    def _first_steps(self, a: int, target: int) -> int:
        """Return the second nodes of the uncovered potentially directed paths to a target.

        A path is uncovered if no two nodes on it that are two steps apart are adjacent. Then each
        step depends on the last one alone, so pairs of nodes are visited, each once.
        """
        found = 0
        for first in bits(self._possible(a)):
            seen = {(a, first)}
            waiting = deque(seen)
            while waiting:
                before, node = waiting.popleft()
                if node == target:
                    found |= 1 << first
                    break
                for after in bits(self._possible(node) & ~(self.adjacent[before] | 1 << before)):
                    if (node, after) not in seen:
                        seen.add((node, after))
                        waiting.append((node, after))
        return found


# --- Graphs of observed variables that may have hidden common causes: PAG -----------------------

CIRCLE, ARROW, TAIL = 1, 2, 3
"""Marks at the end of an edge, as numbers in a matrix."""

EDGE_KINDS = {
    "-->": "is a cause of",
    "o->": "may be a cause of, or share a hidden cause with,",
    "<->": "shares a hidden cause with",
    "o-o": "may be a cause or an effect of, or share a hidden cause with,",
}
"""What each kind of edge says about its first node and its second one."""

_MARKS = {"-": TAIL, "o": CIRCLE, "<": ARROW, ">": ARROW}
_LEFT = {TAIL: "-", CIRCLE: "o", ARROW: "<"}
_RIGHT = {TAIL: "-", CIRCLE: "o", ARROW: ">"}
_EDGES = ("-->", "<--", "<->", "o->", "<-o", "o-o")


@final
class PAG:
    """An immutable partial ancestral graph: causes, as far as they are known if some are hidden.

    It represents all graphs over these variables *and any hidden ones* that agree on which of the
    variables are independent given which others. Each end of an edge between a and b has a mark:

    - an arrowhead at b: b is not a cause of a, in any of these graphs;
    - a tail at b: b is a cause of a (perhaps through others), in all of these graphs;
    - a circle at b: it is a cause in some of them and not in others.

    So ``a --> b`` means that a is a cause of b; ``a <-> b`` that neither is a cause of the other,
    so that they have a hidden common cause; ``a o-> b`` that b is no cause of a, and a is a cause
    of b, or they have a hidden common cause, or both; ``a o-o b`` that all of this is possible.
    No edge means that the two are independent given some of the others. It is assumed that no
    variable decided which rows are in the table (no selection bias), so other kinds of edges do not
    occur.

    Parameters
    ----------
    nodes
        Unique names.
    edges
        Triples such as ``("a", "o->", "b")``, with one of ``-->``, ``<--``, ``<->``, ``o->``,
        ``<-o`` and ``o-o``.

    Examples
    --------
    >>> import isthmus as ist
    >>> dag = ist.DAG(
    ...     ["smoking", "genes", "tar", "cancer", "pollution"],
    ...     [("smoking", "tar"), ("genes", "tar"), ("genes", "cancer"), ("pollution", "cancer")],
    ... )
    >>> pag = ist.PAG.from_dag(dag, hidden=["genes"])
    >>> print(pag)
    smoking o-> tar
    tar <-> cancer
    pollution o-> cancer
    """

    __slots__ = ("_hash", "_index", "_matrix", "_nodes")

    _nodes: tuple[str, ...]
    _index: dict[str, int]
    _matrix: NDArray[np.int8]  # [a, b] is the mark at b of the edge between a and b, or 0
    _hash: int | None

    def __init__(self, nodes: Iterable[str], edges: Iterable[tuple[str, str, str]] = ()) -> None:
        names, index = check_nodes(nodes)
        matrix = np.zeros((len(names), len(names)), np.int8)
        for a, kind, b in _triples(edges):
            i, j = position(index, a), position(index, b)
            if kind not in _EDGES:
                raise GraphError(
                    f"{kind!r} between {a!r} and {b!r} is not an edge of a PAG. The kinds are "
                    f"{', '.join(_EDGES)}."
                )
            if i == j:
                raise GraphError(f"Node {a!r} has an edge to itself.")
            if matrix[i, j]:
                raise GraphError(f"The edge between {a!r} and {b!r} is given twice.")
            matrix[j, i], matrix[i, j] = _MARKS[kind[0]], _MARKS[kind[2]]
        _fill(self, names, matrix)

    @classmethod
    def from_dag(cls, dag: DAG, hidden: Iterable[str] = ()) -> PAG:
        """Return the PAG of the other variables of a DAG if some of its variables are hidden.

        Parameters
        ----------
        dag
            The graph of all variables.
        hidden
            Names of the variables that are not observed; none by default.
        """
        names, _ = check_nodes(hidden)
        outside = mask_of(dag.index(name) for name in names)
        seen = [i for i in range(len(dag.nodes)) if not outside >> i & 1]
        parents = dag.parent_masks
        children = transpose(parents, len(dag.nodes))
        adjacent = [0] * len(seen)
        separators: dict[tuple[int, int], int] = {}
        for y, b in enumerate(seen):
            for x, a in enumerate(seen[:y]):
                # If any set separates two variables, the ancestors of both do.
                both = 1 << a | 1 << b
                given = reach(both, parents) & ~both & ~outside
                if connected(parents, children, 1 << a, given) >> b & 1:
                    adjacent[x] |= 1 << y
                    adjacent[y] |= 1 << x
                else:
                    separators[x, y] = mask_of(i for i, v in enumerate(seen) if given >> v & 1)
        marks = Marks(adjacent)
        marks.put_colliders(separators)
        marks.close(separators)
        return cls.from_marks(tuple(dag.nodes[i] for i in seen), marks)

    @classmethod
    def from_marks(cls, nodes: tuple[str, ...], marks: Marks) -> PAG:
        """Build a graph from marks, without checks."""
        matrix = np.zeros((len(nodes), len(nodes)), np.int8)
        for sets, mark in ((marks.circles, CIRCLE), (marks.arrows, ARROW), (marks.tails, TAIL)):
            for j, members in enumerate(sets):
                matrix[list(bits(members)), j] = mark
        graph = cls.__new__(cls)
        _fill(graph, nodes, matrix)
        return graph

    @classmethod
    def from_matrix(cls, nodes: Iterable[str], matrix: ArrayLike) -> PAG:
        """Build a graph from its matrix; see `matrix`."""
        names, _ = check_nodes(nodes)
        given = np.asarray(matrix)
        if given.shape != (len(names), len(names)):
            raise GraphError(
                f"The matrix of {len(names)} nodes has {len(names)} rows and columns; one of "
                f"shape {given.shape} was given."
            )
        edges = []
        for i, j in np.argwhere((given != 0) | (given.T != 0)).tolist():
            left, right = given[j, i], given[i, j]
            if left not in _LEFT or right not in _RIGHT:
                raise GraphError(
                    f"The marks between {names[i]!r} and {names[j]!r} are {left} and {right}; each "
                    "must be 1 (circle), 2 (arrowhead) or 3 (tail), and both 0 without an edge."
                )
            if i <= j:
                edges.append((names[i], f"{_LEFT[left]}-{_RIGHT[right]}", names[j]))
        return cls(names, edges)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("Graphs are immutable; build a new one.")

    def __reduce__(self) -> tuple[Any, ...]:
        return PAG, (self._nodes, self.edges)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes, in the order given."""
        return self._nodes

    @property
    def edges(self) -> tuple[tuple[str, str, str], ...]:
        """Edges as triples such as ``("a", "o->", "b")``, written from left to right.

        The kinds are ``-->``, ``o->``, ``<->`` and ``o-o``; in the last two, the node that comes
        first in `nodes` is first.
        """
        names, found = self._nodes, []
        for i, j in np.argwhere(np.triu(self._matrix)).tolist():
            kind = f"{_LEFT[self._matrix[j, i]]}-{_RIGHT[self._matrix[i, j]]}"
            if kind in ("<--", "<-o"):
                found.append((names[j], kind[::-1].replace("<", ">"), names[i]))
            else:
                found.append((names[i], kind, names[j]))
        return tuple(found)

    def of_kind(self, kind: str) -> tuple[tuple[str, str], ...]:
        """Return the pairs of nodes that have an edge of a kind, such as ``"<->"``."""
        if kind not in EDGE_KINDS:
            raise GraphError(f"The kinds of edges are {', '.join(EDGE_KINDS)}; got {kind!r}.")
        return tuple((a, b) for a, own, b in self.edges if own == kind)

    @property
    def matrix(self) -> NDArray[np.int8]:
        """The marks: ``[a, b]`` is the mark at b of the edge between a and b.

        0 is no edge, 1 a circle, 2 an arrowhead and 3 a tail, as in the R package pcalg.
        """
        return self._matrix

    def index(self, name: str) -> int:
        """Return the position of a node in `nodes`."""
        return position(self._index, name)

    def neighbours(self, node: str) -> tuple[str, ...]:
        """Return the nodes that share an edge with a node."""
        return tuple(self._nodes[i] for i in np.flatnonzero(self._matrix[self.index(node)]))

    def skeleton(self) -> UndirectedGraph:
        """Return the undirected graph with the same edges."""
        masks = [mask_of(np.flatnonzero(row).tolist()) for row in self._matrix]
        return UndirectedGraph.from_masks(self._nodes, masks)

    def reorder(self, nodes: Iterable[str]) -> PAG:
        """Return the same graph with its nodes in another order."""
        names, _ = check_nodes(nodes)
        if len(names) != len(self._nodes) or set(names) != set(self._nodes):
            raise GraphError(
                f"The new order must have the same {len(self._nodes)} nodes; got {listed(names)}."
            )
        return PAG(names, self.edges)

    def member(self) -> DAG:
        """Return a DAG with this PAG, in which hidden causes are nodes named ``hidden 1, 2, …``.

        Circles of ``o->`` become tails, and those of ``o-o`` are directed without new colliders.
        """
        from isthmus.graphs.dag import DAG
        from isthmus.graphs.partial import CPDAG

        names, hidden = list(self._nodes), self.of_kind("<->")
        causes = [f"hidden {k}" for k in range(1, len(hidden) + 1)]
        if set(causes) & set(names):
            raise GraphError(f"Rename the nodes {listed(sorted(set(causes) & set(names)))}.")
        directed = [
            (a, b) if kind[2] == ">" else (b, a)
            for a, kind, b in self.edges
            if kind not in ("<->", "o-o")
        ]
        directed += CPDAG(names, undirected=self.of_kind("o-o")).to_dag().edges
        directed += [(h, end) for h, pair in zip(causes, hidden, strict=True) for end in pair]
        return DAG([*names, *causes], directed)

    def separating_sets(self) -> dict[tuple[str, str], tuple[str, ...]]:
        """Return for each pair of nodes without an edge a smallest set that separates the two.

        Smallest means that no variable can be left out. A pair that no set separates, which only
        graphs that somebody drew have, is not there.
        """
        dag = self.member()
        pairs = combinations(range(len(self._nodes)), 2)
        free = ((i, j) for i, j in pairs if not self._matrix[i, j])
        found = ((i, j, separator(dag, len(self._nodes), i, j)) for i, j in free)
        return {
            (self._nodes[i], self._nodes[j]): tuple(self._nodes[v] for v in bits(given))
            for i, j, given in found
            if given is not None
        }

    def explain(self) -> str:
        """Return one sentence per edge that says what it means."""
        sentences = (f"{a} {EDGE_KINDS[kind]} {b}." for a, kind, b in self.edges)
        return "\n".join(sentences)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PAG):
            return NotImplemented
        if self._nodes == other._nodes:
            return bool((self._matrix == other._matrix).all())
        return self._key() == other._key()

    def __hash__(self) -> int:
        if self._hash is None:
            object.__setattr__(self, "_hash", hash(self._key()))
        assert self._hash is not None
        return self._hash

    def _key(self) -> tuple[frozenset[str], frozenset[tuple[str, str, str]]]:
        edges = (
            (b, kind, a) if kind in ("<->", "o-o") and b < a else (a, kind, b)
            for a, kind, b in self.edges
        )
        return frozenset(self._nodes), frozenset(edges)

    def _repr_html_(self) -> str | None:
        return hooks.notebook_drawing(self, repr(self))

    def __str__(self) -> str:
        return "\n".join(" ".join(edge) for edge in self.edges) or "no edges"

    def __repr__(self) -> str:
        edges = self.edges
        shown: list[str] = []
        for edge in edges:
            if sum(len(text) for text in shown) > LONGEST:
                shown.append(f"and {len(edges) - len(shown)} more")
                break
            shown.append(" ".join(edge))
        words = f": {', '.join(shown)}" if shown else ""
        return f"PAG({counted(len(self._nodes), 'node')}, {counted(len(edges), 'edge')}{words})"


def separator(dag: DAG, observed: int, x: int, y: int) -> int | None:
    """Return a set that separates two nodes and from which none can be left out.

    The first `observed` nodes may be in it; None if there is no such set.
    """
    parents = dag.parent_masks
    children, both = transpose(parents, len(dag.nodes)), 1 << x | 1 << y
    # If any set separates two variables, the ancestors of both do.
    given = reach(both, parents) & ~both & (1 << observed) - 1
    if connected(parents, children, 1 << x, given) >> y & 1:
        return None
    for v in bits(given):
        if not connected(parents, children, 1 << x, given & ~(1 << v)) >> y & 1:
            given &= ~(1 << v)
    return given


def _fill(graph: PAG, nodes: tuple[str, ...], matrix: NDArray[np.int8]) -> None:
    matrix.flags.writeable = False
    put = object.__setattr__
    put(graph, "_nodes", nodes)
    put(graph, "_index", {name: i for i, name in enumerate(nodes)})
    put(graph, "_matrix", matrix)
    put(graph, "_hash", None)


def _triples(edges: Iterable[tuple[str, str, str]]) -> Sequence[tuple[str, str, str]]:
    triples = []
    for edge in edges:
        if isinstance(edge, str) or len(edge) != 3:
            raise GraphError(
                f"An edge of a PAG is a triple such as ('a', 'o->', 'b'); got {edge!r}."
            )
        triples.append(edge)
    return triples
