"""Vector autoregressive series with instantaneous and lagged edges, stable by construction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, final

import numpy as np

from isthmus.errors import DataError, GraphError
from isthmus.graphs import DAG
from isthmus.simulate.linear import LinearModel, linear_model
from isthmus.simulate.noise import (
    EqualVariances,
    Gaussian,
    Noise,
    UniformWeights,
    Variances,
)
from isthmus.simulate.random_graphs import node_names
from isthmus.simulate.result import Edge
from isthmus.simulate.streams import Purpose, stream
from isthmus.types import Floats

FORGOTTEN = 1e-9
"""Share of the (zero) start that may remain after the warm-up."""


class LaggedEdge(NamedTuple):
    """``source`` acts on ``target`` ``lag`` steps later."""

    source: str
    target: str
    lag: int


@final
@dataclass(frozen=True, eq=False)
class AutoregressiveModel:
    """x_t = x_t W + Σ_k x_{t-k} A_k + e_t, with W along a graph.

    Attributes
    ----------
    instantaneous
        The linear model within a step: graph, weights, noise and its variances.
    lagged
        A weight for each lagged edge.
    """

    instantaneous: LinearModel
    lagged: Mapping[LaggedEdge, float]

    def __post_init__(self) -> None:
        known = set(self.instantaneous.dag.nodes)
        for source, target, lag in self.lagged:
            if source not in known or target not in known:
                raise GraphError(f"Lagged edge {source!r} -> {target!r} names an unknown node.")
            if lag < 1:
                raise GraphError(f"{source!r} -> {target!r} has lag {lag}; it must be at least 1.")
        object.__setattr__(self, "lagged", MappingProxyType(dict(self.lagged)))

    def __reduce__(self) -> tuple[Any, ...]:
        return AutoregressiveModel, (self.instantaneous, dict(self.lagged))

    @property
    def lags(self) -> int:
        """Largest lag."""
        return max((edge.lag for edge in self.lagged), default=0)

    def lagged_matrices(self) -> Floats:
        """Give A with A[k - 1, i, j] the weight of i on j at lag k."""
        dag = self.instantaneous.dag
        matrices = np.zeros((self.lags, len(dag.nodes), len(dag.nodes)))
        for (source, target, lag), weight in self.lagged.items():
            matrices[lag - 1, dag.index(source), dag.index(target)] = weight
        return matrices

    def spectral_radius(self) -> float:
        """Give the largest modulus of an eigenvalue of the companion matrix; stable if < 1."""
        companion = self._companion()
        return float(np.abs(np.linalg.eigvals(companion)).max()) if companion.size else 0.0

    def covariance(self) -> Floats:
        """Give the stationary covariance of one step."""
        from scipy.linalg import solve_discrete_lyapunov

        self._require_stable()
        within = self.instantaneous.covariance()
        if not self.lags:
            return within
        d = len(within)
        companion = self._companion()
        shocks = np.zeros_like(companion)
        shocks[:d, :d] = within
        stationary = solve_discrete_lyapunov(companion.T, shocks)
        return np.asarray(stationary[:d, :d], dtype=np.float64)

    def sample(self, n: int, *, realisations: int = 1, seed: int) -> SeriesSimulation:
        """Draw independent stationary series of n steps each."""
        if n < 1 or realisations < 1:
            raise DataError(f"Need n >= 1 and realisations >= 1; got {n} and {realisations}.")
        radius = self._require_stable()
        lags, names = self.lags, self.instantaneous.dag.nodes
        warm_up = lags + (int(np.ceil(np.log(FORGOTTEN) / np.log(radius))) if radius > 0 else 0)
        steps = warm_up + n
        # One call for all shocks; a realisation is a run of consecutive steps.
        shocks = self.instantaneous.sample(realisations * steps, seed=seed).array()
        x = shocks.reshape(realisations, steps, len(names))
        effects = self._reduced()
        for t in range(steps):
            for k, effect in enumerate(effects[: min(t, lags)], start=1):
                x[:, t] += x[:, t - k] @ effect
        series = tuple(
            {name: np.ascontiguousarray(x[r, warm_up:, j]) for j, name in enumerate(names)}
            for r in range(realisations)
        )
        return SeriesSimulation(self, series)

    def _reduced(self) -> Floats:
        """Give the lagged effects after the instantaneous ones have passed them on."""
        weights = self.instantaneous.weight_matrix()
        paths = np.linalg.inv(np.eye(len(weights)) - weights)
        reduced: Floats = self.lagged_matrices() @ paths
        return reduced

    def _companion(self) -> Floats:
        d, lags = len(self.instantaneous.dag.nodes), self.lags
        companion = np.zeros((d * lags, d * lags))
        if lags:
            companion[:, :d] = self._reduced().reshape(d * lags, d)
            companion[: d * (lags - 1), d:] = np.eye(d * (lags - 1))
        return companion

    def _require_stable(self) -> float:
        radius = self.spectral_radius()
        if radius >= 1:
            raise DataError(
                f"The series is not stable: its spectral radius is {radius:.3f}, it must be below "
                "1. Take smaller lagged weights, or let autoregressive_model() scale them."
            )
        return radius


@final
@dataclass(frozen=True, eq=False)
class SeriesSimulation:
    """Series, and the model they came from.

    Attributes
    ----------
    model
        Graph within a step, lagged edges, weights.
    series
        One mapping of name to array for each realisation.
    """

    model: AutoregressiveModel
    series: tuple[Mapping[str, Floats], ...]

    @property
    def dag(self) -> DAG:
        """The graph within a step."""
        return self.model.instantaneous.dag

    @property
    def lagged_edges(self) -> tuple[LaggedEdge, ...]:
        """The edges between steps."""
        return tuple(self.model.lagged)

    def arrays(self) -> tuple[Floats, ...]:
        """Give one array a realisation, row = step, column = node."""
        return tuple(np.column_stack([one[name] for name in self.dag.nodes]) for one in self.series)

    def table(self, *, realisation: str = "realisation", time: str = "time") -> dict[str, Any]:
        """Give one long table: two key columns, named as asked, then the nodes."""
        for key in (realisation, time):
            if key in self.dag.nodes:
                raise DataError(f"{key!r} is the name of a node; give the key another name.")
        steps = [len(one[self.dag.nodes[0]]) if self.dag.nodes else 0 for one in self.series]
        table: dict[str, Any] = {
            realisation: np.repeat(np.arange(len(steps)), steps),
            time: np.concatenate([np.arange(count) for count in steps]),
        }
        for name in self.dag.nodes:
            table[name] = np.concatenate([one[name] for one in self.series])
        return table

    def __repr__(self) -> str:
        steps = len(self.series[0][self.dag.nodes[0]]) if self.dag.nodes else 0
        return (
            f"SeriesSimulation(realisations={len(self.series)}, steps={steps}, "
            f"nodes={len(self.dag.nodes)}, lags={self.model.lags})"
        )


def lagged_graph(
    nodes: int | Sequence[str],
    *,
    lags: int = 1,
    degree: float = 1.0,
    own_past: bool = True,
    seed: int,
) -> tuple[LaggedEdge, ...]:
    """Draw lagged edges: at each lag each node has ``degree`` causes on average.

    Parameters
    ----------
    nodes
        How many nodes, or their names.
    lags
        Largest lag.
    degree
        Expected number of causes of a node at each lag.
    own_past
        Whether a node may act on its own future.
    seed
        Same seed, same edges.
    """
    names = node_names(nodes)
    d = len(names)
    candidates = d if own_past else d - 1
    if lags < 1:
        raise GraphError(f"lags must be at least 1; {lags} was given.")
    if not 0 <= degree <= max(candidates, 0):
        raise GraphError(f"degree must be between 0 and {candidates}; {degree} was given.")
    rng = stream(seed, Purpose.LAGGED_GRAPH)
    hit = rng.random((lags, d, d)) < (degree / candidates if candidates > 0 else 0.0)
    if not own_past:
        hit &= ~np.eye(d, dtype=np.bool_)
    return tuple(LaggedEdge(names[i], names[j], int(k) + 1) for k, i, j in np.argwhere(hit))


def autoregressive_model(
    dag: DAG,
    lagged: Iterable[LaggedEdge | tuple[str, str, int]],
    *,
    noise: Noise = Gaussian(),
    weights: UniformWeights | Mapping[Edge, float] = UniformWeights(),
    lagged_weights: UniformWeights = UniformWeights(0.3, 0.5),
    decay: float = 1.0,
    variances: Variances | Mapping[str, float] = EqualVariances(),
    largest_radius: float = 0.9,
    seed: int,
) -> AutoregressiveModel:
    """Draw weights for a graph within a step and for lagged edges, stable by construction.

    Lagged weights at lag k are divided by ``decay ** (k - 1)``. If the spectral radius is then
    above ``largest_radius``, the weights at lag k are multiplied by c^k, which multiplies every
    eigenvalue by c, with c chosen such that the radius is ``largest_radius``.

    Parameters
    ----------
    dag
        Edges within a step; a graph without edges for a plain autoregression.
    lagged
        Edges between steps, such as `lagged_graph` draws.
    noise, weights, variances
        As in `linear`, for the equations within a step.
    lagged_weights
        Law of the lagged weights.
    decay
        At least 1.
    largest_radius
        Between 0 and 1, both excluded.
    seed
        Same seed, same model.
    """
    if not 0 < largest_radius < 1:
        raise DataError(f"largest_radius must be between 0 and 1; {largest_radius} was given.")
    if decay < 1:
        raise DataError(f"decay must be at least 1; {decay} was given.")
    edges = tuple(dict.fromkeys(LaggedEdge(*edge) for edge in lagged))
    sizes = lagged_weights.draw(stream(seed, Purpose.LAGGED_WEIGHTS), len(edges)).tolist()
    drawn = {e: w / decay ** (e.lag - 1) for e, w in zip(edges, sizes, strict=True)}
    within = linear_model(dag, noise=noise, weights=weights, variances=variances, seed=seed)
    model = AutoregressiveModel(within, drawn)
    radius = model.spectral_radius()
    if radius <= largest_radius:
        return model
    scale = largest_radius / radius
    return AutoregressiveModel(within, {e: w * scale**e.lag for e, w in drawn.items()})


def autoregressive(
    dag: DAG,
    lagged: Iterable[LaggedEdge | tuple[str, str, int]],
    n: int,
    *,
    realisations: int = 1,
    noise: Noise = Gaussian(),
    largest_radius: float = 0.9,
    seed: int,
) -> SeriesSimulation:
    """Draw ``realisations`` series of n steps; `autoregressive_model` has every option.

    Examples
    --------
    >>> from isthmus import simulate
    >>> dag = simulate.erdos_renyi(4, 3, seed=1)
    >>> lagged = simulate.lagged_graph(4, lags=2, seed=1)
    >>> simulate.autoregressive(dag, lagged, 50, realisations=3, seed=1)
    SeriesSimulation(realisations=3, steps=50, nodes=4, lags=2)
    """
    model = autoregressive_model(dag, lagged, noise=noise, largest_radius=largest_radius, seed=seed)
    return model.sample(n, realisations=realisations, seed=seed)
