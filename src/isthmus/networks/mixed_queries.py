"""Queries of mixed networks: exact where closed forms exist, simulated otherwise.

Given the discrete variables, the continuous ones are jointly normal. If the configurations of the
discrete variables can be enumerated, the answer is a finite mixture and exact. A discrete node
whose continuous parents are unknown has no such form: then rows are drawn and weighted by the
likelihood of the evidence.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats
from isthmus.errors import ArgumentError, DataError
from isthmus.graphs import DAG
from isthmus.networks.column_maps import NetworkMaps
from isthmus.networks.columns import Level, check_joint_size, impossible, shares
from isthmus.networks.conditionals import (
    Columns,
    Conditional,
    ConditionalGaussian,
    CurvedGaussian,
    CurvedLogit,
    Hurdle,
    MultinomialLogit,
    NormalConditional,
    ProbabilityTable,
    configuration,
    spectrum,
)
from isthmus.networks.distributions import NormalMixture, Probabilities, centre, in_units
from isthmus.networks.inference import distinct_columns
from isthmus.networks.ranges import Ranges
from isthmus.networks.sampling_error import drawn_conditionals

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
    ranges
        Continuous nodes of which only a range is known.
    """

    dag: DAG
    conditionals: Mapping[str, Conditional]
    targets: tuple[str, ...]
    evidence: Mapping[str, float]
    do: Mapping[str, float]
    likelihoods: Mapping[str, Floats] = field(default_factory=dict)
    measured: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    ranges: Ranges = field(default_factory=dict)

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
        if self.ranges:
            return None
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
        if name in self.ranges:
            low, high = self.ranges[name]
            return np.where((low <= columns[name]) & (columns[name] <= high), 0.0, -np.inf)
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
        stack = [*self.targets, *self.evidence, *self.likelihoods, *self.measured, *self.ranges]
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


# --- Predict a node of a network, row by row, from what is known in each row --------------------

_NODES = 48
"""Points of the quadrature over a continuous node with discrete children."""
_GRID = np.linspace(-8.0, 8.0, 641)
"""Points of the quadrature over a node with curved effects, in standard deviations."""
_MORE = (1, 10, 100)
"""Factors of the number of simulations, one after the other, for rows with improbable values."""


def predict_rows(
    dag: DAG,
    conditionals: Mapping[str, Conditional],
    columns: Columns,
    target: str,
    n: int,
    simulations: int,
    seed: int,
) -> Floats:
    """Return probabilities of the levels, or the expected value, of a node for each row.

    Parameters
    ----------
    columns
        Codes and numbers; NaN is unknown, as is a node without a column.
    n
        Number of rows.
    simulations, seed
        Simulated rows for each row without an exact answer, and their random seed.
    """
    size = len(conditionals[target].levels)
    found = np.empty((n, size) if size else n)
    names = [v for v in columns if v != target]
    absent = np.array([np.isnan(columns[v]) for v in names], np.bool_).reshape(len(names), n)
    patterns, places = distinct_columns(absent)
    predict = level_probabilities if size else conditional_mean
    for k in range(patterns.shape[1]):
        rows = np.flatnonzero(places == k)
        known = [v for v, missing in zip(names, patterns[:, k], strict=True) if not missing]
        relevant = {target, *dag.ancestors(target)}.union(known, *map(dag.ancestors, known))
        part = DAG(
            [v for v in dag.nodes if v in relevant],
            [(a, b) for a, b in dag.edges if {a, b} <= relevant],
        )
        if set(part.markov_blanket(target)) <= set(known):
            told = {v: columns[v][rows] for v in known}
            found[rows] = predict(part, conditionals, told, target, len(rows))
            continue
        seen, fixed = _informative(part, known, target)
        values = np.array([columns[v][rows] for v in (*seen, *fixed)]).reshape(-1, len(rows))
        distinct, which = distinct_columns(values)
        answers = []
        for row in distinct.T.tolist():
            evidence = dict(zip(seen, row[: len(seen)], strict=True))
            do = dict(zip(fixed, row[len(seen) :], strict=True))
            question = MixedQuery(dag, conditionals, (target,), evidence, do)
            answer = _answer(question, simulations, seed)
            answers.append(answer.values if isinstance(answer, Probabilities) else answer.mean[0])
        found[rows] = np.array(answers)[which]
    return found


def _answer(question: MixedQuery, simulations: int, seed: int) -> Probabilities | NormalMixture:
    """Return the exact answer, or a simulated one, with more draws if values are improbable."""
    exact = question.exact()
    if exact is not None:
        return exact
    for factor in _MORE[:-1]:
        try:
            return question.simulated(factor * simulations, seed)
        except TooImprobableError:
            continue
    return question.simulated(_MORE[-1] * simulations, seed)


def _informative(
    dag: DAG, known: Collection[str], target: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the known nodes that tell about the target, and those that only set a parent.

    The distribution of the second ones given their parents is a constant factor, so they can be
    set as if by an intervention, and their ancestors be left out.
    """
    families = {v: {v, *dag.parents(v)} for v in dag.nodes}
    hidden, stack = {target}, [target]
    while stack:
        now = stack.pop()
        for family in families.values():
            if now in family:
                new = family - hidden - set(known)
                hidden |= new
                stack += new
    touched = [v for v, family in families.items() if family & hidden]
    seen = tuple(v for v in touched if v in known)
    parents = set().union(*(families[v] for v in touched))
    return seen, tuple(v for v in dag.nodes if v in parents and v in known and v not in seen)


def level_probabilities(
    dag: DAG, conditionals: Mapping[str, Conditional], columns: Columns, target: str, n: int
) -> Floats:
    """Return the distribution of a discrete node for each row, of shape (rows, levels)."""
    size = len(conditionals[target].levels)
    logs = np.empty((n, size))
    for code in range(size):
        own: NDArray[Any] = np.full(n, code)
        logs[:, code] = _log_weight(dag, conditionals, {**columns, target: own}, target)
    return shares(logs)


def conditional_mean(
    dag: DAG, conditionals: Mapping[str, Conditional], columns: Columns, target: str, n: int
) -> Floats:
    """Return the expected value of a continuous node for each row.

    Linear continuous children are combined in closed form; other ones by quadrature.
    """
    own = conditionals[target]
    if isinstance(own, Hurdle):
        return _hurdle_mean(dag, conditionals, columns, target, n)
    assert isinstance(own, NormalConditional)
    mean, variance = own.mean(columns, n), own.variance(columns, n)
    zero = {**columns, target: np.zeros(n)}
    others = []
    for child in dag.children(target):
        given = conditionals[child]
        if not isinstance(given, ConditionalGaussian):
            others.append(child)
            continue
        place = configuration(columns, given.discrete, given.intercepts.shape, n)
        slopes = given.coefficients.reshape(given.intercepts.size, len(given.continuous))
        slope = slopes[place, given.continuous.index(target)]
        residual = columns[child] - given.mean(zero, n)
        # The posterior of a normal variable after one more measurement, residual = slope * x.
        total = given.variance(columns, n) + slope**2 * variance
        weight = np.divide(slope * variance, total, out=np.zeros(n), where=total > 0)
        mean = mean + weight * (residual - slope * mean)
        variance = variance - weight * slope * variance
    if not others:
        return mean
    points, logs = _GRID, -0.5 * _GRID**2
    if all(conditionals[child].levels for child in others):
        points, weights = np.polynomial.hermite_e.hermegauss(_NODES)
        logs = np.log(weights)
    values = mean[:, None] + np.sqrt(np.maximum(variance, 0.0))[:, None] * points
    logs = np.tile(logs, (n, 1))
    for i in range(len(points)):
        now = {**columns, target: values[:, i]}
        for child in others:
            logs[:, i] += conditionals[child].log_density(columns[child], now)
    found: Floats = (shares(logs) * values).sum(axis=1)
    return found


def _hurdle_mean(
    dag: DAG, conditionals: Mapping[str, Conditional], columns: Columns, target: str, n: int
) -> Floats:
    """Return the expected value of a node that often has one value, by quadrature of the others."""
    own = conditionals[target]
    assert isinstance(own, Hurdle)
    mean, spread = own.rest.mean(columns, n), np.sqrt(own.rest.variance(columns, n))
    values = np.empty((n, len(_GRID) + 1))
    values[:, 1:] = own.values(mean[:, None] + spread[:, None] * _GRID)
    values[:, 0] = own.at
    chances = own.elsewhere.log_probabilities(columns, n)
    heights = -0.5 * _GRID**2
    logs = np.empty_like(values)
    logs[:, 0], logs[:, 1:] = chances[:, 0], chances[:, 1:] + heights
    logs[:, 1:] -= np.log(np.exp(heights).sum())
    for i in range(len(_GRID) + 1):
        now = {**columns, target: values[:, i]}
        for child in dag.children(target):
            logs[:, i] += conditionals[child].log_density(columns[child], now)
    found: Floats = (shares(logs) * values).sum(axis=1)
    return found


def _log_weight(
    dag: DAG, conditionals: Mapping[str, Conditional], columns: Columns, target: str
) -> Floats:
    total = conditionals[target].log_density(columns[target], columns)
    for child in dag.children(target):
        total = total + conditionals[child].log_density(columns[child], columns)
    return total
