"""Improve an order of the nodes until no move of a single node lowers the objective.

For a given order the penalised loss is solved exactly, node by node. The central path ends in one
order, often next to a better one: each node is moved through the whole order by swaps of
neighbours, and put where the sum is least. A swap changes the possible causes of two nodes, and
most of them change nothing: removing a cause of zero weight has no effect, and neither has adding
one whose gradient is smaller than the penalty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard, final

import numpy as np

from isthmus.arrays import Bools, Floats, Work
from isthmus.kernels import _native
from isthmus.objectives import AdditiveLoss, QuadraticAdditiveLoss
from isthmus.searches.notears_mlp import NodeLasso

_SWEEPS = 5000
_TANGENTS = 100
_NEARLY = 1e-7  # tolerance of the solutions while the order still changes
_SAFE = 1e-5  # more than the errors of these solutions add up to
_GAIN = 1e-6  # smallest gain of a move: less may be rounding error


@final
@dataclass(frozen=True, eq=False)
class Fit:
    """The solution of one node for a set of possible causes, and its distance from optimal.

    For each node it holds whether it is ``used`` as a cause, and how ``steep`` the loss is in its
    coefficients, so that swaps without an effect are recognised without the data.
    """

    coefficients: Floats
    value: float
    residual: float
    used: Bools
    steep: Floats


@final
class SolvedOrder:
    """An order with the exact solutions for it.

    Parameters
    ----------
    loss
        The loss of all nodes.
    allowed, required
        Edges that may and that must be there, shape (nodes, targets).
    penalties
        Penalty of each edge, shape (nodes, targets).
    order
        Order of the targets, in which required edges point forwards.
    guess
        Coefficients near the solution.
    """

    def __init__(
        self,
        loss: AdditiveLoss,
        allowed: Bools,
        required: Bools,
        penalties: Floats,
        order: list[int],
        guess: Floats,
    ) -> None:
        self._loss = loss
        self._allowed = allowed
        self._required = required
        self._penalties = penalties
        self._guess = guess
        self._fits: dict[tuple[int, frozenset[int]], Fit] = {}
        self._past = frozenset(range(loss.targets, len(loss.nodes)))
        self._quick = _Quick(loss) if _is_quick(loss) else None
        self.order = list(order)
        self.fits: dict[int, Fit] = {}

    def settle(self, target: int) -> Work[None]:
        """Solve one node for the order as it stands."""
        before = frozenset(self.order[: self.order.index(target)])
        self.fits[target] = yield from self._fit(target, before, self._guess[:, target])

    def move(self, node: int) -> Work[bool]:
        """Put a node where the sum of all is least; return whether it moved."""
        best: tuple[float, list[int], dict[int, Fit]] | None = None
        for backwards in (True, False):
            order, fits, total = list(self.order), dict(self.fits), 0.0
            at = order.index(node)
            gains = yield from (self._gains_before(at) if backwards else self._gains_after(at))
            while True:
                left = at - 1 if backwards else at
                if left < 0 or left + 1 >= len(order):
                    break
                # Stop where even the largest gain from here on would not be enough.
                gained = 0.0 if backwards else self.fits[node].value - fits[node].value
                least = total - max(gains[at] - gained, 0.0)
                if least > _SAFE + (-_GAIN if best is None else best[0] - _GAIN):
                    break
                change = yield from self._swap(order, left, fits)
                if change is None:
                    break
                at += -1 if backwards else 1
                total += change
                if total < -_GAIN and (best is None or total < best[0] - _GAIN):
                    best = total, list(order), dict(fits)
        if best is None:
            return False
        _, self.order, self.fits = best
        return True

    def _gains_before(self, at: int) -> Work[Floats]:
        """Return what a node that moves backwards can gain from each place on, at most.

        It becomes a possible cause of those it passes, and these gain no more than from all nodes.
        """
        node, gains = self.order[at], np.zeros(len(self.order))
        for k, other in enumerate(self.order[:at]):
            fit, gain = self.fits[other], 0.0
            if self._allowed[node, other] and fit.steep[node] > self._penalties[node, other]:
                gain = yield from self._largest_gain(other)
            gains[k + 1] = gains[k] + gain
        return gains

    def _gains_after(self, at: int) -> Work[Floats]:
        """Return what a node that moves forwards can gain, at most: only it has more causes."""
        gain = yield from self._largest_gain(self.order[at])
        return np.full(len(self.order), gain)

    def _largest_gain(self, target: int) -> Work[float]:
        """Return by how much the value of a target falls with all nodes as possible causes."""
        if self._quick is None:
            return np.inf  # a model of all causes may take long, or have no minimum
        others = frozenset(self.order) - {target}
        fit = yield from self._fit(target, others, self.fits[target].coefficients)
        return max(self.fits[target].value - fit.value, 0.0)

    def _swap(self, order: list[int], left: int, fits: dict[int, Fit]) -> Work[float | None]:
        """Swap two neighbours; return by how much the sum grew, or None if it is forbidden."""
        first, second = order[left], order[left + 1]
        if self._required[first, second]:
            return None
        order[left], order[left + 1] = second, first
        earlier, later = fits[first], fits[second]
        change = 0.0
        if later.used[first]:
            before = frozenset(order[:left])
            fits[second] = yield from self._fit(second, before, later.coefficients)
            change += fits[second].value - later.value
        if self._allowed[second, first] and earlier.steep[second] > self._penalties[second, first]:
            before = frozenset(order[: left + 1])
            fits[first] = yield from self._fit(first, before, earlier.coefficients)
            change += fits[first].value - earlier.value
        return change

    def _fit(self, target: int, before: frozenset[int], start: Floats) -> Work[Fit]:
        """Solve one node, nearly exactly."""
        causes = frozenset(c for c in before | self._past if self._allowed[c, target])
        key = target, causes
        fit = self._fits.get(key)
        if fit is None:
            penalties = self._penalties[:, target]
            if self._quick is None:
                lasso = NodeLasso(self._loss, target, sorted(causes), penalties)
                coefficients, _ = yield from lasso.solve(start, _NEARLY)
                value = lasso.value(coefficients)
            else:
                coefficients, value = yield from self._quick.solve(
                    target, sorted(causes), penalties, start
                )
            fit = self._fits[key] = self._described(target, coefficients, value, np.inf)
            yield
        return fit

    def _described(self, target: int, coefficients: Floats, value: float, residual: float) -> Fit:
        owner, nodes = self._loss.owner, len(self._loss.nodes)
        owned = owner >= 0
        rows = np.flatnonzero(coefficients)
        _, gradient = self._loss.column(target, rows, coefficients[rows])
        squares = np.bincount(owner[owned], gradient[owned] ** 2, nodes)
        used = np.bincount(owner[owned], coefficients[owned] != 0.0, nodes) > 0
        return Fit(coefficients, value, residual, used, np.sqrt(squares))

    def finish(self, target: int) -> Work[None]:
        """Solve one node to machine precision."""
        before = frozenset(self.order[: self.order.index(target)])
        causes = [c for c in sorted(before | self._past) if self._allowed[c, target]]
        lasso = NodeLasso(self._loss, target, causes, self._penalties[:, target])
        coefficients, residual = yield from lasso.solve(self.fits[target].coefficients)
        value = lasso.value(coefficients)
        self.fits[target] = self._described(target, coefficients, value, residual)

    @property
    def coefficients(self) -> Floats:
        """The solutions of all nodes, side by side."""
        return np.column_stack([self.fits[j].coefficients for j in range(self._loss.targets)])

    @property
    def residual(self) -> float:
        """The largest violation of optimality, over all nodes."""
        return max((fit.residual for fit in self.fits.values()), default=0.0)

    @property
    def value(self) -> float:
        """The penalised loss."""
        return sum(fit.value for fit in self.fits.values())


def _is_quick(loss: AdditiveLoss) -> TypeGuard[QuadraticAdditiveLoss]:
    """Whether the compiled solver can take it: squares, with rows in the order of their nodes."""
    return (
        isinstance(loss, QuadraticAdditiveLoss)
        and bool((loss.owner >= 0).all())
        and bool((np.diff(loss.owner) >= 0).all())
    )


@final
class _Quick:
    """The compiled solver for squares and their logarithms."""

    def __init__(self, loss: QuadraticAdditiveLoss) -> None:
        self._loss = loss
        self._starts = np.searchsorted(loss.owner, np.arange(len(loss.nodes) + 1))
        spans = zip(self._starts[:-1], self._starts[1:], strict=True)
        blocks = [loss.features[a:b, a:b] for a, b in spans]
        steeps = np.array([np.linalg.norm(b, 2) if b.size else 0.0 for b in blocks])
        features = np.ascontiguousarray(loss.features)
        self._descent = _native.GroupDescent(features, starts=self._starts, steeps=steeps)

    def solve(
        self, target: int, causes: list[int], penalties: Floats, start: Floats
    ) -> Work[tuple[Floats, float]]:
        """Solve one node, up to a small tolerance; return coefficients and penalised loss."""
        open_ = np.zeros(len(penalties), dtype=np.bool_)
        open_[causes] = True
        coefficients = np.where(open_[self._loss.owner], start, 0.0)
        if self._loss.profiled:
            coefficients = yield from self._along_tangents(target, causes, penalties, coefficients)
        else:
            coefficients = yield from self._descend(target, causes, penalties, coefficients)
        rows = np.flatnonzero(coefficients)
        value, _ = self._loss.column(target, rows, coefficients[rows])
        squares = np.bincount(self._loss.owner, coefficients * coefficients, len(penalties))
        return coefficients, value + float(penalties @ np.sqrt(squares))

    def _along_tangents(
        self, target: int, causes: list[int], penalties: Floats, coefficients: Floats
    ) -> Work[Floats]:
        # The logarithm lies below its tangent: with a fixed variance this is a lasso again.
        variance = self._variance(target, coefficients)
        for _ in range(_TANGENTS):
            coefficients = yield from self._descend(
                target, causes, variance * penalties, coefficients
            )
            before, variance = variance, self._variance(target, coefficients)
            if abs(before - variance) <= _NEARLY * before:
                break
        return coefficients

    def _variance(self, target: int, coefficients: Floats) -> float:
        rows = np.flatnonzero(coefficients)
        own = coefficients[rows]
        product = self._loss.features[np.ix_(rows, rows)] @ own
        product -= 2.0 * self._loss.cross[rows, target]
        total = float(self._loss.variances[target])
        return max(total + float(own @ product), 1e-12 * max(total, 1e-300))

    def _descend(
        self, target: int, causes: list[int], penalties: Floats, coefficients: Floats
    ) -> Work[Floats]:
        self._descent.begin(
            coefficients,
            cross=np.ascontiguousarray(self._loss.cross[:, target]),
            penalties=np.ascontiguousarray(penalties),
            causes=np.array(causes, dtype=np.int64),
            tolerance=_NEARLY,
            limit=_SWEEPS,
        )
        while not self._descent.step():
            yield
        return self._descent.coefficients()
