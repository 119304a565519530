"""Features of graphs, whose probability a posterior or a bootstrap gives.

A feature is a function from graphs to numbers. The ones here are computed for many graphs at once;
any Python function of a `DAG` is a feature, too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import ArgumentError, GraphError
from isthmus.frames import edges_of, table_of

Graphs: TypeAlias = NDArray[np.bool_]
"""Adjacency matrices of several graphs: entry ``[graph, from, to]``."""


class Feature(ABC):
    """A property that a graph has or does not have."""

    @abstractmethod
    def holds(self, graphs: Graphs, nodes: Sequence[str]) -> NDArray[np.bool_]:
        """Return for each graph whether it has the property."""


@final
@dataclass(frozen=True)
class edge(Feature):  # noqa: N801 - read like a function: probability(edge("a", "b"))
    """The edge ``start -> end``.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import simulate
    >>> dag = simulate.erdos_renyi(5, 6, seed=1)
    >>> numbers = simulate.linear(dag, 300, seed=1).data
    >>> posterior = ist.sample(numbers, draws=200, seed=1)
    >>> a, b = dag.edges[0]
    >>> total = posterior.probability(ist.edge(a, b)) + posterior.probability(ist.edge(b, a))
    >>> round(float(total), 2)
    1.0
    """

    start: str
    end: str

    def holds(self, graphs: Graphs, nodes: Sequence[str]) -> NDArray[np.bool_]:
        a, b = positions(nodes, self.start, self.end)
        return graphs[:, a, b]


@final
@dataclass(frozen=True)
class path(Feature):  # noqa: N801 - as above
    """A directed path from ``start`` to ``end``: ``start`` is an ancestor of ``end``.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import simulate
    >>> dag = simulate.erdos_renyi(5, 6, seed=1)
    >>> numbers = simulate.linear(dag, 300, seed=1).data
    >>> posterior = ist.sample(numbers, draws=200, seed=1)
    >>> 0 <= posterior.probability(ist.path("x0", "x1")) <= 1
    True
    """

    start: str
    end: str

    def holds(self, graphs: Graphs, nodes: Sequence[str]) -> NDArray[np.bool_]:
        a, b = positions(nodes, self.start, self.end)
        if a == b:
            return np.zeros(len(graphs), np.bool_)
        reached = graphs[:, a, :].copy()
        while True:
            wider = reached | (reached[:, :, None] & graphs).any(axis=1)
            if np.array_equal(wider, reached):
                return reached[:, b]
            reached = wider


@final
@dataclass(frozen=True)
class in_markov_blanket(Feature):  # noqa: N801 - as above
    """``node`` is in the Markov blanket of ``of``: its parent, child or parent of a child.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import simulate
    >>> dag = simulate.erdos_renyi(5, 6, seed=1)
    >>> numbers = simulate.linear(dag, 300, seed=1).data
    >>> posterior = ist.sample(numbers, draws=200, seed=1)
    >>> 0 <= posterior.probability(ist.in_markov_blanket("x0", of="x1")) <= 1
    True
    """

    node: str
    of: str

    def holds(self, graphs: Graphs, nodes: Sequence[str]) -> NDArray[np.bool_]:
        a, b = positions(nodes, self.node, self.of)
        if a == b:
            return np.zeros(len(graphs), np.bool_)
        common_child = (graphs[:, a, :] & graphs[:, b, :]).any(axis=1)
        return graphs[:, a, b] | graphs[:, b, a] | common_child


def positions(nodes: Sequence[str], *names: str) -> list[int]:
    """Return the positions of names among the nodes."""
    found = []
    for name in names:
        if name not in nodes:
            raise GraphError(f"There is no node {name!r}; the nodes are {', '.join(nodes)}.")
        found.append(list(nodes).index(name))
    return found


def descendants(graphs: Graphs) -> Graphs:
    """Return entry ``[graph, u, v]``: whether there is a directed path from u to v."""
    reached = graphs.astype(np.float32)
    steps = 1
    while steps < graphs.shape[1]:
        # Counts stay small: what is positive is cut to one after each doubling.
        reached = np.minimum(reached + reached @ reached, 1.0)
        steps *= 2
    return reached > 0.5


def markov_blankets(graphs: Graphs) -> Graphs:
    """Return entry ``[graph, u, v]``: whether u is in the Markov blanket of v."""
    numbers = graphs.astype(np.float32)
    shared = numbers @ numbers.transpose(0, 2, 1) > 0.5
    blankets = graphs | graphs.transpose(0, 2, 1) | shared
    each = np.arange(graphs.shape[1])
    blankets[:, each, each] = False
    return blankets


# --- Checks of the arrays that describe draws of graphs, and how their number is said -----------

_ROUNDING = 1e-6
"""Tolerance for sums of probabilities above one."""


def check_positions(chains: NDArray[Any], graphs: int) -> None:
    """Raise `ArgumentError` unless chains are an array of positions below ``graphs``."""
    if chains.ndim != 2 or not np.issubdtype(chains.dtype, np.integer):
        raise ArgumentError(
            "chains must be an array of integers of shape (chains, draws); an array of "
            f"{chains.dtype} of shape {chains.shape} was given."
        )
    if chains.size and not (chains.min() >= 0 and chains.max() < graphs):
        raise ArgumentError(
            f"chains must hold positions among {graphs} distinct graphs; it has positions "
            f"from {chains.min()} to {chains.max()}."
        )


def check_numbers(arrays: Mapping[str, NDArray[Any] | None], shape: tuple[int, ...]) -> None:
    """Refuse arrays that are not of floating-point numbers, or have another shape."""
    for name, values in arrays.items():
        if values is None:
            continue
        if values.shape != shape or not np.issubdtype(values.dtype, np.floating):
            raise ArgumentError(
                f"{name} must be an array of numbers of shape {shape}; an array of "
                f"{values.dtype} of shape {values.shape} was given."
            )


def check_probabilities(arrays: Mapping[str, NDArray[Any] | None], shape: tuple[int, ...]) -> None:
    """Refuse arrays of another shape, and numbers that are not probabilities."""
    check_numbers(arrays, shape)
    for name, values in arrays.items():
        if values is not None and not ((values >= 0.0) & (values <= 1.0 + _ROUNDING)).all():
            raise ArgumentError(f"{name} must hold probabilities, between 0 and 1.")


# --- A matrix of numbers for pairs of nodes, such as the probabilities of edges -----------------

_SHOWN = 12
"""Number of nodes up to which the print has all numbers."""


@final
class NodeMatrix(np.ndarray[tuple[int, ...], np.dtype[np.float64]]):
    """An array with one row and one column per node, which knows their names.

    It is an array of NumPy in every other respect; results of computations with it are plain
    arrays.

    Attributes
    ----------
    nodes
        Names of the nodes, in the order of rows and columns.
    measure
        What the numbers are, in one word.

    Examples
    --------
    >>> import isthmus as ist
    >>> a, b = ist.DAG(["a", "b"], [("a", "b")]), ist.DAG(["a", "b"])
    >>> edges = ist.results.Ensemble.from_dags([a, b], [3, 1]).edge_probabilities()
    >>> float(edges["a", "b"]), float(edges[0, 1])
    (0.75, 0.75)
    >>> edges
    from / to     a     b
    a          0.00  0.75
    b          0.00  0.00
    """

    nodes: tuple[str, ...]
    measure: str

    @classmethod
    def of(cls, nodes: Sequence[str], values: NDArray[Any], measure: str) -> NodeMatrix:
        """Return numbers with the names of their rows and columns."""
        made = np.array(values, np.float64).view(cls)
        made.nodes, made.measure = tuple(nodes), measure
        return made

    def __array_finalize__(self, _: object) -> None:
        self.nodes, self.measure = (), ""  # of a part or a transpose

    def to_frame(self, like: object = None) -> Any:
        """Return one row per pair whose number is not zero, the largest first.

        A pair is one row if the order of its nodes makes no difference.

        Parameters
        ----------
        like
            As for :func:`isthmus.to_frame`.
        """
        values = np.asarray(self)
        if np.array_equal(values, values.T):
            values = np.triu(values)
        return table_of(edges_of(self.nodes, values, self.measure), like)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, tuple) and place and all(isinstance(name, str) for name in place):
            place = tuple(positions(self.nodes, *place))
        return np.asarray(self)[place]

    def __array_wrap__(self, array: NDArray[Any], *_: Any) -> Any:
        return array[()]

    def __reduce__(self) -> Any:
        return NodeMatrix.of, (self.nodes, np.asarray(self), self.measure)

    def __str__(self) -> str:
        if not 0 < len(self.nodes) <= _SHOWN:
            return str(np.asarray(self))
        wide = max(len("from / to"), *map(len, self.nodes))
        columns = [max(len(name), 5) for name in self.nodes]
        rows = [("from / to", self.nodes)]
        shape = ".2f" if np.abs(self).max() <= 1.0 else ".3g"
        rows += [
            (name, tuple(f"{value:{shape}}" for value in row))
            for name, row in zip(self.nodes, np.asarray(self).tolist(), strict=True)
        ]
        return "\n".join(
            f"{name:<{wide}}"
            + "".join(f" {cell:>{w}}" for cell, w in zip(cells, columns, strict=True))
            for name, cells in rows
        )

    __repr__ = __str__
