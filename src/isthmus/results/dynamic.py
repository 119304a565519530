"""A network over time: edges within a step and from earlier steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import GraphError, counted, rounded
from isthmus.frames import table_of
from isthmus.graphs import DAG
from isthmus.graphs.knowledge import Lag, lagged_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class DynamicEdge(NamedTuple):
    """``source`` acts on ``target`` ``lag`` steps later; lag 0 is within a step."""

    source: str
    target: str
    lag: int


@final
@dataclass(frozen=True, eq=False)
class DynamicNetwork:
    """A graph within each step, and edges from earlier steps, the same at all times.

    Attributes
    ----------
    nodes
        The variables.
    lags
        How far back edges may reach.
    weights
        A weight for each edge; the edges of lag 0 have no cycle. The penalised estimates have no
        standard errors; `isthmus.bootstrap` shows how stable the edges are.
    """

    nodes: tuple[str, ...]
    lags: int
    weights: Mapping[DynamicEdge, float]

    def __post_init__(self) -> None:
        known = set(self.nodes)
        held = {}
        for key, weight in self.weights.items():
            edge = DynamicEdge(*key)
            if edge.source not in known or edge.target not in known:
                raise GraphError(f"{edge} names a variable that is not among the nodes.")
            if not 0 <= edge.lag <= self.lags:
                raise GraphError(f"{edge} has a lag outside 0 … {self.lags}.")
            held[edge] = float(weight)
        object.__setattr__(self, "nodes", tuple(self.nodes))
        object.__setattr__(self, "weights", MappingProxyType(held))
        _ = self.instantaneous  # refuses a cycle

    def __reduce__(self) -> tuple[Any, ...]:
        return DynamicNetwork, (self.nodes, self.lags, dict(self.weights))

    @classmethod
    def from_dag(
        cls,
        dag: DAG,
        lag_of: Mapping[str, Lag],
        weights: Mapping[tuple[str, str], float] | None = None,
    ) -> DynamicNetwork:
        """Convert a graph over variables now and at earlier time steps to a dynamic network.

        Edges between earlier steps only repeat what holds at all times, and are left out.

        Parameters
        ----------
        dag
            The graph, from any search.
        lag_of
            For each node, the variable it is and how many time steps earlier: ``series.schema()``
            has it as ``lag_of``.
        weights
            Weights of the edges; 1 where not given.
        """
        unknown = [name for name in dag.nodes if name not in lag_of]
        if unknown:
            raise GraphError(
                f"lag_of does not have the nodes {unknown[:5]}. Give the lag_of of the schema of "
                "the series that the graph was learned from."
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
                    f"{a!r} -> {b!r} goes back in time. Forbid such edges: give the variables as "
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
        """Weights as an array ``[lag, source, target]``, lag 0 first."""
        position = {name: i for i, name in enumerate(self.nodes)}
        found = np.zeros((self.lags + 1, len(self.nodes), len(self.nodes)))
        for edge, weight in self.weights.items():
            found[edge.lag, position[edge.source], position[edge.target]] = weight
        return found

    @property
    def lag_of(self) -> Mapping[str, Lag]:
        """For each node of the unrolled graph, the variable and how many time steps earlier."""
        return lagged_names(self.nodes, self.lags)

    def unrolled(self) -> DAG:
        """The graph over the variables now and at earlier steps, of the edges that end now."""
        name_of = {lag: name for name, lag in self.lag_of.items()}
        return DAG(
            list(name_of.values()),
            [(name_of[Lag(e.source, e.lag)], e.target) for e in self.edges],
        )

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw the network, one column per time step; see ``isthmus.plots.plot_dynamic``."""
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


# --- The simulated continuations of a series ----------------------------------------------------

_SHOWN = 5
"""Number of variables and of steps of each that the print has."""


@final
class Forecast(dict[str, NDArray[Any]]):
    """For each variable an array of simulated numbers or levels ``[step, draw]``.

    It is a dictionary, whose print and `to_frame` have means and intervals.
    """

    def to_frame(self, like: object = None) -> Any:
        """Return one row per step and number, with its mean, and per level, with its probability.

        ``lower`` and ``upper`` are the ends of the interval of 95% of the draws.

        Parameters
        ----------
        like
            As for :func:`isthmus.to_frame`.
        """
        rows = [row for name in self for row in self._rows(name)]
        names = ("variable", "step", "level", "probability", "mean", "lower", "upper")
        columns = dict(zip(names, zip(*rows, strict=True), strict=True))
        some = {v: own for v, own in columns.items() if any(cell is not None for cell in own)}
        return table_of(some, like)

    def _rows(self, name: str) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = []
        for step, draws in enumerate(self[name], start=1):
            if draws.dtype.kind == "f":
                low, high = np.quantile(draws, [0.025, 0.975]).tolist()
                rows.append((name, step, None, None, float(draws.mean()), low, high))
                continue
            levels, counts = np.unique(draws, return_counts=True)
            shares = (counts / len(draws)).tolist()
            rows += [
                (name, step, level, share, None, None, None)
                for level, share in zip(levels.tolist(), shares, strict=True)
            ]
        return rows

    def __str__(self) -> str:
        steps, draws = next(iter(self.values())).shape
        lines = [f"{counted(steps, 'step')}, {counted(draws, 'draw')}"]
        for name in [*self][:_SHOWN]:
            for _, step, level, share, mean, low, high in self._rows(name):
                if step > _SHOWN:
                    continue
                if level is None:
                    ends = f"{rounded(low, 4)} and {rounded(high, 4)}"
                    text = f"{rounded(mean, 4)} (95% of the draws between {ends})"
                else:
                    text = f"{level} in {share:.1%} of the draws"
                lines.append(f"{name}, step {step}: {text}")
        if len(self) > _SHOWN or steps > _SHOWN:
            lines.append("… to_frame() has all variables and steps.")
        return "\n".join(lines)

    __repr__ = __str__
