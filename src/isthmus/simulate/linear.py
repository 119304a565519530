"""Linear structural equations."""

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
from isthmus.simulate.result import Edge, Simulation
from isthmus.simulate.streams import Purpose, stream
from isthmus.types import Floats


@final
@dataclass(frozen=True, eq=False)
class LinearModel:
    """Linear equations x_j = Σ_i w_ij x_i + e_j along a graph, all means zero.

    Attributes
    ----------
    dag
        The graph.
    weights
        One weight for each edge.
    variances
        Noise variance of each node.
    noise
        Shape of the noise.
    """

    dag: DAG
    weights: Mapping[Edge, float]
    variances: Mapping[str, float]
    noise: Noise = Gaussian()

    def __post_init__(self) -> None:
        if set(self.weights) != set(self.dag.edges):
            raise GraphError("Give one weight for each edge of the graph, and none besides.")
        if set(self.variances) != set(self.dag.nodes):
            raise GraphError("Give one noise variance for each node, and none besides.")
        if not all(v > 0 for v in self.variances.values()):
            raise DataError("Noise variances must be positive.")
        object.__setattr__(self, "weights", MappingProxyType(dict(self.weights)))
        object.__setattr__(self, "variances", MappingProxyType(dict(self.variances)))

    def __reduce__(self) -> tuple[Any, ...]:
        return LinearModel, (self.dag, dict(self.weights), dict(self.variances), self.noise)

    def weight_matrix(self) -> Floats:
        """Give the weights as an array, row = from, column = to."""
        matrix = np.zeros((len(self.dag.nodes), len(self.dag.nodes)))
        for (tail, head), weight in self.weights.items():
            matrix[self.dag.index(tail), self.dag.index(head)] = weight
        return matrix

    def covariance(self) -> Floats:
        """Give the covariance of the variables: (I - W)^-T diag(v) (I - W)^-1."""
        paths = np.linalg.inv(np.eye(len(self.dag.nodes)) - self.weight_matrix())
        noise = np.array([self.variances[name] for name in self.dag.nodes])
        covariance: Floats = (paths.T * noise) @ paths
        return covariance

    def internally_standardised(self) -> LinearModel:
        """Give the model in which each variable is scaled to variance one as it is made.

        This is the linear case of the iSCM of Ormaniec et al. (arXiv 2406.11601) with population
        variances: equation j acts on parents that have variance one already, and the sum of its
        weighted parents and its noise is then divided by its own standard deviation. The result
        is again a linear model, with unit variance throughout.
        """
        nodes = self.dag.nodes
        # In a topological order, so that all that is known stands in the leading block.
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

    def sample(self, n: int, *, seed: int) -> Simulation:
        """Draw n independent rows."""
        if n < 0:
            raise DataError(f"n must not be negative; {n} was given.")
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
    seed: int,
) -> LinearModel:
    """Draw weights and variances for a graph; see `linear` for the parameters."""
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
    seed: int,
) -> Simulation:
    """Draw n rows of a linear structural equation model.

    Parameters
    ----------
    dag
        The graph.
    n
        Number of rows.
    noise
        Shape of the noise: `Gaussian`, `Exponential`, `Gumbel` or `Uniform`, mean zero.
    weights
        A law (by default ±[0.5, 2]), or one weight for each edge.
    variances
        A law of the noise variances, `EqualVariances` (by default one) or `UnequalVariances`, or
        one variance for each node.
    internally_standardised
        Scale each variable to variance one as it is made, so that neither variance nor the
        share of it that is explained grows along the order (arXiv 2406.11601).
    seed
        Same seed, same data. Weights do not depend on ``n``.

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
    """Give (node, indices of its parents, their weights) in a topological order."""
    parents = dag.parent_indices()
    equations = []
    for name in dag.topological_order():
        above = list(parents[dag.index(name)])
        w = np.array([weights[dag.nodes[p], name] for p in above], dtype=np.float64)
        equations.append((name, above, w))
    return equations
