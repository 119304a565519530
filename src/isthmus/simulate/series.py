"""Simulate vector autoregressive series with instantaneous and lagged edges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, final

import numpy as np

from isthmus.arrays import Floats
from isthmus.errors import DataError, GraphError
from isthmus.graphs import DAG
from isthmus.simulate.graphs import node_names
from isthmus.simulate.tables import (
    Edge,
    EqualVariances,
    Gaussian,
    LinearModel,
    Noise,
    Purpose,
    UniformWeights,
    Variances,
    linear_model,
    stream,
)

FORGOTTEN = 1e-9
"""Fraction of the initial state that may remain after the warm-up."""


class LaggedEdge(NamedTuple):
    """An edge from ``source`` to ``target``, ``lag`` time steps later."""

    source: str
    target: str
    lag: int


@final
@dataclass(frozen=True, eq=False)
class AutoregressiveModel:
    """A vector autoregressive model ``x_t = x_t W + Σ_k x_{t-k} A_k + e_t`` with acyclic W.

    Attributes
    ----------
    instantaneous
        The linear model within a time step: graph, weights, noise and its variances.
    lagged
        Weight of each lagged edge.
    """

    instantaneous: LinearModel
    lagged: Mapping[LaggedEdge, float]

    def __post_init__(self) -> None:
        nodes = set(self.instantaneous.dag.nodes)
        for source, target, lag in self.lagged:
            if source not in nodes or target not in nodes:
                raise GraphError(f"Lagged edge {source!r} → {target!r} has an unknown node.")
            if lag < 1:
                raise GraphError(
                    f"Lagged edge {source!r} → {target!r} has lag {lag}; it must be 1 or more."
                )
        object.__setattr__(self, "lagged", MappingProxyType(dict(self.lagged)))

    def __reduce__(self) -> tuple[Any, ...]:
        return AutoregressiveModel, (self.instantaneous, dict(self.lagged))

    @property
    def lags(self) -> int:
        """The largest lag."""
        return max((edge.lag for edge in self.lagged), default=0)

    def lagged_matrices(self) -> Floats:
        """Return the array whose entry ``[k - 1, i, j]`` is the weight of i on j at lag k."""
        dag = self.instantaneous.dag
        matrices = np.zeros((self.lags, len(dag.nodes), len(dag.nodes)))
        for (source, target, lag), weight in self.lagged.items():
            matrices[lag - 1, dag.index(source), dag.index(target)] = weight
        return matrices

    def spectral_radius(self) -> float:
        """Return the spectral radius of the companion matrix; stable models have one below 1."""
        companion = self._companion()
        return float(np.abs(np.linalg.eigvals(companion)).max()) if companion.size else 0.0

    def covariance(self) -> Floats:
        """Return the stationary covariance matrix of a time step."""
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

    def sample(self, n: int, *, realisations: int = 1, seed: int = 0) -> SeriesSimulation:
        """Draw independent stationary series of ``n`` time steps each."""
        if n < 1 or realisations < 1:
            raise DataError(f"n and realisations must be 1 or more; got {n} and {realisations}.")
        radius = self._require_stable()
        lags, names = self.lags, self.instantaneous.dag.nodes
        warm_up = lags + (int(np.ceil(np.log(FORGOTTEN) / np.log(radius))) if radius > 0 else 0)
        steps = warm_up + n
        # Draw all shocks in one call; each realisation has consecutive steps of them.
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
        """Return the lagged effects of the reduced form, including instantaneous paths."""
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
                f"The model is not stable: its spectral radius is {radius:.3f}; it must be below "
                "1. Use smaller lagged weights, or let autoregressive_model() scale them."
            )
        return radius


@final
@dataclass(frozen=True, eq=False)
class SeriesSimulation:
    """Simulated series and the model that generated them.

    Attributes
    ----------
    model
        The model: graph within a time step, lagged edges and weights.
    series
        For each realisation, a mapping from names to arrays.
    """

    model: AutoregressiveModel
    series: tuple[Mapping[str, Floats], ...]

    @property
    def dag(self) -> DAG:
        """The graph within a time step."""
        return self.model.instantaneous.dag

    @property
    def lagged_edges(self) -> tuple[LaggedEdge, ...]:
        """The edges between time steps."""
        return tuple(self.model.lagged)

    def arrays(self) -> tuple[Floats, ...]:
        """Return one array per realisation, with rows for time steps and columns for nodes."""
        return tuple(np.column_stack([one[name] for name in self.dag.nodes]) for one in self.series)

    def table(self, *, realisation: str = "realisation", time: str = "time") -> dict[str, Any]:
        """Return one long table, with columns for the realisation, the time step and the nodes."""
        for key in (realisation, time):
            if key in self.dag.nodes:
                raise DataError(f"{key!r} is the name of a node; choose another key name.")
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
    seed: int = 0,
) -> tuple[LaggedEdge, ...]:
    """Draw random lagged edges.

    Parameters
    ----------
    nodes
        Number of nodes, or their names.
    lags
        Largest lag.
    degree
        Expected number of parents of a node at each lag.
    own_past
        Whether a node may be its own lagged parent.
    seed
        Random seed. The same seed gives the same edges.
    """
    names = node_names(nodes)
    d = len(names)
    candidates = d if own_past else d - 1
    if lags < 1:
        raise GraphError(f"lags must be at least 1; {lags} was given.")
    if not 0 <= degree <= max(candidates, 0):
        raise GraphError(f"degree must be between 0 and {candidates}; {degree} was given.")
    rng = stream(seed, Purpose.LAGGED_GRAPH)
    edges = rng.random((lags, d, d)) < (degree / candidates if candidates > 0 else 0.0)
    if not own_past:
        edges &= ~np.eye(d, dtype=np.bool_)
    return tuple(LaggedEdge(names[i], names[j], int(k) + 1) for k, i, j in np.argwhere(edges))


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
    seed: int = 0,
) -> AutoregressiveModel:
    """Draw the weights of a stable vector autoregressive model.

    Weights at lag k are divided by ``decay ** (k - 1)``. If the spectral radius is then above
    ``largest_radius``, the weights at lag k are multiplied by c^k, which multiplies every
    eigenvalue by c, such that the spectral radius becomes ``largest_radius``.

    Parameters
    ----------
    dag
        Edges within a time step; give a graph without edges for a plain autoregression.
    lagged
        Edges between time steps, for example from `lagged_graph`.
    noise, weights, variances
        As in `linear`, for the equations within a time step.
    lagged_weights
        Distribution of the lagged weights.
    decay
        How fast weights decrease with the lag, at least 1.
    largest_radius
        Maximum spectral radius, strictly between 0 and 1.
    seed
        Random seed. The same seed gives the same model.
    """
    if not 0 < largest_radius < 1:
        raise DataError(f"largest_radius must be between 0 and 1; {largest_radius} was given.")
    if decay < 1:
        raise DataError(f"decay must be at least 1; {decay} was given.")
    edges = tuple(dict.fromkeys(LaggedEdge(*edge) for edge in lagged))
    sizes = lagged_weights.draw(stream(seed, Purpose.LAGGED_WEIGHTS), len(edges)).tolist()
    lagged_by_edge = {e: w / decay ** (e.lag - 1) for e, w in zip(edges, sizes, strict=True)}
    within = linear_model(dag, noise=noise, weights=weights, variances=variances, seed=seed)
    model = AutoregressiveModel(within, lagged_by_edge)
    radius = model.spectral_radius()
    if radius <= largest_radius:
        return model
    scale = largest_radius / radius
    return AutoregressiveModel(within, {e: w * scale**e.lag for e, w in lagged_by_edge.items()})


def autoregressive(
    dag: DAG,
    lagged: Iterable[LaggedEdge | tuple[str, str, int]],
    n: int,
    *,
    realisations: int = 1,
    noise: Noise = Gaussian(),
    largest_radius: float = 0.9,
    seed: int = 0,
) -> SeriesSimulation:
    """Simulate independent series of ``n`` time steps; see `autoregressive_model` for all options.

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
