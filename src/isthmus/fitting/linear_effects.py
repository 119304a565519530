"""Effects of linear Gaussian models, averaged over graphs and over parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from isthmus.graphs import DAG


class _Family(NamedTuple):
    """Posterior of the regression of a node on its parents."""

    mean: NDArray[np.float64]
    root: NDArray[np.float64]  # of the inverse precision, for a residual variance of one
    rate: float  # half the residual sum of squares
    shape: float  # half the degrees of freedom


@final
@dataclass(frozen=True, eq=False)
class LinearEffects:
    """The posterior of the coefficients of a linear Gaussian network, for any graph.

    Under a normal-Wishart prior, that of `BGe`, the coefficients of a node given its residual
    variance are normal and the variance is inverse gamma, independently of those of other nodes.

    Attributes
    ----------
    nodes
        Names of the variables.
    scatter
        Posterior scatter matrix: that of the data plus that of the prior.
    degrees
        Posterior degrees of freedom of the Wishart distribution.
    """

    nodes: tuple[str, ...]
    scatter: NDArray[np.float64]
    degrees: float

    @cached_property
    def _families(self) -> dict[tuple[int, tuple[int, ...]], _Family]:
        return {}

    def mean(self, dag: DAG) -> NDArray[np.float64]:
        """Return the expected total effect ``[cause, effect]`` in one graph.

        Each path has the product of its coefficients as its effect. These belong to different
        nodes and are independent, so the mean of the product is the product of the means.
        """
        d = len(self.nodes)
        weights = np.zeros((d, d))
        for v, parents in enumerate(dag.parent_indices()):
            weights[list(parents), v] = self._family(v, parents).mean
        effects = np.asarray(np.linalg.inv(np.eye(d) - weights), np.float64)
        np.fill_diagonal(effects, 0.0)
        return effects

    def draw(
        self, dags: Sequence[DAG], cause: int, effect: int, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Draw the coefficients once for each graph and return the total effects."""
        return np.array([self._draw(dag, cause, effect, rng) for dag in dags])

    def _draw(self, dag: DAG, cause: int, effect: int, rng: np.random.Generator) -> float:
        name = self.nodes[effect]
        between = set(dag.descendants(self.nodes[cause])) & {*dag.ancestors(name), name}
        if name not in between:
            return 0.0
        moved = {cause: 1.0}
        families = dag.parent_indices()
        for node in dag.topological_order():
            if node not in between:
                continue
            v = dag.index(node)
            coefficients = self._coefficients(v, families[v], rng)
            moved[v] = sum(coefficients[i] * moved.get(p, 0.0) for i, p in enumerate(families[v]))
        return float(moved[effect])

    def _coefficients(
        self, child: int, parents: tuple[int, ...], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        family = self._family(child, parents)
        variance = family.rate / rng.gamma(family.shape)
        noise = rng.standard_normal(len(parents))
        drawn: NDArray[np.float64] = family.mean + np.sqrt(variance) * (family.root @ noise)
        return drawn

    def _family(self, child: int, parents: tuple[int, ...]) -> _Family:
        key = (child, parents)
        if key not in self._families:
            own = list(parents)
            precision = self.scatter[np.ix_(own, own)]
            cross = self.scatter[own, child]
            inverse = np.linalg.inv(precision)
            mean = inverse @ cross
            residual = float(self.scatter[child, child] - cross @ mean)
            shape = 0.5 * (self.degrees - len(self.nodes) + len(own) + 1)
            root = np.linalg.cholesky(inverse) if own else np.zeros((0, 0))
            self._families[key] = _Family(mean, root, 0.5 * max(residual, 0.0), shape)
        return self._families[key]
