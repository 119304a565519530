"""Effects of linear Gaussian models, averaged over graphs and over parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from isthmus.graphs import DAG
from isthmus.models.least_squares import RANK, spectrum


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
        Scatter matrix of the data plus that of the prior.
    degrees
        Posterior degrees of freedom of the Wishart distribution.
    shift
        If the mean of the prior is not that of the data, the root of what their distance adds to
        the scatter: ``scatter + outer(shift, shift)`` is the posterior scatter matrix. It is kept
        apart because the sum would lose the scatter if the distance is large.
    """

    nodes: tuple[str, ...]
    scatter: NDArray[np.float64]
    degrees: float
    shift: NDArray[np.float64] | None = None

    @cached_property
    def _families(self) -> dict[tuple[int, tuple[int, ...]], _Family]:
        return {}

    def mean(self, dag: DAG) -> NDArray[np.float64]:
        """Return the expected total effect ``[cause, effect]`` in one graph.

        Each path has the product of its coefficients as its effect. These belong to different
        nodes and are independent, so the mean of the product is the product of the means.
        """
        return self._total(dag, lambda v, parents: self._family(v, parents).mean)

    def draw_all(self, dag: DAG, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw the coefficients of one graph and return all total effects ``[cause, effect]``."""
        return self._total(dag, lambda v, parents: self._coefficients(v, parents, rng))

    def _total(
        self, dag: DAG, coefficients: Callable[[int, tuple[int, ...]], NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        """Return the sums over all paths of the products of coefficients."""
        effects = np.eye(len(self.nodes))
        families = dag.parent_indices()
        for node in dag.topological_order():
            v = dag.index(node)
            effects[:, v] += effects[:, list(families[v])] @ coefficients(v, families[v])
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
            self._families[key] = self._regression(child, list(parents))
        return self._families[key]

    def _regression(self, child: int, own: list[int]) -> _Family:
        parts = spectrum(self.scatter[np.ix_(own, own)])
        # The prior makes every direction a proper one, if only just: coefficients of collinear
        # parents are very uncertain, not zero.
        values = np.where(parts.free, parts.values, RANK)
        root = parts.vectors / np.sqrt(values) / parts.spread[:, None]
        pull = root.T @ self.scatter[own, child]
        mean = root @ pull
        residual = max(float(self.scatter[child, child] - pull @ pull), 0.0)
        shape = 0.5 * (self.degrees - len(self.nodes) + len(own) + 1)
        if self.shift is not None:
            # One more row at `shift`: the update of a regression by a single observation.
            row = root.T @ self.shift[own]
            length = float(row @ row)
            surprise = float(self.shift[child] - self.shift[own] @ mean)
            mean = mean + root @ row * (surprise / (1.0 + length))
            residual += surprise**2 / (1.0 + length)
            if length > 0.0:
                shrink = (1.0 - 1.0 / np.sqrt(1.0 + length)) / length
                root = root - np.outer(root @ row, shrink * row)
        return _Family(mean, root, 0.5 * residual, shape)
