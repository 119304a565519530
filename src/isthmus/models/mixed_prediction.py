"""Predict a node of a mixed network from its Markov blanket."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isthmus.graphs import DAG
from isthmus.models.conditionals import Columns, Conditional, ConditionalGaussian, configuration
from isthmus.models.questions import shares
from isthmus.types import Floats

_NODES = 48
"""Points of the quadrature over a continuous node with discrete children."""


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

    Continuous children are combined in closed form; discrete ones by Gauss-Hermite quadrature.
    """
    own = conditionals[target]
    assert isinstance(own, ConditionalGaussian)
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
    points, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    values = mean[:, None] + np.sqrt(np.maximum(variance, 0.0))[:, None] * points
    logs = np.tile(np.log(weights), (n, 1))
    for i in range(_NODES):
        now = {**columns, target: values[:, i]}
        for child in others:
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
