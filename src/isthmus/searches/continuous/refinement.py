"""Exact local minima along and between orders of the variables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

import numpy as np

from isthmus.kernels import _native
from isthmus.kernels.continuous import OrderedLassos, order_along
from isthmus.kernels.orders import OrderDescent
from isthmus.objectives.local import LocalScore
from isthmus.searches.continuous.notears_penalties import L1, Penalty
from isthmus.searches.continuous.relaxation import Task
from isthmus.types import Bools, Floats, Integers, Work

_SLICE = 0.02
"""Seconds per step, after which the driver may stop the run."""
_SWEEPS = 50
_TOLERANCE = 1e-9
COARSE = 200
"""With more variables, moves of very little gain are not made: each queues its neighbours."""


def shaken_order(
    order: Integers, required: Bools, rng: np.random.Generator, share: float = 0.1
) -> Integers:
    """Put a share of the variables elsewhere, at random; required edges still go forward."""
    d = len(order)
    count = min(max(int(share * d), 3), d)
    loose = set(rng.choice(d, count, replace=False).tolist())
    proposed = [int(v) for v in order if int(v) not in loose]
    for v in sorted(loose):
        proposed.insert(int(rng.integers(0, len(proposed) + 1)), v)
    missing = required.sum(axis=0)
    valid: list[int] = []
    while proposed:
        first = next(v for v in proposed if missing[v] == 0)
        proposed.remove(first)
        missing = missing - required[first]
        valid.append(first)
    return np.array(valid, dtype=np.int64)


def kkt_residual(task: Task, penalty: Penalty, weights: Floats, gradient: Floats) -> float:
    """Return how far acyclic weights are from a stationary point of the constrained problem.

    Weights are stationary if no weight could be changed, and no edge that closes no cycle be
    added, so that the objective falls at first order (arXiv 2010.09133). With a price for each
    edge an edge is never added for a gain of first order; then only weights that are there count.

    Parameters
    ----------
    task, penalty
        The problem.
    weights
        Acyclic weights, ``[from, to]``.
    gradient
        Gradient of the loss there.
    """
    if not isinstance(penalty, L1):
        return float(np.abs(gradient[weights != 0.0]).max(initial=0.0))
    costs = task.costs(penalty, weights)
    there = weights != 0.0
    moving = np.abs(gradient + costs * np.sign(weights))[there]
    addable = task.open & ~there & ~_native.reachable(there | task.required).T
    entering = np.maximum(np.abs(gradient) - costs, 0.0)[addable]
    return float(max(moving.max(initial=0.0), entering.max(initial=0.0)))


class Refinement(ABC):
    """A descent in progress, to a local minimum along and between orders."""

    @abstractmethod
    def step(self) -> bool:
        """Continue for a slice of time; return whether the descent has finished."""

    @abstractmethod
    def describe(self) -> str:
        """Return a phrase for the progress line."""

    @property
    @abstractmethod
    def settled(self) -> bool:
        """Whether all columns are solved along the order, so that the weights have no cycle."""

    @abstractmethod
    def order(self) -> Integers:
        """Return the current order."""

    @abstractmethod
    def weights(self) -> Work[Floats]:
        """Return the current weights, ``[from, to]``."""

    @abstractmethod
    def objective(self) -> float | None:
        """Return the objective of settled weights; None if it has to be computed from them."""


def lasso_along(
    task: Task, penalty: Penalty, order: Integers, weights: Floats, *, refine: bool
) -> Refinement:
    """Start the exact solution of a least-squares problem along an order."""
    return _Lassos(task, penalty, order, weights, refine=refine)


@final
class _Lassos(Refinement):
    """A lasso for each column along the order; variables move while the sum of minima falls."""

    def __init__(
        self, task: Task, penalty: Penalty, order: Integers, weights: Floats, *, refine: bool
    ) -> None:
        self._task, self._penalty, self._size = task, penalty, len(order)
        self._refine = refine and self._size > 1
        # Slopes are rounded in proportion to the variances.
        variances = np.diagonal(task.loss.matrix)
        top = float(variances.max(initial=0.0))
        self._tolerance = max(_TOLERANCE * min(1.0, top), 1e-14 * top)
        self._lassos = OrderedLassos(
            np.ascontiguousarray(task.loss.matrix),
            scale=np.ones(self._size),
            penalties=task.costs(penalty, weights),
            allowed=task.open,
            required=task.required,
            tolerance=self._tolerance,
        )
        self._lassos.start(order, weights)
        self._least = 1e-10 * float(variances.sum()) / max(self._size, 1)
        # The least that an edge must explain; a move must gain half of it, a sweep ten times.
        self._matters = 0.0
        self._sweeps, self._turns = 0, 0
        self._work = self._descend()

    def step(self) -> bool:
        """Solve columns, then move variables, then put right what only the graph allows."""
        return bool(next(self._work, True))

    def _descend(self) -> Work[None]:
        yield from self._run()
        if self._size > COARSE:
            left = self._lassos.values() + 0.5 * np.diagonal(self._task.loss.matrix)
            self._matters = 1e-2 * float(left.mean())
            self._least = max(self._least, 0.5 * self._matters)
        before = np.inf
        while True:
            if self._refine:
                yield from self._move()
            total = float(self._lassos.values().sum())
            if not total < before - self._tolerance:
                return
            order = yield from self._better_order()
            if order is None:
                return
            yield
            before = total
            self._lassos.start(order, self._lassos.weights())
            yield from self._run()

    def _run(self) -> Work[None]:
        while not self._lassos.step(_SLICE):
            yield

    def _move(self) -> Work[None]:
        """Move all variables, then repeatedly the neighbours of those that moved.

        The end is a sweep in which nothing moved, or (many variables) to little effect.
        """
        fell = np.inf
        while fell > 10.0 * self._matters and self._sweeps < _SWEEPS:
            self._sweeps += 1
            fell = 0.0
            queue = np.arange(self._size)
            while len(queue):
                turns = self._task.rng.permutation(queue)
                self._turns = len(turns)
                self._lassos.sweep(turns, least=self._least, worth=self._matters)
                yield from self._run()
                fell += self._lassos.fell
                queue = self._lassos.stirred()

    def _better_order(self) -> Work[Integers | None]:
        """Return an order for the same graph under which edges that would help become possible.

        An order forbids more than acyclicity does. Returns None if no such edge helps.
        """
        task = self._task
        weights = yield from self.weights()
        _, gradient = yield from task.objective_and_gradient(self._penalty, weights)
        excess = np.abs(gradient) - task.costs(self._penalty, weights)
        yield
        there = weights != 0.0
        reach = _native.reachable(there | task.required)
        yield
        helps = task.open & ~there & ~reach.T & (excess > 100 * self._tolerance)
        if not helps.any():
            return None
        wanted = np.where(helps, excess / (excess[helps].max() * 1e6), 0.0)
        # Edges there are come first, so that only the order between them is changed.
        strengths = np.where(there, 1.0 + np.abs(weights), 0.0) + wanted
        yield
        return order_along(strengths, task.required)

    def describe(self) -> str:
        if self._sweeps == 0:
            return f"{self._lassos.settled} of {self._size} columns"
        return f"moves, sweep {self._sweeps}: {self._lassos.moved} of {self._turns} variables"

    @property
    def settled(self) -> bool:
        return self._lassos.settled >= self._size

    def order(self) -> Integers:
        return self._lassos.order()

    def weights(self) -> Work[Floats]:
        yield from ()
        return np.ascontiguousarray(self._lassos.weights())

    def objective(self) -> float | None:
        """Return the sum of the minima."""
        unexplained = 0.5 * float(np.trace(self._task.loss.matrix))
        return float(self._lassos.values().sum()) + unexplained


def subsets_along(
    task: Task,
    score: LocalScore,
    order: Integers,
    before: Refinement | None = None,
    *,
    refine: bool,
) -> Refinement:
    """Start the choice of parents along an order under a score with a price for each edge.

    ``before`` is an earlier one for the same task, which must have finished: what it has scored is
    not scored again.
    """
    if isinstance(before, _Subsets) and before.score is score:
        descent = before.descent
    else:
        # As many parents as rows would fit anything.
        max_parents = None if task.loss.rows is None else max(task.loss.rows - 2, 0)
        descent = OrderDescent(
            score.kernel,
            task.rng,
            max_sweeps=_SWEEPS,
            required=task.required,
            forbidden=~task.open,
            max_parents=max_parents,
        )
    descent.start(order, refine=refine)
    return _Subsets(task.loss.matrix, score, descent)


@final
class _Subsets(Refinement):
    """Parents by grow and shrink along the order; variables move while the score rises.

    A quasi-MCP charges an edge beyond its width a fixed price; in the limit of no width, which is
    taken here, the problem along an order is the choice of a subset for each column.
    """

    def __init__(self, moments: Floats, score: LocalScore, descent: OrderDescent) -> None:
        self._moments, self.score, self.descent = moments, score, descent

    def step(self) -> bool:
        """Settle the order, then move variables."""
        return self.descent.step(_SLICE)

    def describe(self) -> str:
        descent = self.descent
        return f"moves, sweep {descent.sweeps}: {descent.moved} of {len(self._moments)} variables"

    @property
    def settled(self) -> bool:
        return self.descent.settled

    def order(self) -> Integers:
        return self.descent.order()

    def weights(self) -> Work[Floats]:
        """Return the weights of the regressions on the chosen parents."""
        matrix = self._moments
        weights = np.zeros_like(matrix)
        for j, parents in enumerate(self.descent.parents()):
            if parents:
                inside = matrix[np.ix_(parents, parents)]
                weights[parents, j] = np.linalg.lstsq(inside, matrix[parents, j], rcond=1e-12)[0]
                yield
        return weights

    def objective(self) -> float | None:
        """Return nothing: the score along the order has another penalty."""
        return None
