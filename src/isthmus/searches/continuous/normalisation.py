"""Additive losses in units of the noise, so that no penalty depends on the unit of the data.

Targets are divided by the smallest standard deviation among them: where all noise has one scale,
this is an upper bound on it. Features are divided by their standard deviation, or more generally by
the square root of their information about a target. A coefficient is then the standard deviation of
its contribution, in units of the noise, and what noise alone reaches is known beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from isthmus.objectives import AdditiveLoss, QuadraticAdditiveLoss
from isthmus.searches.continuous.group_lasso import NodeLasso
from isthmus.types import Floats, Integers, Work, completed

_NUMBERS = 2**22
"""Numbers of a matrix that are scaled in one piece; that takes some 10 ms."""


@final
@dataclass(frozen=True, eq=False)
class NormalisedLoss:
    """An additive loss in units of the noise.

    Attributes
    ----------
    loss
        The loss of normalised coefficients.
    unit
        Size of the noise in the unit of the data; the loss is divided by its square.
    factors
        For each row of coefficients, what turns normalised ones into those of the data.
    noise
        Standard deviation of the gradient of an edge under noise, times the square root of the
        sample size, per coefficient; shape (nodes, targets).
    """

    loss: AdditiveLoss
    unit: float
    factors: Floats
    noise: Floats

    def penalties(self, penalties: Floats) -> Floats:
        """Convert penalties per cause from the unit of the data; shape (nodes, 1)."""
        found: Floats = (penalties * self.of_causes() / self.unit**2)[:, None]
        return found

    def weights(self, weights: Floats) -> Floats:
        """Convert weights of edges to the unit of the data."""
        found: Floats = weights * self.of_causes()[:, None]
        return found

    def of_causes(self) -> Floats:
        """Return the factor of each cause; all its rows have the same."""
        factors = np.ones(len(self.loss.nodes))
        owned = self.loss.owner >= 0
        factors[self.loss.owner[owned]] = self.factors[owned]
        return factors

    def universal_penalties(self) -> Floats:
        """Return for each edge the largest gradient that noise alone reaches in any of them.

        For a cause with m coefficients this is ``√m + √(2 log p)`` standard deviations, with p the
        number of nodes.
        """
        loss = self.loss
        assert loss.sample_size is not None
        nodes = len(loss.nodes)
        sizes = np.bincount(loss.owner[loss.owner >= 0], minlength=nodes)
        level = np.sqrt(sizes) + np.sqrt(2.0 * np.log(max(nodes, 2)))
        found: Floats = level[:, None] * self.noise / np.sqrt(loss.sample_size)
        return found


def normalise(loss: AdditiveLoss) -> Work[NormalisedLoss]:
    """Return a loss in units of the noise."""
    information, losses = yield from _at_null(loss)
    yield
    unit = 1.0
    if not loss.likelihood:
        positive = losses[losses > 0.0]
        unit = float(np.sqrt(2.0 * positive.min())) if len(positive) else 1.0
    nodes = len(loss.nodes)
    owned = np.flatnonzero(loss.owner >= 0)
    owner = loss.owner[owned]
    sizes = np.maximum(np.bincount(owner, minlength=nodes), 1)
    by_edge = np.zeros((nodes, loss.targets))
    for row, node in zip(owned.tolist(), owner.tolist(), strict=True):
        by_edge[node] += information[row]
    by_edge /= sizes[:, None]
    yield
    spreads = np.sqrt(by_edge.mean(axis=1))
    spreads[spreads <= 0.0] = 1.0
    factors = np.full(len(loss.owner), unit)
    factors[owned] = unit / spreads[owner]
    noise = np.sqrt(by_edge) / spreads[:, None]
    yield
    scaled = yield from _scaled(loss, factors, unit)
    return NormalisedLoss(scaled, unit, factors, noise)


def _at_null(loss: AdditiveLoss) -> Work[tuple[Floats, Floats]]:
    """Return the information of each row about each target without edges, and the losses."""
    rows = len(loss.owner)
    free = np.flatnonzero(loss.owner < 0)
    if isinstance(loss, QuadraticAdditiveLoss) and not len(free):
        variances = np.maximum(loss.variances, 0.0)
        information = np.repeat(loss.features.diagonal()[:, None], loss.targets, axis=1)
        if loss.profiled:
            information = information / np.where(variances > 0.0, variances, 1.0)
        return information, 0.5 * variances
    information, losses = np.zeros((rows, loss.targets)), np.zeros(loss.targets)
    every = np.arange(rows)
    none = np.zeros(len(loss.nodes))
    for target in range(loss.targets):
        null, _ = yield from NodeLasso(loss, target, (), none).solve(np.zeros(rows))
        losses[target], _ = loss.column(target, free, null[free])
        hessian = loss.curvature(target, every, null)
        information[:, target] = hessian.diagonal()
        if len(free):
            inner = np.linalg.pinv(hessian[np.ix_(free, free)])
            cross = hessian[:, free]
            information[:, target] -= np.einsum("ij,jk,ik->i", cross, inner, cross)
        yield
    return np.maximum(information, 0.0), losses


def _scaled(loss: AdditiveLoss, factors: Floats, unit: float) -> Work[AdditiveLoss]:
    if not isinstance(loss, QuadraticAdditiveLoss):
        return _ScaledLoss(loss, factors, unit)
    scale = factors / unit
    features = np.empty_like(loss.features)
    size = max(1, _NUMBERS // max(len(features), 1))
    for start in range(0, len(features), size):
        part = slice(start, start + size)
        np.multiply(loss.features[part], scale[part, None], out=features[part])
        features[part] *= scale
        yield
    return QuadraticAdditiveLoss(
        loss.nodes,
        loss.owner,
        features,
        loss.cross * (scale / unit)[:, None],
        loss.variances / unit**2,
        profiled=loss.profiled,
        sample_size=loss.sample_size,
    )


@final
class _ScaledLoss(AdditiveLoss):
    """``loss(factors * coefficients) / unit²``."""

    def __init__(self, loss: AdditiveLoss, factors: Floats, unit: float) -> None:
        self.nodes, self.targets, self.owner = loss.nodes, loss.targets, loss.owner
        self.sample_size, self.likelihood = loss.sample_size, loss.likelihood
        self._loss, self._factors, self._square = loss, factors, unit * unit

    def value_and_gradient(self, coefficients: Floats) -> tuple[float, Floats]:
        return completed(self.evaluation(coefficients))

    def evaluation(self, coefficients: Floats) -> Work[tuple[float, Floats]]:
        factors = self._factors[:, None]
        value, gradient = yield from self._loss.evaluation(coefficients * factors)
        return value / self._square, gradient * factors / self._square

    def column(self, target: int, rows: Integers, coefficients: Floats) -> tuple[float, Floats]:
        value, gradient = self._loss.column(target, rows, coefficients * self._factors[rows])
        return value / self._square, gradient * self._factors / self._square

    def curvature(self, target: int, rows: Integers, coefficients: Floats) -> Floats:
        factors = self._factors[rows]
        hessian = self._loss.curvature(target, rows, coefficients * factors)
        found: Floats = hessian * factors[:, None] * factors / self._square
        return found
