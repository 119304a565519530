"""Parents along an order, chosen by an extended BIC of the refitted models."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from isthmus.objectives import AdditiveLoss, QuadraticAdditiveLoss
from isthmus.searches.continuous.family_criterion import FamilyEBIC
from isthmus.searches.continuous.group_lasso import NodeLasso
from isthmus.types import Bools, Floats, Work

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
