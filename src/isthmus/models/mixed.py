"""Bayesian networks of discrete and continuous variables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, final, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isthmus import hooks
from isthmus.errors import ArgumentError, MismatchError, SchemaError
from isthmus.graphs import CPDAG, DAG, PDAG
from isthmus.graphs.names import listed
from isthmus.models.columns import (
    Level,
    check_keys,
    check_size,
    common_length,
    encode_column,
    label_array,
    number_column,
)
from isthmus.models.conditionals import Conditional, ConditionalGaussian
from isthmus.models.discrete_queries import code_of
from isthmus.models.distributions import NormalMixture, Probabilities
from isthmus.models.equivalence import check_class, members_to_ask, reason_for_range
from isthmus.models.mixed_prediction import conditional_mean, level_probabilities
from isthmus.models.mixed_queries import MixedQuery
from isthmus.models.questions import checked_question, finite
from isthmus.models.ranges import MeanRange, ProbabilityRange
from isthmus.plurals import counted
from isthmus.types import Floats


@final
@dataclass(frozen=True, eq=False, repr=False)
class MixedNetwork:
    """A network of discrete and continuous variables.

    Parameters
    ----------
    dag
        The graph.
    conditionals
        The distribution of each node given its parents: `ProbabilityTable`, `ConditionalGaussian`
        or `MultinomialLogit`.
    cpdag
        The equivalence class that was learned, of which `dag` is an arbitrary member. None if the
        graph is causal by assumption.

    Raises
    ------
    SchemaError
        If graph and distributions do not match.
    """

    dag: DAG
    conditionals: Mapping[str, Conditional]
    cpdag: CPDAG | PDAG | None = None

    def __post_init__(self) -> None:
        check_class(self.dag, self.cpdag)
        check_keys(self.dag, self.conditionals, "conditionals")
        for name in self.dag.nodes:
            given, expected = self.conditionals[name].parents, self.dag.parents(name)
            if set(given) != set(expected):
                raise SchemaError(
                    f"Node {name!r} has the parents {listed(expected)}, but its distribution has "
                    f"{listed(given)}."
                )
        ordered = {name: self.conditionals[name] for name in self.dag.nodes}
        object.__setattr__(self, "conditionals", MappingProxyType(ordered))

    def __reduce__(self) -> tuple[Any, ...]:
        return MixedNetwork, (self.dag, dict(self.conditionals), self.cpdag)

    @property
    def levels(self) -> dict[str, tuple[Level, ...]]:
        """The values of each discrete node."""
        return {name: own.levels for name, own in self.conditionals.items() if own.levels}

    @property
    def parameters(self) -> int:
        """Number of free parameters."""
        return sum(own.parameters for own in self.conditionals.values())

    def sample(self, n: int, *, seed: int = 0) -> dict[str, NDArray[Any]]:
        """Draw rows from the joint distribution.

        Parameters
        ----------
        n
            Number of rows.
        seed
            Random seed. The same seed gives the same rows.

        Returns
        -------
        dict
            For each node, in the order of ``dag.nodes``, an array of levels or numbers.
        """
        n, rng = check_size(n), np.random.default_rng(seed)
        columns: dict[str, NDArray[Any]] = {}
        for name in self.dag.topological_order():
            columns[name] = self.conditionals[name].draw(columns, n, rng)
        levels = self.levels
        return {
            name: label_array(levels[name])[columns[name]] if name in levels else columns[name]
            for name in self.dag.nodes
        }

    def log_likelihood(self, data: Mapping[str, ArrayLike]) -> float:
        """Return the log-likelihood of rows, given as columns of levels and numbers."""
        return float(self.log_densities(data).sum())

    def log_densities(self, data: Mapping[str, ArrayLike]) -> NDArray[np.float64]:
        """Return the log-density of each row, given as columns of levels and numbers."""
        columns = self._columns(data)
        total = np.zeros(common_length(columns))
        for name, own in self.conditionals.items():
            total += own.log_density(columns[name], columns)
        return total

    @overload
    def query(
        self,
        targets: str | Iterable[str],
        evidence: Mapping[str, Level | float] | None = None,
        do: None = None,
        *,
        simulations: int = 100_000,
        seed: int = 0,
    ) -> Probabilities | NormalMixture: ...
    @overload
    def query(
        self,
        targets: str | Iterable[str],
        evidence: Mapping[str, Level | float] | None = None,
        do: Mapping[str, Level | float] | None = None,
        *,
        simulations: int = 100_000,
        seed: int = 0,
    ) -> Probabilities | NormalMixture | ProbabilityRange | MeanRange: ...
    def query(
        self,
        targets: str | Iterable[str],
        evidence: Mapping[str, Level | float] | None = None,
        do: Mapping[str, Level | float] | None = None,
        *,
        simulations: int = 100_000,
        seed: int = 0,
    ) -> Probabilities | NormalMixture | ProbabilityRange | MeanRange:
        """Return the joint distribution of some nodes, given observations and interventions.

        The answer is exact if the discrete variables on which it depends have at most 10,000
        unknown configurations, and none of them has a continuous parent of unknown value.
        Otherwise it is simulated by likelihood weighting, and the answer's `error` is its
        simulation error. The sampling error of fitted parameters is not included.

        Parameters
        ----------
        targets
            One or more nodes, all discrete or all continuous.
        evidence
            Levels and values of other nodes that are observed.
        do
            Levels and values to which nodes are set by an intervention, which removes the
            influence of their usual causes. The answer is valid in the real world only if the
            graph is causal.
        simulations
            Number of draws if the answer is simulated.
        seed
            Random seed. The same seed gives the same answer.

        Returns
        -------
        Probabilities or NormalMixture
            For discrete or for continuous targets. `ProbabilityRange` or `MeanRange`, without
            bounds, if equivalent graphs give different answers to an intervention.

        Raises
        ------
        DataError
            If the evidence has probability zero, or is too improbable for the number of draws.
        """
        if (
            isinstance(simulations, bool)
            or not isinstance(simulations, int | np.integer)
            or simulations < 1
        ):
            raise ArgumentError(f"draws is {simulations!r}; it must be an integer of at least 1.")
        asked, seen, forced = checked_question(self.dag, targets, evidence, do)
        values, settings = self._coded(seen), self._coded(forced)
        if len(members_to_ask(self.dag, self.cpdag, forced, (*asked, *seen))) != 1:
            return self._unidentified(asked, forced)
        question = MixedQuery(self.dag, self.conditionals, asked, values, settings)
        answer = question.exact()
        return question.simulated(simulations, seed) if answer is None else answer

    def _unidentified(
        self, asked: tuple[str, ...], forced: Collection[str]
    ) -> ProbabilityRange | MeanRange:
        """Return an answer without bounds: conditionals along other graphs have no closed form."""
        levels = self.levels
        reason = reason_for_range(forced, 0, ", which a mixed network does not support")
        if asked[0] in levels:
            return ProbabilityRange({v: levels[v] for v in asked}, (), reason)
        return MeanRange(asked, (), reason)

    def _coded(self, given: Mapping[str, Any]) -> dict[str, float]:
        """Return levels as codes, and checked numbers."""
        levels = self.levels
        return {
            name: code_of(name, levels[name], value)
            if name in levels
            else finite(value, f"The value of {name!r}")
            for name, value in given.items()
        }

    def predict_probabilities(self, data: Mapping[str, ArrayLike], target: str) -> Floats:
        """Return the distribution of a discrete node for each row, given its Markov blanket.

        The sampling error of fitted parameters is not included.

        Parameters
        ----------
        data
            Columns of levels and numbers, with those of the Markov blanket of the target.
        target
            Name of a discrete node.

        Returns
        -------
        array
            Probabilities, one row per row and one column per level.

        Raises
        ------
        DataError
            If the evidence in a row has probability zero.
        """
        self.dag.index(target)
        if target not in self.levels:
            raise MismatchError(f"{target!r} is continuous; predict() gives its expected value.")
        columns, n = self._blanket(data, target)
        return level_probabilities(self.dag, self.conditionals, columns, target, n)

    def predict(self, data: Mapping[str, ArrayLike], target: str) -> NDArray[Any]:
        """Return the most probable level, or the expected value, of a node for each row.

        `predict_probabilities` and `query` return the distribution around it.
        The sampling error of fitted parameters is not included.

        Parameters
        ----------
        data
            Columns of levels and numbers, with those of the Markov blanket of the target.
        target
            Name of a node.
        """
        self.dag.index(target)
        if target in self.levels:
            likely = self.predict_probabilities(data, target).argmax(axis=1)
            found: NDArray[Any] = label_array(self.levels[target])[likely]
            return found
        columns, n = self._blanket(data, target)
        return conditional_mean(self.dag, self.conditionals, columns, target, n)

    def _blanket(
        self, data: Mapping[str, ArrayLike], target: str
    ) -> tuple[dict[str, NDArray[Any]], int]:
        """Return the columns of the Markov blanket, and the number of rows."""
        blanket = self.dag.markov_blanket(target)
        missing = [v for v in blanket if v not in data]
        if missing:
            raise SchemaError(
                f"To predict {target!r}, the columns of its Markov blanket are needed; the data "
                f"lack {listed(missing)}. Leave rows with unknown values out, or ask query()."
            )
        given = {v: data[v] for v in blanket}
        n = common_length({k: np.asarray(v) for k, v in (given or data).items()})
        return self._columns(given, blanket), n

    def _columns(
        self, data: Mapping[str, ArrayLike], nodes: Sequence[str] | None = None
    ) -> dict[str, NDArray[Any]]:
        if nodes is None:
            check_keys(self.dag, data, "data", extra=True)
            nodes = self.dag.nodes
        levels = self.levels
        columns: dict[str, NDArray[Any]] = {}
        for name in nodes:
            if name in levels:
                columns[name] = encode_column(name, levels[name], data[name])
            else:
                columns[name] = number_column(name, data[name])
        return columns

    def reorder(self, nodes: Sequence[str]) -> MixedNetwork:
        """Return the same network with its nodes in another order."""
        cpdag = None if self.cpdag is None else self.cpdag.reorder(nodes)
        return MixedNetwork(self.dag.reorder(nodes), self.conditionals, cpdag)

    def _repr_html_(self) -> str | None:
        return hooks.notebook_drawing(self.dag, repr(self))

    def __repr__(self) -> str:
        continuous = sum(isinstance(c, ConditionalGaussian) for c in self.conditionals.values())
        return (
            f"MixedNetwork({counted(len(self.dag.nodes), 'node')}, "
            f"{continuous} of them continuous, "
            f"{counted(len(self.dag.edges), 'edge')}, {counted(self.parameters, 'parameter')})"
        )
