"""Predict a node of a network, row by row, from what is known in each row."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isthmus.graphs import DAG
from isthmus.models.conditionals import (
    Columns,
    Conditional,
    ConditionalGaussian,
    Hurdle,
    NormalConditional,
    configuration,
)
from isthmus.models.distributions import NormalMixture, Probabilities
from isthmus.models.inference import distinct_columns
from isthmus.models.mixed_queries import MixedQuery, TooImprobableError
from isthmus.models.questions import shares
from isthmus.types import Floats

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
    dag, conditionals
        The network.
    columns
        Codes and numbers; NaN is unknown, as is a node without a column.
    target
        Name of the node.
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
