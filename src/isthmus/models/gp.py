"""Networks whose effects are smooth curves with Gaussian-process posteriors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, final

import numpy as np
from numpy.polynomial.chebyshev import chebvander
from numpy.typing import ArrayLike

from isthmus import hooks
from isthmus.errors import GraphError, SchemaError
from isthmus.graphs import DAG
from isthmus.models.columns import number_column
from isthmus.plurals import counted
from isthmus.types import Floats


@final
@dataclass(frozen=True, eq=False)
class Curve:
    """The effect of a parent on its child, with a 95% band.

    Attributes
    ----------
    at
        Values of the parent.
    mean, lower, upper
        Posterior mean of the effect there, and a pointwise band that contains it with a
        probability of 95%, in units of the child. The average of the effect over the data is zero.
    """

    at: Floats
    mean: Floats
    lower: Floats
    upper: Floats


@final
@dataclass(frozen=True, eq=False)
class Effect:
    """Posterior of the effect of one parent, as coefficients of Chebyshev polynomials.

    Attributes
    ----------
    centre, scale
        Mean and standard deviation of the parent.
    radius
        Interval of the polynomials around the mean, in standard deviations; further out the curve
        is constant.
    mean, covariance
        Posterior of the coefficients of the polynomials of degree 0 upwards, in units of the child.
    average
        Averages of these polynomials over the data.
    length_scale
        Posterior mean of the length scale, in units of the parent: the larger, the straighter.
    """

    centre: float
    scale: float
    radius: float
    mean: Floats
    covariance: Floats
    average: Floats
    length_scale: float

    def at(self, values: ArrayLike) -> Curve:
        """Evaluate the curve and its 95% band at values of the parent."""
        x = np.atleast_1d(np.asarray(values, dtype=np.float64))
        inside = np.clip((x - self.centre) / (self.radius * self.scale), -1.0, 1.0)
        weights = chebvander(inside, len(self.mean) - 1) - self.average
        mean = weights @ self.mean
        variance = np.einsum("ij,jk,ik->i", weights, self.covariance, weights)
        half = 1.959963984540054 * np.sqrt(np.maximum(variance, 0.0))
        return Curve(x, mean, mean - half, mean + half)


@final
@dataclass(frozen=True, eq=False, repr=False)
class GPNetwork:
    """A network in which each node is a sum of smooth curves of its parents plus normal noise.

    `isthmus.plots.plot_curves` draws the curves.

    Attributes
    ----------
    dag
        The graph.
    means
        Mean of each node.
    noises
        Posterior mean of the standard deviation of the noise of each node.
    effects
        The effect of each edge, by parent and child.
    """

    dag: DAG
    means: Mapping[str, float]
    noises: Mapping[str, float]
    effects: Mapping[tuple[str, str], Effect]

    def __post_init__(self) -> None:
        for name in ("means", "noises", "effects"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def __reduce__(self) -> tuple[Any, ...]:
        return GPNetwork, (self.dag, dict(self.means), dict(self.noises), dict(self.effects))

    def curve(self, parent: str, child: str, at: ArrayLike | None = None) -> Curve:
        """Return the effect of a parent on its child, with a 95% band.

        Parameters
        ----------
        parent, child
            An edge of the graph.
        at
            Values of the parent; by default 101 values up to 2.5 standard deviations from its mean.
        """
        effect = self.effects.get((parent, child))
        if effect is None:
            raise GraphError(
                f"{parent!r} → {child!r} is not an edge of the network. "
                f"Its edges are {list(self.dag.edges)[:10]}."
            )
        if at is None:
            reach = min(2.5, effect.radius) * effect.scale
            at = np.linspace(effect.centre - reach, effect.centre + reach, 101)
        return effect.at(at)

    def predict(self, data: Mapping[str, ArrayLike]) -> dict[str, Floats]:
        """Return the posterior mean of each node given the values of its parents, row by row.

        `noises` has the standard deviations around it, and `curve` the bands of its terms.
        """
        missing = [v for v in self.dag.nodes if v not in data]
        if missing:
            raise SchemaError(f"The data lack the columns {missing[:10]} of the network.")
        columns = {v: number_column(v, data[v]) for v in self.dag.nodes}
        predicted = {}
        for child in self.dag.nodes:
            total = np.full(len(columns[child]), self.means[child])
            for parent in self.dag.parents(child):
                total += self.effects[parent, child].at(columns[parent]).mean
            predicted[child] = total
        return predicted

    def _repr_html_(self) -> str | None:
        return hooks.notebook_drawing(self.dag, repr(self))

    def __repr__(self) -> str:
        nodes, edges = counted(len(self.dag.nodes), "node"), counted(len(self.dag.edges), "edge")
        return f"GPNetwork({nodes}, {edges})"
