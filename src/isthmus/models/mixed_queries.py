"""Queries of mixed networks: exact where closed forms exist, simulated otherwise.

Given the discrete variables, the continuous ones are jointly normal. If the configurations of the
discrete variables can be enumerated, the answer is a finite mixture and exact. A discrete node
whose continuous parents are unknown has no such form: then rows are drawn and weighted by the
likelihood of the evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import ArgumentError, DataError
from isthmus.graphs import DAG
from isthmus.models.column_maps import NetworkMaps
from isthmus.models.columns import Level
from isthmus.models.conditionals import (
    Conditional,
    ConditionalGaussian,
    Hurdle,
    MultinomialLogit,
    ProbabilityTable,
    configuration,
)
from isthmus.models.curved import CurvedGaussian, CurvedLogit
from isthmus.models.distributions import NormalMixture, Probabilities, centre, in_units
from isthmus.models.least_squares import spectrum
from isthmus.models.questions import check_joint_size, impossible
from isthmus.models.sampling_error import drawn_conditionals
from isthmus.types import Floats

MOST_CONFIGURATIONS = 10_000
"""Maximum number of configurations of unknown discrete variables to enumerate."""
_CELLS = 2_000_000
"""Numbers in the covariance matrices of one batch of configurations: 16 MB."""
_FEWER, _FEWEST = 20, 5000
"""A simulated answer has that share of its simulations for each draw of the parameters, but at
least `_FEWEST`."""
_LEAST_EFFECTIVE = 100
"""Effective draws below which the standard error itself cannot be trusted."""


@final
@dataclass(frozen=True)
class MixedQuery:
    """A question to a mixed network, checked.

    Attributes
    ----------
    dag
        The graph.
    conditionals
        The distribution of each node.
    targets
        The nodes that are asked for: all discrete or all continuous.
    evidence, do
        Codes of discrete nodes and values of continuous ones that are seen, or set from outside.
    likelihoods
        Likelihoods of the levels of discrete nodes that are seen with uncertainty.
    measured
        Continuous nodes that are seen with uncertainty: value, and standard deviation of its error.
    """

    dag: DAG
    conditionals: Mapping[str, Conditional]
    targets: tuple[str, ...]
    evidence: Mapping[str, float]
    do: Mapping[str, float]
    likelihoods: Mapping[str, Floats] = field(default_factory=dict)
    measured: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        discrete = [v for v in self.targets if self._is_discrete(v)]
        if discrete and len(discrete) < len(self.targets):
            continuous = [v for v in self.targets if v not in discrete]
            raise ArgumentError(
                f"The targets {discrete} are discrete and {continuous} are continuous. Ask for "
                "them separately; to relate them, put levels of the discrete ones into evidence."
            )

    def answer(self, simulations: int, seed: int) -> Probabilities | NormalMixture:
        """Return the exact answer, or a simulated one if there is none."""
        check_joint_size([len(self.conditionals[v].levels) or 1 for v in self.targets])
        exact = self.exact()
        return self.simulated(simulations, seed) if exact is None else exact

    def exact(self) -> Probabilities | NormalMixture | None:
        """Return the answer in closed form, or None if there is none of acceptable size."""
        nodes = self.relevant()
        known = {**self.evidence, **self.do}
        for name in nodes:
            own = self.conditionals[name]
            if name in self.do or isinstance(own, ProbabilityTable | ConditionalGaussian):
                continue
            curved = isinstance(own, MultinomialLogit | CurvedGaussian | CurvedLogit)
            closed = curved or self._is_factor(name)
            if not closed or not all(p in known for p in own.parents if not self._is_discrete(p)):
                return None
        hidden = [v for v in nodes if self._is_discrete(v) and v not in known]
        sizes = [len(self.conditionals[v].levels) for v in hidden]
        if prod(sizes) > MOST_CONFIGURATIONS:
            return None
        parts = list(self._mixture(nodes, hidden, sizes))
        logs = np.concatenate([part[0] for part in parts])
        if np.isneginf(logs.max()):
            raise impossible()
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        if not self._is_discrete(self.targets[0]):
            possible = weights > 0
            means, covariances = (np.concatenate([part[i] for part in parts]) for i in (1, 2))
            return NormalMixture(
                self.targets, weights[possible], means[possible], covariances[possible]
            )
        table = weights.reshape(sizes)
        table = table.sum(axis=tuple(i for i, v in enumerate(hidden) if v not in self.targets))
        order = [v for v in hidden if v in self.targets]
        return Probabilities(
            self._target_levels(), table.transpose([order.index(v) for v in self.targets])
        )

    def given(self, levels: Mapping[str, float]) -> MixedQuery:
        """Return the same question with more evidence."""
        return replace(self, evidence={**self.evidence, **levels})

    def log_weight(self, draws: int, seed: int) -> float:
        """Return the logarithm of the mean likelihood of the evidence in simulated rows."""
        _, logs = self._weighted(draws, seed)
        highest = float(logs.max())
        if np.isneginf(highest):
            return highest
        return highest + float(np.log(np.exp(logs - highest).mean()))

    def drawn(self, draws: int, seed: int) -> tuple[dict[str, NDArray[Any]], Floats]:
        """Return simulated rows, and their weights by the likelihood of the evidence."""
        columns, logs = self._weighted(draws, seed)
        if np.isneginf(logs.max()):
            raise TooImprobableError(
                f"The evidence has probability zero in this network, or is too improbable for "
                f"{draws:,} simulations. Raise simulations."
            )
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        effective = 1 / float(weights @ weights)
        if effective < _LEAST_EFFECTIVE:
            raise TooImprobableError(
                f"The evidence is so improbable that {draws:,} simulations have an effective "
                f"sample size of only {effective:.0f}; at least {_LEAST_EFFECTIVE} are needed. "
                "Raise simulations, or leave evidence out."
            )
        return columns, weights

    def _weighted(self, draws: int, seed: int) -> tuple[dict[str, NDArray[Any]], Floats]:
        rng = np.random.default_rng(seed)
        columns: dict[str, NDArray[Any]] = {}
        logs = np.zeros(draws)
        for name in self.relevant():
            own = self.conditionals[name]
            if name in self.do:
                columns[name] = np.full(draws, self.do[name])
            elif name in self.evidence:
                columns[name] = np.full(draws, self.evidence[name])
                logs += own.log_density(columns[name], columns)
            else:
                columns[name] = own.draw(columns, draws, rng)
            logs += self._uncertain(name, columns)
        return columns, logs

    def simulated(self, draws: int, seed: int) -> Probabilities | NormalMixture:
        """Return the answer by likelihood weighting, with its simulation error."""
        columns, weights = self.drawn(draws, seed)
        if not self._is_discrete(self.targets[0]):
            means = np.stack([columns[v] for v in self.targets], axis=1)
            size = len(self.targets)
            none = np.broadcast_to(np.zeros((size, size)), (draws, size, size))
            return NormalMixture(self.targets, weights, means, none, simulated=True)
        levels = self._target_levels()
        shape = tuple(len(own) for own in levels.values())
        place = configuration(columns, self.targets, shape, draws)
        values, squares = np.zeros(shape), np.zeros(shape)
        np.add.at(values.reshape(-1), place, weights)
        np.add.at(squares.reshape(-1), place, weights**2)
        return Probabilities(levels, values, squares)

    def _uncertain(self, name: str, columns: Mapping[str, NDArray[Any]]) -> Floats | float:
        """Return the log-likelihood of an uncertain observation of a node, if there is one."""
        if name in self.likelihoods:
            with np.errstate(divide="ignore"):
                return np.log(self.likelihoods[name])[columns[name].astype(np.intp)]
        if name in self.measured:
            value, error = self.measured[name]
            surprise: Floats = -0.5 * ((value - columns[name]) / error) ** 2
            return surprise
        return 0.0

    def _is_discrete(self, name: str) -> bool:
        return bool(self.conditionals[name].levels)

    def _is_factor(self, name: str) -> bool:
        """Whether a number is seen whose distribution is not normal: its density is a weight."""
        return isinstance(self.conditionals[name], Hurdle) and name in self.evidence

    def _target_levels(self) -> dict[str, tuple[Level, ...]]:
        return {v: self.conditionals[v].levels for v in self.targets}

    def relevant(self) -> tuple[str, ...]:
        """Return targets, evidence and their ancestors after the intervention, parents first."""
        relevant: set[str] = set()
        stack = [*self.targets, *self.evidence, *self.likelihoods, *self.measured]
        while stack:
            name = stack.pop()
            if name not in relevant:
                relevant.add(name)
                stack += () if name in self.do else self.dag.parents(name)
        return tuple(v for v in self.dag.topological_order() if v in relevant)

    def _mixture(
        self, nodes: tuple[str, ...], hidden: list[str], sizes: list[int]
    ) -> Iterator[tuple[Floats, Floats, Floats]]:
        """Yield the weights' logarithms and the targets' moments of batches of configurations."""
        known = {**self.evidence, **self.do}
        continuous = [v for v in nodes if not self._is_discrete(v)]
        count = prod(sizes)
        step = max(_CELLS // max(len(continuous) ** 2, 1), 1)
        for start in range(0, count, step):
            place = np.arange(start, min(start + step, count))
            columns: dict[str, NDArray[Any]] = {v: np.full(len(place), x) for v, x in known.items()}
            columns.update(
                zip(hidden, np.unravel_index(place, sizes), strict=True) if sizes else ()
            )
            logs = np.zeros(len(place))
            for name in nodes:
                if (self._is_discrete(name) or self._is_factor(name)) and name not in self.do:
                    logs += self.conditionals[name].log_density(columns[name], columns)
                    logs += self._uncertain(name, columns)
            mean, covariance = self._moments(continuous, columns, len(place))
            asked = [continuous.index(v) for v in self.targets if v in continuous]
            values = {v: (x, 0.0) for v, x in self.evidence.items()} | dict(self.measured)
            seen = [i for i, v in enumerate(continuous) if v in values and not self._is_factor(v)]
            if seen:
                told = np.array([values[continuous[i]] for i in seen])
                possible = ~np.isneginf(logs)
                more, mean, covariance = _conditioned(mean, covariance, asked, seen, told, possible)
                yield logs + more, mean, covariance
            else:
                yield logs, mean[:, asked], covariance[:, asked][:, :, asked]

    def _moments(
        self, continuous: list[str], columns: Mapping[str, NDArray[Any]], n: int
    ) -> tuple[Floats, Floats]:
        """Return means and covariances of the continuous nodes for each configuration."""
        size = len(continuous)
        mean, noise = np.zeros((n, size)), np.zeros((n, size))
        # Entry [configuration, u, v] is the total effect of the noise of node u on node v.
        effect = np.zeros((n, size, size))
        for v, name in enumerate(continuous):
            if name in self.do or self._is_factor(name):
                mean[:, v] = self.do[name] if name in self.do else self.evidence[name]
                continue
            own = self.conditionals[name]
            if isinstance(own, CurvedGaussian):  # its parents are known
                mean[:, v], noise[:, v] = own.mean(columns, n), own.variance(columns, n)
                effect[:, v, v] = 1.0
                continue
            assert isinstance(own, ConditionalGaussian)
            place = configuration(columns, own.discrete, own.intercepts.shape, n)
            slopes = own.coefficients.reshape(own.intercepts.size, len(own.continuous))[place]
            mean[:, v] = own.intercepts.ravel()[place]
            noise[:, v] = own.variances.ravel()[place]
            effect[:, v, v] = 1.0
            for j, parent in enumerate(own.continuous):
                p = continuous.index(parent)
                mean[:, v] += slopes[:, j] * mean[:, p]
                effect[:, :, v] += slopes[:, j, None] * effect[:, :, p]
        return mean, np.matmul(effect.transpose(0, 2, 1), noise[:, :, None] * effect)


def redrawn(question: MixedQuery, maps: NetworkMaps, simulations: int, seed: int) -> Floats:
    """Return the probabilities, means or medians of an answer for draws of the parameters."""

    def ask(conditionals: Mapping[str, Conditional], simulations: int) -> Floats:
        answer = replace(question, conditionals=conditionals).answer(simulations, seed)
        return centre(answer if isinstance(answer, Probabilities) else in_units(answer, maps))

    few = max(simulations // _FEWER, min(simulations, _FEWEST))
    order, own = question.dag.topological_order(), question.conditionals
    drawn = np.array([ask(each, few) for each in drawn_conditionals(own, order)])
    if question.exact() is not None:
        return drawn
    # The same random numbers in all draws: what they have in common is simulation error.
    shifted: Floats = drawn + ask(own, simulations) - ask(own, few)
    return shifted


def _conditioned(
    mean: Floats,
    covariance: Floats,
    asked: list[int],
    seen: list[int],
    told: Floats,
    possible: NDArray[np.bool_],
) -> tuple[Floats, Floats, Floats]:
    """Return the log-density of what is seen and the moments of what is asked, per configuration.

    `told` has the values that are seen, and the standard deviations of their errors.
    Configurations that are not possible may have no density.
    """
    values, errors = told.T
    spread, eigenvalues, vectors, free = spectrum(
        covariance[:, seen][:, :, seen] + np.diag(errors**2)
    )
    across = covariance[:, asked][:, :, seen]
    if not free[possible].all():
        raise DataError(
            "Some of the continuous evidence is determined by other variables, without noise, so "
            "it has no density. Leave it out, or fit the network with a larger pseudo_count."
        )
    # Columns of `whitening` turn the evidence into independent variables of variance one.
    whitening = vectors / spread[:, :, None] / np.sqrt(eigenvalues)[:, None, :]
    surprise = ((values - mean[:, seen])[:, None, :] @ whitening)[:, 0]
    logs = -0.5 * (
        np.log(2 * np.pi * eigenvalues).sum(axis=1)
        + 2 * np.log(spread).sum(axis=1)
        + (surprise**2).sum(axis=1)
    )
    loads = across @ whitening
    rest = covariance[:, asked][:, :, asked] - loads @ loads.transpose(0, 2, 1)
    diagonal = np.arange(len(asked))
    rest[:, diagonal, diagonal] = np.maximum(rest[:, diagonal, diagonal], 0.0)
    return logs, mean[:, asked] + (loads @ surprise[:, :, None])[:, :, 0], rest


class TooImprobableError(DataError):
    """Evidence that too few simulated rows agree with."""
