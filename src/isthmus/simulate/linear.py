"""Simulate linear structural equation models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, final

import numpy as np

from isthmus.errors import DataError, GraphError
from isthmus.graphs import DAG
from isthmus.simulate.noise import (
    EqualVariances,
    Gaussian,
    Noise,
    UniformWeights,
    Variances,
)
from isthmus.simulate.result import Edge, Purpose, Simulation, stream
from isthmus.types import Floats


@final
@dataclass(frozen=True, eq=False)
class LinearModel:
    """A linear structural equation model ``x_j = Σ_i w_ij x_i + e_j`` with means of zero.

    Attributes
    ----------
    dag
        The graph.
    weights
        Weight of each edge.
    variances
        Noise variance of each node.
    noise
        Distribution of the noise.
    """

    dag: DAG
    weights: Mapping[Edge, float]
    variances: Mapping[str, float]
    noise: Noise = Gaussian()

    def __post_init__(self) -> None:
        if set(self.weights) != set(self.dag.edges):
            raise GraphError("weights must have exactly one entry per edge of the graph.")
        if set(self.variances) != set(self.dag.nodes):
            raise GraphError("variances must have exactly one entry per node of the graph.")
        if not all(v > 0 for v in self.variances.values()):
            raise DataError("Noise variances must be positive.")
        object.__setattr__(self, "weights", MappingProxyType(dict(self.weights)))
        object.__setattr__(self, "variances", MappingProxyType(dict(self.variances)))

    def __reduce__(self) -> tuple[Any, ...]:
        return LinearModel, (self.dag, dict(self.weights), dict(self.variances), self.noise)

    def weight_matrix(self) -> Floats:
        """Return the weights as a matrix ``[from, to]``."""
        matrix = np.zeros((len(self.dag.nodes), len(self.dag.nodes)))
        for (tail, head), weight in self.weights.items():
            matrix[self.dag.index(tail), self.dag.index(head)] = weight
        return matrix

    def covariance(self) -> Floats:
        """Return the covariance matrix of the variables, (I - W)^-T diag(v) (I - W)^-1."""
        paths = np.linalg.inv(np.eye(len(self.dag.nodes)) - self.weight_matrix())
        noise = np.array([self.variances[name] for name in self.dag.nodes])
        covariance: Floats = (paths.T * noise) @ paths
        return covariance

    def internally_standardised(self) -> LinearModel:
        """Return the internally standardised model, in which every variable has variance one.

        This is the linear case of the iSCM of Ormaniec et al. (arXiv 2406.11601) with population
        variances. In topological order, each variable is computed from standardised parents and
        then divided by its standard deviation. The result is again a linear model.
        """
        nodes = self.dag.nodes
        # In topological order, so that the leading block has the correlations computed so far.
        correlation = np.eye(len(nodes))
        place: dict[int, int] = {}
        weights: dict[Edge, float] = {}
        variances: dict[str, float] = {}
        for t, (name, parents, w) in enumerate(_equations(self.dag, self.weights)):
            above = [place[p] for p in parents]
            total = float(w @ correlation[np.ix_(above, above)] @ w) + self.variances[name]
            scaled = w / np.sqrt(total)
            if above:
                correlation[t, :t] = scaled @ correlation[above, :t]
                correlation[:t, t] = correlation[t, :t]
            weights.update(
                {(nodes[p], name): float(v) for p, v in zip(parents, scaled, strict=True)}
            )
            variances[name] = self.variances[name] / total
            place[self.dag.index(name)] = t
        return LinearModel(self.dag, weights, variances, self.noise)

    def sample(self, n: int, *, seed: int = 0) -> Simulation:
        """Draw ``n`` independent rows."""
        if n < 0:
            raise DataError(f"n must be 0 or more; {n} was given.")
        nodes = self.dag.nodes
        rng = stream(seed, Purpose.NOISE)
        columns = np.empty((len(nodes), n))
        for j, name in enumerate(nodes):
            columns[j] = np.sqrt(self.variances[name]) * self.noise.draw(rng, n)
        for name, parents, w in _equations(self.dag, self.weights):
            if parents:
                columns[self.dag.index(name)] += w @ columns[parents]
        return Simulation(self.dag, dict(zip(nodes, columns, strict=True)), self.weights)


def linear_model(
    dag: DAG,
    *,
    noise: Noise = Gaussian(),
    weights: UniformWeights | Mapping[Edge, float] = UniformWeights(),
    variances: Variances | Mapping[str, float] = EqualVariances(),
    internally_standardised: bool = False,
    seed: int = 0,
) -> LinearModel:
    """Draw the weights and variances of a linear model; see `linear` for the parameters."""
    if isinstance(weights, UniformWeights):
        drawn = weights.draw(stream(seed, Purpose.WEIGHTS), len(dag.edges))
        weights = dict(zip(dag.edges, drawn.tolist(), strict=True))
    if isinstance(variances, Variances):
        values = variances.draw(stream(seed, Purpose.VARIANCES), len(dag.nodes))
        variances = dict(zip(dag.nodes, values.tolist(), strict=True))
    model = LinearModel(dag, weights, variances, noise)
    return model.internally_standardised() if internally_standardised else model


def linear(
    dag: DAG,
    n: int,
    *,
    noise: Noise = Gaussian(),
    weights: UniformWeights | Mapping[Edge, float] = UniformWeights(),
    variances: Variances | Mapping[str, float] = EqualVariances(),
    internally_standardised: bool = False,
    seed: int = 0,
) -> Simulation:
    """Simulate data from a linear structural equation model.

    Parameters
    ----------
    dag
        The graph.
    n
        Number of rows.
    noise
        Distribution of the noise: `Gaussian`, `Exponential`, `Gumbel` or `Uniform`, with mean zero.
    weights
        Distribution of the edge weights (by default ±[0.5, 2]), or the weight of each edge.
    variances
        Distribution of the noise variances, `EqualVariances` (by default one) or
        `UnequalVariances`, or the variance of each node.
    internally_standardised
        Scale each variable to variance one as it is simulated, so that neither the variance nor
        the explained fraction of it increases along the order (arXiv 2406.11601).
    seed
        Random seed. The same seed gives the same data. Weights do not depend on ``n``.

    Examples
    --------
    >>> from isthmus import simulate
    >>> dag = simulate.erdos_renyi(5, 6, seed=1)
    >>> simulate.linear(dag, 100, noise=simulate.Gumbel(), seed=1)
    Simulation(n=100, nodes=5, edges=6)
    """
    model = linear_model(
        dag,
        noise=noise,
        weights=weights,
        variances=variances,
        internally_standardised=internally_standardised,
        seed=seed,
    )
    return model.sample(n, seed=seed)


def _equations(dag: DAG, weights: Mapping[Edge, float]) -> list[tuple[str, list[int], Floats]]:
    """Return (node, indices of its parents, their weights) in topological order."""
    parents = dag.parent_indices()
    equations = []
    for name in dag.topological_order():
        above = list(parents[dag.index(name)])
        w = np.array([weights[dag.nodes[p], name] for p in above], dtype=np.float64)
        equations.append((name, above, w))
    return equations
