"""Losses of generalised linear models: logistic and Poisson regression."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import final

import numpy as np

from isthmus.objectives.additive import PIECE, AdditiveLoss
from isthmus.types import Floats, Integers, Work, completed


class Family(ABC):
    """Distribution of a node given its linear predictor, up to terms without parameters."""

    @abstractmethod
    def loss(self, predictor: Floats, observed: Floats) -> Floats:
        """Return the negative log-likelihood of each cell."""

    @abstractmethod
    def mean(self, predictor: Floats) -> Floats:
        """Return the expected value; the derivative of the loss is mean minus observed."""

    @abstractmethod
    def variance(self, predictor: Floats) -> Floats:
        """Return the variance, which is the derivative of the mean."""


@final
class Bernoulli(Family):
    """Binary values with the logit link."""

    def loss(self, predictor: Floats, observed: Floats) -> Floats:
        # Four times as fast as logaddexp, and as exact.
        loss: Floats = np.log1p(np.exp(-np.abs(predictor)))
        loss += np.maximum(predictor, 0.0)
        loss -= observed * predictor
        return loss

    def mean(self, predictor: Floats) -> Floats:
        # The tanh form does not overflow.
        mean: Floats = 0.5 * (1.0 + np.tanh(0.5 * predictor))
        return mean

    def variance(self, predictor: Floats) -> Floats:
        mean = self.mean(predictor)
        return mean * (1.0 - mean)


@final
class PoissonFamily(Family):
    """Counts with the log link."""

    def loss(self, predictor: Floats, observed: Floats) -> Floats:
        loss: Floats = self.mean(predictor) - observed * predictor
        return loss

    def mean(self, predictor: Floats) -> Floats:
        with np.errstate(over="ignore"):  # the line search handles infinite values
            mean: Floats = np.exp(predictor)
        return mean

    def variance(self, predictor: Floats) -> Floats:
        return self.mean(predictor)


@final
class GeneralisedLinearLoss(AdditiveLoss):
    """Negative mean log-likelihood of a generalised linear model. The last row is the intercept.

    Parameters
    ----------
    nodes
        Names of the columns.
    inputs
        Values of the columns as causes, shape (n, d).
    observed
        Values of the columns as effects, shape (n, d).
    family
        Distribution of a node given its predictor.
    """

    def __init__(
        self, nodes: Sequence[str], inputs: Floats, observed: Floats, family: Family
    ) -> None:
        n, d = observed.shape
        self.nodes = tuple(nodes)
        self.targets = d
        self.owner = np.append(np.arange(d), -1)
        self.sample_size, self.likelihood = n, True
        self._inputs = np.column_stack([inputs, np.ones(n)])
        self._observed = observed
        self._family = family

    def value_and_gradient(self, coefficients: Floats) -> tuple[float, Floats]:
        return completed(self.evaluation(coefficients))

    def evaluation(self, coefficients: Floats) -> Work[tuple[float, Floats]]:
        n = len(self._observed)
        value, gradient = 0.0, np.empty_like(coefficients)
        # Functions of each cell cost as much as some dozens of multiplications.
        size = max(1, PIECE // max(2 * n * (len(coefficients) + 32), 1))
        for start in range(0, self.targets, size):
            part = slice(start, start + size)
            predictor = self._inputs @ coefficients[:, part]
            observed = self._observed[:, part]
            value += float(self._family.loss(predictor, observed).sum()) / n
            if not np.isfinite(value):
                return np.inf, np.full_like(coefficients, np.nan)
            gradient[:, part] = self._inputs.T @ (self._family.mean(predictor) - observed) / n
            if size < self.targets:
                yield
        return value, gradient

    def column(self, target: int, rows: Integers, coefficients: Floats) -> tuple[float, Floats]:
        n = len(self._observed)
        observed = self._observed[:, target]
        predictor = self._inputs[:, rows] @ coefficients
        value = float(self._family.loss(predictor, observed).sum()) / n
        if not np.isfinite(value):
            return np.inf, np.full(self._inputs.shape[1], np.nan)
        return value, self._inputs.T @ (self._family.mean(predictor) - observed) / n

    def curvature(self, target: int, rows: Integers, coefficients: Floats) -> Floats:
        inputs = self._inputs[:, rows]
        weights = self._family.variance(inputs @ coefficients) / len(inputs)
        hessian: Floats = (inputs * weights[:, None]).T @ inputs
        return hessian
