"""Features of graphs, whose probability a posterior or a bootstrap gives.

A feature is a function from graphs to numbers. The ones here are computed for many graphs at once;
any Python function of a `DAG` is a feature, too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import GraphError

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
