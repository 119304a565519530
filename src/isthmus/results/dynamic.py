"""Dynamic networks: edges within a time step and from earlier steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import GraphError
from isthmus.graphs import DAG
from isthmus.graphs.lags import Lag, lagged_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class DynamicEdge(NamedTuple):
    """An edge from ``source`` to ``target``, ``lag`` steps later; lag 0 is within a step."""

    source: str
    target: str
    lag: int


@final
@dataclass(frozen=True, eq=False)
class DynamicNetwork:
    """A dynamic Bayesian network: edges within a time step and from earlier steps.

    Attributes
    ----------
    nodes
        The variables.
    lags
        Largest lag of an edge.
    weights
        Weight of each edge; the edges of lag 0 are acyclic.
    """

    nodes: tuple[str, ...]
    lags: int
    weights: Mapping[DynamicEdge, float]

    def __post_init__(self) -> None:
        nodes = set(self.nodes)
        weights = {}
        for key, weight in self.weights.items():
            edge = DynamicEdge(*key)
            if edge.source not in nodes or edge.target not in nodes:
                raise GraphError(f"{edge} names a variable that is not among the nodes.")
            if not 0 <= edge.lag <= self.lags:
                raise GraphError(f"{edge} has a lag outside 0 … {self.lags}.")
            weights[edge] = float(weight)
        object.__setattr__(self, "nodes", tuple(self.nodes))
        object.__setattr__(self, "weights", MappingProxyType(weights))
        _ = self.instantaneous  # raises an error if there is a cycle

    def __reduce__(self) -> tuple[Any, ...]:
        return DynamicNetwork, (self.nodes, self.lags, dict(self.weights))

    @classmethod
    def from_dag(
        cls,
        dag: DAG,
        lag_of: Mapping[str, Lag],
        weights: Mapping[tuple[str, str], float] | None = None,
    ) -> DynamicNetwork:
        """Fold a graph over variables now and at earlier time steps into a dynamic network.

        Edges between earlier steps are omitted: they repeat the edges into the present.

        Parameters
        ----------
        dag
            The graph, from any search.
        lag_of
            For each node, its variable and the number of time steps earlier, as in
            ``series.schema().lag_of``.
        weights
            Weights of the edges; 1 where not given.
        """
        unknown = [name for name in dag.nodes if name not in lag_of]
        if unknown:
            raise GraphError(
                f"lag_of lacks the nodes {unknown[:5]}. Pass series.schema().lag_of of the series "
                "that the graph was learned from."
            )
        nodes = tuple(name for name in dag.nodes if lag_of[name].steps == 0)
        lags = max((lag_of[name].steps for name in dag.nodes), default=0)
        edges = {}
        for a, b in dag.edges:
            cause, effect = lag_of[a], lag_of[b]
            if effect.steps == 0:
                edge = DynamicEdge(cause.variable, effect.variable, cause.steps)
                edges[edge] = (weights or {}).get((a, b), 1.0)
            elif cause.steps < effect.steps:
                raise GraphError(
                    f"{a!r} -> {b!r} goes back in time. Forbid such edges: pass the variables as "
                    "tiers of Knowledge, the earliest first."
                )
        return cls(nodes, lags, edges)

    @property
    def edges(self) -> tuple[DynamicEdge, ...]:
        """All edges, those within a step first."""
        return tuple(sorted(self.weights, key=lambda e: (e.lag, e.source, e.target)))

    @cached_property
    def instantaneous(self) -> DAG:
        """The graph within a step."""
        return DAG(self.nodes, [(e.source, e.target) for e in self.edges if e.lag == 0])

    @property
    def lagged(self) -> tuple[DynamicEdge, ...]:
        """The edges from earlier steps."""
        return tuple(e for e in self.edges if e.lag)

    def matrices(self) -> NDArray[np.float64]:
        """Return the weights as an array ``[lag, source, target]``, lag 0 first."""
        position = {name: i for i, name in enumerate(self.nodes)}
        weights = np.zeros((self.lags + 1, len(self.nodes), len(self.nodes)))
        for edge, weight in self.weights.items():
            weights[edge.lag, position[edge.source], position[edge.target]] = weight
        return weights

    @property
    def lag_of(self) -> Mapping[str, Lag]:
        """For each node of the unrolled graph, its variable and the number of steps earlier."""
        return lagged_names(self.nodes, self.lags)

    def unrolled(self) -> DAG:
        """Return the graph over present and past variables, with the edges into the present."""
        name_of = {lag: name for name, lag in self.lag_of.items()}
        return DAG(
            list(name_of.values()),
            [(name_of[Lag(e.source, e.lag)], e.target) for e in self.edges],
        )

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw the network with one column per step; options of ``isthmus.plots.plot_dynamic``."""
        from isthmus.plots import plot_dynamic

        return plot_dynamic(self.nodes, self.weights, lags=self.lags, ax=ax, **options)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DynamicNetwork):
            return NotImplemented
        return (set(self.nodes), self.lags, dict(self.weights)) == (
            set(other.nodes),
            other.lags,
            dict(other.weights),
        )

    def __hash__(self) -> int:
        return hash((frozenset(self.nodes), self.lags, frozenset(self.weights)))

    def __repr__(self) -> str:
        now = sum(e.lag == 0 for e in self.weights)
        return (
            f"DynamicNetwork(nodes={len(self.nodes)}, lags={self.lags}, "
            f"instantaneous={now}, lagged={len(self.weights) - now})"
        )
