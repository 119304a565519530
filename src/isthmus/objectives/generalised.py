"""Generalised linear losses of rows: logistic for truth values, Poisson for counts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import final

import numpy as np

from isthmus.objectives.additive import AdditiveLoss
from isthmus.types import Floats, Integers


class Family(ABC):
    """The law of a node given its linear predictor, up to terms without parameters."""

    @abstractmethod
    def loss(self, predictor: Floats, seen: Floats) -> Floats:
        """Minus the log-likelihood of each cell."""

    @abstractmethod
    def mean(self, predictor: Floats) -> Floats:
        """Expected value; the derivative of the loss is mean minus seen."""

    @abstractmethod
    def variance(self, predictor: Floats) -> Floats:
        """Derivative of the mean."""


@final
class Bernoulli(Family):
    """Truth values with logit link."""

    def loss(self, predictor: Floats, seen: Floats) -> Floats:
        """Minus the log-likelihood of each cell."""
        # Four times as fast as logaddexp, and as exact.
        found: Floats = np.log1p(np.exp(-np.abs(predictor)))
        found += np.maximum(predictor, 0.0)
        found -= seen * predictor
        return found

    def mean(self, predictor: Floats) -> Floats:
        """Expected value."""
        # The tanh form does not overflow.
        found: Floats = 0.5 * (1.0 + np.tanh(0.5 * predictor))
        return found

    def variance(self, predictor: Floats) -> Floats:
        """Derivative of the mean."""
        mean = self.mean(predictor)
        return mean * (1.0 - mean)


@final
class PoissonFamily(Family):
    """Counts with log link."""

    def loss(self, predictor: Floats, seen: Floats) -> Floats:
        """Minus the log-likelihood of each cell."""
        found: Floats = self.mean(predictor) - seen * predictor
        return found

    def mean(self, predictor: Floats) -> Floats:
        """Expected value."""
        with np.errstate(over="ignore"):  # infinite: the line search takes a shorter step
            found: Floats = np.exp(predictor)
        return found

    def variance(self, predictor: Floats) -> Floats:
        """Derivative of the mean."""
        return self.mean(predictor)


@final
class GeneralisedLinearLoss(AdditiveLoss):
    """Minus the mean log-likelihood of a generalised linear model; the last row is the constant.

    Parameters
    ----------
    nodes
        Names of the columns.
    inputs
        What the columns are as causes, shape (n, d).
    seen
        What they are as effects, shape (n, d).
    family
        Law of a node given its predictor.
    """

    def __init__(self, nodes: Sequence[str], inputs: Floats, seen: Floats, family: Family) -> None:
        n, d = seen.shape
        self.nodes = tuple(nodes)
        self.targets = d
        self.owner = np.append(np.arange(d), -1)
        self.sample_size, self.likelihood = n, True
        self._inputs = np.column_stack([inputs, np.ones(n)])
        self._seen = seen
        self._family = family

    def value_and_gradient(self, coefficients: Floats) -> tuple[float, Floats]:
        """Return the loss at ``coefficients`` and its gradient."""
        n = len(self._seen)
        predictor = self._inputs @ coefficients
        value = float(self._family.loss(predictor, self._seen).sum()) / n
        if not np.isfinite(value):
            return np.inf, np.full_like(coefficients, np.nan)
        return value, self._inputs.T @ (self._family.mean(predictor) - self._seen) / n

    def column(self, target: int, rows: Integers, coefficients: Floats) -> tuple[float, Floats]:
        """Return the loss of one target, and its gradient over all rows."""
        n = len(self._seen)
        seen = self._seen[:, target]
        predictor = self._inputs[:, rows] @ coefficients
        value = float(self._family.loss(predictor, seen).sum()) / n
        if not np.isfinite(value):
            return np.inf, np.full(self._inputs.shape[1], np.nan)
        return value, self._inputs.T @ (self._family.mean(predictor) - seen) / n

    def curvature(self, target: int, rows: Integers, coefficients: Floats) -> Floats:
        """Return the Hessian of the loss of one target over ``rows``."""
        inputs = self._inputs[:, rows]
        weights = self._family.variance(inputs @ coefficients) / len(inputs)
        found: Floats = (inputs * weights[:, None]).T @ inputs
        return found
