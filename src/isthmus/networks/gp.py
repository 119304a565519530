"""Networks whose effects are smooth curves with Gaussian-process posteriors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, final

import numpy as np
from numpy.polynomial.chebyshev import chebvander
from numpy.typing import ArrayLike

from isthmus import hooks
from isthmus.arrays import Floats
from isthmus.errors import GraphError, counted
from isthmus.frames import columns_of
from isthmus.graphs import DAG
from isthmus.networks.columns import (
    Level,
    check_simulations,
    checked_question,
    finite,
    measured,
    number_column,
    number_of_rows,
    refuse_strangers,
)
from isthmus.networks.conditionals import Columns, Conditional, NormalConditional
from isthmus.networks.distributions import NormalMixture
from isthmus.networks.mixed_queries import MixedQuery, predict_rows


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
        weights = self._polynomials(x)
        mean = weights @ self.mean
        variance = np.einsum("ij,jk,ik->i", weights, self.covariance, weights)
        half = 1.959963984540054 * np.sqrt(np.maximum(variance, 0.0))
        return Curve(x, mean, mean - half, mean + half)

    def means_at(self, values: Floats) -> Floats:
        """Evaluate the curve without its band (`at`), which takes less time."""
        means: Floats = self._polynomials(values) @ self.mean
        return means

    def _polynomials(self, x: Floats) -> Floats:
        inside = np.clip((x - self.centre) / (self.radius * self.scale), -1.0, 1.0)
        found: Floats = chebvander(inside, len(self.mean) - 1) - self.average
        return found


@final
@dataclass(frozen=True, eq=False)
class AdditiveCurves(NormalConditional):
    """A node of a `GPNetwork`, with the curves of its parents at their posterior means."""

    effects: Mapping[str, Effect]
    intercept: float
    noise: float
    levels: tuple[Level, ...] = ()

    @property
    def parents(self) -> tuple[str, ...]:
        return tuple(self.effects)

    @property
    def parameters(self) -> int:
        return 2 + sum(len(effect.mean) for effect in self.effects.values())

    def mean(self, columns: Columns, n: int) -> Floats:
        total = np.full(n, self.intercept)
        for parent, effect in self.effects.items():
            total += effect.means_at(columns[parent])
        return total

    def variance(self, columns: Columns, n: int) -> Floats:
        return np.full(n, self.noise**2)


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

    def query(
        self,
        targets: str | Iterable[str],
        evidence: Mapping[str, float | tuple[float, float]] | None = None,
        do: Mapping[str, float] | None = None,
        *,
        simulations: int = 100_000,
        seed: int = 0,
    ) -> NormalMixture:
        """Return the joint distribution of some nodes, given observations and interventions.

        It is simulated by likelihood weighting with the posterior means of the curves, and the
        answer's `error` is its simulation error. The uncertainty of the curves is not included.

        Parameters
        ----------
        targets
            One or more nodes.
        evidence
            Values of other nodes that are observed, or pairs of a measured value and the standard
            deviation of its error.
        do
            Values to which nodes are set by an intervention.
        simulations
            Number of draws.
        seed
            Random seed. The same seed gives the same answer.
        """
        check_simulations(simulations)
        asked, seen, forced = checked_question(self.dag, targets, evidence, do)
        told = {v: measured(v, value) for v, value in seen.items()}
        values = {v: value for v, (value, error) in told.items() if error == 0}
        uncertain = {v: pair for v, pair in told.items() if v not in values}
        settings = {v: finite(x, f"The value of {v!r}") for v, x in forced.items()}
        question = MixedQuery(
            self.dag, self._conditionals, asked, values, settings, measured=uncertain
        )
        answer = question.simulated(simulations, seed)
        assert isinstance(answer, NormalMixture)
        return answer

    def predict(
        self,
        data: Any,
        target: str,
        *,
        simulations: int = 10_000,
        seed: int = 0,
    ) -> Any:
        """Return the expected value of a node for each row, given the available columns.

        The curves are at their posterior means. `noises` has the standard deviations around them,
        `curve` their bands, and `query` the simulation error of a row.

        Parameters
        ----------
        data
            A table, or a mapping of names to columns. Nodes without a column, and cells without a
            value (None or NaN), are unknown and integrated out. A column of the target is ignored.
        target
            Name of a node.
        simulations
            Number of draws for each row that lacks a value of the Markov blanket of the target.
        seed
            Random seed of the simulations.

        Returns
        -------
        array or series
            For a table of pandas, Polars or PyArrow, a series of the same kind with the same index.
        """
        self.dag.index(target)
        check_simulations(simulations)
        data, labelled = columns_of(data)
        refuse_strangers(self.dag, data, target)
        names = [v for v in self.dag.nodes if v in data and v != target]
        columns = {v: number_column(v, data[v]) for v in names}
        n = number_of_rows(data, names)
        found = predict_rows(self.dag, self._conditionals, columns, target, n, simulations, seed)
        return labelled(found, (target,))

    @cached_property
    def _conditionals(self) -> dict[str, Conditional]:
        return {
            v: AdditiveCurves(
                {p: self.effects[p, v] for p in self.dag.parents(v)}, self.means[v], self.noises[v]
            )
            for v in self.dag.nodes
        }

    def _repr_html_(self) -> str | None:
        return hooks.notebook_drawing(self.dag, repr(self))

    def __repr__(self) -> str:
        nodes, edges = counted(len(self.dag.nodes), "node"), counted(len(self.dag.edges), "edge")
        return f"GPNetwork({nodes}, {edges})"
