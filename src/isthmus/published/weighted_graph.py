"""A graph cut out of weights by a threshold, which may have cycles."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import numpy as np

from isthmus.arrays import Floats
from isthmus.errors import GraphError
from isthmus.graphs import DAG
from isthmus.graphs.names import find_cycle, topological
from isthmus.searches.notears_penalties import exponential


@final
@dataclass(frozen=True, eq=False)
class WeightedGraph:
    """A directed graph with weights. It may have cycles: the published methods allow them.

    Attributes
    ----------
    nodes
        Names of the variables.
    weights_before_threshold
        Weights ``[from, to]`` of the optimum, before small ones are dropped.
    threshold
        Weights whose absolute value is smaller are dropped.
    strict
        Whether weights equal to the threshold are dropped, too.
    """

    nodes: tuple[str, ...]
    weights_before_threshold: Floats = field(repr=False)
    threshold: float
    strict: bool = False

    @property
    def weights(self) -> Floats:
        """Weights ``[from, to]`` after the threshold."""
        size = np.abs(self.weights_before_threshold)
        kept = size > self.threshold if self.strict else size >= self.threshold
        return np.where(kept, self.weights_before_threshold, 0.0)

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Pairs (from, to) of the edges."""
        pairs = np.argwhere(self.weights != 0.0).tolist()
        return tuple((self.nodes[i], self.nodes[j]) for i, j in pairs)

    @property
    def h(self) -> float:
        """The acyclicity measure ``tr exp(W ∘ W) - d`` of the weights before the threshold."""
        return exponential(self.weights_before_threshold)[0]

    @property
    def cycle(self) -> tuple[str, ...] | None:
        """The nodes of one directed cycle; None if the graph is acyclic."""
        parents = [np.flatnonzero(column).tolist() for column in self.weights.T]
        if topological(parents) is not None:
            return None
        return tuple(self.nodes[v] for v in find_cycle(parents))

    @property
    def dag(self) -> DAG:
        """The graph as a `DAG`.

        Raises
        ------
        GraphError
            The graph has a cycle.
        """
        cycle = self.cycle
        if cycle is not None:
            raise GraphError(
                f"The graph has the cycle {' → '.join((*cycle, cycle[0]))}, as the published "
                "method allows. Read its edges and weights, raise the threshold, or use the method "
                "that the documentation recommends, which returns an acyclic graph."
            )
        return DAG.from_adjacency(self.nodes, self.weights)
