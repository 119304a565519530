"""Parents along an order, chosen by an extended BIC of the refitted models."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from isthmus.arrays import Bools, Floats, Integers, Work, completed
from isthmus.objectives import AdditiveLoss, QuadraticAdditiveLoss
from isthmus.searches.notears_mlp import NodeLasso
from isthmus.searches.notears_penalties import FamilyEBIC

_DETERMINED = 1e-10
"""Share of the variance below which a target counts as determined by its parents."""
_TRIED = 4
"""How many of the most promising parents are tried in full before growing stops."""


@final
@dataclass(frozen=True, eq=False)
class FamilyFit:
    """A target refitted on some parents without a penalty."""

    coefficients: Floats
    loss: float
    freedom: int


@final
class Families:
    """Refits of targets on sets of parents, and the choice among them.

    Parameters
    ----------
    loss
        The loss in units of the noise, with a known sample size.
    criterion
        Compares families.
    allowed, required
        Edges that may and that must be there, shape (nodes, targets).
    """

    def __init__(
        self, loss: AdditiveLoss, criterion: FamilyEBIC, allowed: Bools, required: Bools
    ) -> None:
        assert loss.sample_size is not None
        self._loss, self._criterion = loss, criterion
        self._allowed, self._required = allowed, required
        self._observations = loss.sample_size
        self._rows = [np.flatnonzero(loss.owner == node) for node in range(len(loss.nodes))]
        self._free = np.flatnonzero(loss.owner < 0)
        self._fits: dict[tuple[int, frozenset[int]], FamilyFit] = {}

    def fit(self, target: int, parents: frozenset[int]) -> Work[FamilyFit]:
        """Refit one target."""
        key = target, parents
        fit = self._fits.get(key)
        if fit is None:
            fit = self._fits[key] = yield from self._refit(target, sorted(parents))
            yield
        return fit

    def _refit(self, target: int, parents: list[int]) -> Work[FamilyFit]:
        loss = self._loss
        rows = np.concatenate([self._free, *(self._rows[p] for p in parents)]).astype(np.int64)
        coefficients = np.zeros(len(loss.owner))
        freedom = len(rows) - len(self._free)
        if isinstance(loss, QuadraticAdditiveLoss):
            inner, cross = loss.features[np.ix_(rows, rows)], loss.cross[rows, target]
            coefficients[rows] = _least_squares(inner, cross)
        else:
            lasso = NodeLasso(loss, target, parents, np.zeros(len(loss.nodes)))
            coefficients, _ = yield from lasso.solve(coefficients)
        value, _ = loss.column(target, rows, coefficients[rows])
        return FamilyFit(coefficients, value, freedom)

    def cost(self, target: int, parents: frozenset[int]) -> float:
        """Return what the edges of a family cost, in nats."""
        freedom = sum(len(self._rows[p]) for p in parents)
        possible = len(self._loss.nodes) - 1
        return self._criterion.edges(freedom, len(parents), self._observations, possible)

    def gain(self, target: int, smaller: frozenset[int], larger: frozenset[int]) -> Work[float]:
        """Return by how much the criterion prefers the larger of two nested families, in nats."""
        before = yield from self.fit(target, smaller)
        after = yield from self.fit(target, larger)
        cost = self.cost(target, larger) - self.cost(target, smaller)
        observations = float(self._observations)
        if not self._loss.likelihood:
            alone = yield from self.fit(target, frozenset())
            least = max(_DETERMINED * alone.loss, 1e-300)
            nats = 0.5 * math.log(max(before.loss, least) / max(after.loss, least))
        else:
            nats = before.loss - after.loss
        if isinstance(self._loss, QuadraticAdditiveLoss) or not self._loss.likelihood:
            observations = max(observations - after.freedom - 1.0, 0.0)
        return observations * nats - cost

    def strengths(self, target: int, coefficients: Floats) -> Floats:
        """Return what each cause contributes to a target, in units of the noise of the target."""
        loss = self._loss
        rows = np.flatnonzero(coefficients)
        value, _ = loss.column(target, rows, coefficients[rows])
        noise = 1.0
        if not loss.likelihood:
            noise = math.sqrt(max(2.0 * value, 1e-300))
        elif isinstance(loss, QuadraticAdditiveLoss):
            noise = math.exp(value)
        return self._sizes(coefficients) / noise

    def choose(self, target: int, lasso: Floats) -> Work[frozenset[int]]:
        """Choose parents among those with strong coefficients in a lasso.

        They leave one at a time while that helps.
        """
        required = frozenset(np.flatnonzero(self._required[:, target]).tolist())
        strong = np.flatnonzero(self.strengths(target, lasso) > self._criterion.strength)
        strong_ones = frozenset(strong.tolist()) | required
        parents = yield from self._affordable(target, strong_ones, required)
        while parents - required:
            gains = {}
            for c in sorted(parents - required):
                gains[c] = yield from self.gain(target, parents - {c}, parents)
            weakest = min(gains, key=lambda c: gains[c])
            if gains[weakest] > 0.0:
                break
            parents -= {weakest}
        return parents

    def _affordable(
        self, target: int, parents: frozenset[int], required: frozenset[int]
    ) -> Work[frozenset[int]]:
        """Leave the weakest out where there are too few observations for all."""
        sizes = yield from self._steepness(target, frozenset())
        ranked = sorted(parents - required, key=lambda c: (-sizes[c], c))
        kept, freedom = set(required), sum(len(self._rows[c]) for c in required)
        for cause in ranked:
            freedom += len(self._rows[cause])
            if not self._criterion.trusts(freedom, self._observations):
                break
            kept.add(cause)
        return frozenset(kept)

    def _is_strong(self, target: int, parents: frozenset[int], cause: int) -> Work[bool]:
        freedom = sum(len(self._rows[p]) for p in parents)
        if not self._criterion.trusts(freedom, self._observations):
            return False
        fit = yield from self.fit(target, parents)
        strengths = self.strengths(target, fit.coefficients)
        return bool(strengths[cause] > self._criterion.strength)

    def _steepness(self, target: int, parents: frozenset[int]) -> Work[Floats]:
        """Return the norm of the gradient for each cause at the refit on some parents."""
        coefficients = (yield from self.fit(target, parents)).coefficients
        rows = np.flatnonzero(coefficients)
        _, gradient = self._loss.column(target, rows, coefficients[rows])
        return self._sizes(gradient)

    def _sizes(self, values: Floats) -> Floats:
        """Return the norm of the values of each cause."""
        owned = self._loss.owner >= 0
        squares = np.bincount(self._loss.owner[owned], values[owned] ** 2, len(self._loss.nodes))
        found: Floats = np.sqrt(squares)
        return found

    def refit(self, graph: Bools) -> Work[tuple[Floats, float, float]]:
        """Return the coefficients of a graph, their loss, and the largest gradient in any."""
        columns, value, residual = [], 0.0, 0.0
        for target in range(self._loss.targets):
            parents = frozenset(np.flatnonzero(graph[:, target]).tolist())
            fit = yield from self.fit(target, parents)
            columns.append(fit.coefficients)
            value += fit.loss
            rows = np.flatnonzero(columns[-1])
            _, gradient = self._loss.column(target, rows, columns[-1][rows])
            residual = max(residual, float(np.abs(gradient[rows]).max(initial=0.0)))
            yield
        return np.column_stack(columns), value, residual

    def lacks_an_edge(self, graph: Bools) -> Work[bool]:
        """Return whether one more edge could help, even one against the order."""
        targets = self._loss.targets
        joined = graph.copy()
        joined[:targets] |= graph[:targets].T | np.eye(targets, dtype=np.bool_)
        for target in range(targets):
            parents = frozenset(np.flatnonzero(graph[:, target]).tolist())
            sizes = yield from self._steepness(target, parents)
            sizes[joined[:, target] | ~self._allowed[:, target]] = 0.0
            for cause in np.argsort(-sizes, kind="stable")[:_TRIED].tolist():
                larger = parents | {cause}
                if not (sizes[cause] > 0.0 and (yield from self._is_strong(target, larger, cause))):
                    continue
                if (yield from self.gain(target, parents, larger)) > 0.0:
                    return True
            yield
        return False

    def total(self, families: dict[int, frozenset[int]]) -> Work[float]:
        """Return the criterion of a graph in nats; lower is better.

        Least squares compares whole graphs by one variance for all residuals: that all noise has
        one scale is what it assumes, and what tells directions apart.
        """
        fits = []
        for target, parents in families.items():
            fits.append((yield from self.fit(target, parents)))
        cost = sum(self.cost(target, parents) for target, parents in families.items())
        losses = np.array([fit.loss for fit in fits])
        if self._loss.likelihood:
            return self._observations * float(losses.sum()) + cost
        pooled = max(float(losses.mean()), 1e-300)
        return 0.5 * self._observations * len(losses) * float(np.log(2.0 * pooled)) + cost


def _least_squares(inner: Floats, cross: Floats) -> Floats:
    """Solve the normal equations; where columns determine each other, by the least norm."""
    try:
        factor = np.linalg.cholesky(inner)
        safe = not len(factor) or np.ptp(np.log10(factor.diagonal())) < 5.0
    except np.linalg.LinAlgError:
        safe = False
    if safe:
        solution = np.linalg.solve(factor.T, np.linalg.solve(factor, cross))
    else:
        solution = np.linalg.lstsq(inner, cross, rcond=1e-10)[0]
    return np.asarray(solution, dtype=np.float64)


# --- Losses in units of the noise ----------------------------------------------------------------
#
# Additive losses in units of the noise, so that no penalty depends on the unit of the data.
#
# Targets are divided by the smallest standard deviation among them: where all noise has one
# scale, this is an upper bound on it. Features are divided by their standard deviation, or more
# generally by the square root of their information about a target. A coefficient is then the
# standard deviation of its contribution, in units of the noise, and what noise alone reaches is
# known beforehand.

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
