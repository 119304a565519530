"""Exact local minima along and between orders of the variables."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, final

import numpy as np

from isthmus.graphs.adjacency import transitive_closure
from isthmus.objectives.local import LocalScore
from isthmus.searches.continuous.notears_penalties import L1, Penalty
from isthmus.searches.continuous.relaxation import Task
from isthmus.types import Bools, Floats, Integers

_SLICE = 0.1
"""Seconds per step, after which the driver may stop the run."""
_SWEEPS = 50
_TOLERANCE = 1e-9
COARSE = 200
"""With more variables, moves of very little gain are not made: each queues its neighbours."""


def strongest_order(weights: Floats, required: Bools) -> Integers:
    """Order the variables along the strongest edges that make no cycle, the required ones first."""
    reach = transitive_closure(required)
    sources, targets = np.nonzero(weights)
    rank = np.argsort(-np.abs(weights[sources, targets]), kind="stable")
    for i, j in zip(sources[rank].tolist(), targets[rank].tolist(), strict=True):
        if i == j or reach[j, i] or reach[i, j]:
            continue
        above = reach[:, i].copy()
        above[i] = True
        below = reach[j].copy()
        below[j] = True
        reach[above] |= below
    # A node has more ancestors than each of them.
    return np.argsort(reach.sum(axis=0), kind="stable").astype(np.int64)


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


def kkt_residual(task: Task, penalty: Penalty, weights: Floats) -> float:
    """Return how far acyclic weights are from a stationary point of the constrained problem.

    Weights are stationary if no weight could be changed, and no edge that closes no cycle be
    added, so that the objective falls at first order (arXiv 2010.09133). With a price for each
    edge an edge is never added for a gain of first order; then only weights that are there count.
    """
    gradient = task.loss.value_and_gradient(weights)[1]
    if not isinstance(penalty, L1):
        return float(np.abs(gradient[weights != 0.0]).max(initial=0.0))
    costs = task.costs(penalty, weights)
    there = weights != 0.0
    moving = np.abs(gradient + costs * np.sign(weights))[there]
    reach = transitive_closure(there | task.required)
    addable = task.open & ~there & ~reach.T
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
    def weights(self) -> Floats:
        """Return the current weights, ``[from, to]``."""


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
        from isthmus.numerics import column_orders, columns

        d = len(order)
        self._kernels, self._task, self._penalty, self._refine = (
            column_orders,
            task,
            penalty,
            refine,
        )
        self._problem = columns.Problem(
            np.array(task.loss.matrix, order="C"),
            np.ones(d),
            np.array(task.costs(penalty, weights).T, order="C"),
            np.array(task.open.T, order="C"),
            np.array(task.required.T, order="C"),
        )
        self._room = columns.new_room(d)
        self._state = column_orders.new_ordered(order, np.ascontiguousarray(weights.T))
        # Slopes are rounded in proportion to the variances.
        top = float(np.diagonal(task.loss.matrix).max(initial=0.0))
        self._tolerance = max(_TOLERANCE * min(1.0, top), 1e-14 * top)
        self._least = 1e-10 * float(np.trace(task.loss.matrix)) / max(d, 1)
        # The least that an edge must explain; a move must gain half of it, a sweep ten times.
        self._matters = 0.0
        self._settled, self._sweeps, self._at, self._fell = 0, 0, 0, 0.0
        self._before = np.inf  # the sum of minima when the order was changed last
        self._queue = np.empty(0, np.int64)
        self._stirred = np.zeros(d, np.bool_)

    def step(self) -> bool:
        """Solve columns, then move variables, then put right what only the graph allows."""
        end = time.monotonic() + _SLICE
        d = len(self._state.order)
        while self._settled < d:
            stop = min(self._settled + 16, d)
            self._kernels.settle(
                self._problem, self._state, self._settled, stop, self._tolerance, self._room
            )
            self._settled = stop
            if time.monotonic() > end:
                return False
        if d > COARSE and self._sweeps == 0:
            left = self._state.value + 0.5 * np.diagonal(self._problem.moments)
            self._matters = 1e-2 * float(left.mean())
            self._least = max(self._least, 0.5 * self._matters)
        while self._refine and d > 1 and self._sweeps <= _SWEEPS:
            if self._at >= len(self._queue) and not self._refill():
                break
            self._move(int(self._queue[self._at]))
            self._at += 1
            if time.monotonic() > end:
                return False
        return not self._reorder()

    def _refill(self) -> bool:
        """Queue the variables to look at next: neighbours of moved ones, in the end all of them.

        Returns whether there is anything to do: not after a sweep in which nothing moved, or
        (many variables) to little effect.
        """
        d = len(self._state.order)
        if self._stirred.any() and self._sweeps > 0:
            self._queue = self._task.rng.permutation(np.flatnonzero(self._stirred))
        elif self._sweeps > 0 and not self._fell > 10.0 * self._matters:
            return False
        else:
            self._queue = self._task.rng.permutation(d)
            self._sweeps += 1
            self._fell = 0.0
        self._stirred[:] = False
        self._at = 0
        return True

    def _move(self, mover: int) -> None:
        near = self._near(mover)
        self._stirred[mover] = False
        bounds = self._tolerance, self._least, self._matters
        fell = float(self._kernels.improve(self._problem, self._state, mover, *bounds, self._room))
        if fell > 0.0:
            self._fell += fell
            self._stirred |= near | self._near(mover)

    def _near(self, mover: int) -> Bools:
        """Tell which variables have an edge with this one that matters."""
        incoming, variances = self._state.incoming, np.diagonal(self._problem.moments)
        share: Floats = np.maximum(
            incoming[mover] ** 2 * variances, incoming[:, mover] ** 2 * variances[mover]
        )
        matters: Bools = share > self._matters
        return matters

    def _reorder(self) -> bool:
        """Change the order, not the graph, so that edges that would help become possible.

        The order forbids more than acyclicity does. Returns whether there was something to do.
        """
        weights = self.weights()
        gradient = self._task.loss.value_and_gradient(weights)[1]
        excess = np.abs(gradient) - self._task.costs(self._penalty, weights)
        reach = transitive_closure((weights != 0.0) | self._task.required)
        helps = self._task.open & (weights == 0.0) & ~reach.T & (excess > 100 * self._tolerance)
        total = float(self._state.value.sum())
        if not helps.any() or not total < self._before - self._tolerance:
            return False
        self._before = total
        wanted = np.where(helps, excess / (excess[helps].max() * 1e6), 0.0)
        # Edges there are come first, so that only the order between them is changed.
        there = np.where(weights != 0.0, 1.0 + np.abs(weights), 0.0)
        order = strongest_order(there + wanted, self._task.required)
        self._state = self._kernels.new_ordered(order, self._state.incoming)
        # All variables are queued again.
        self._settled, self._at, self._fell = 0, len(self._queue), np.inf
        return True

    def describe(self) -> str:
        """Return a phrase for the progress line."""
        d = len(self._state.order)
        if self._sweeps == 0:
            return f"{self._settled} of {d} columns"
        return f"moves, sweep {self._sweeps}: {self._at} of {len(self._queue)} variables"

    @property
    def settled(self) -> bool:
        """Whether all columns are solved along the order."""
        return self._settled >= len(self._state.order)

    def order(self) -> Integers:
        """Return the current order."""
        order: Integers = self._state.order.copy()
        return order

    def weights(self) -> Floats:
        """Return the current weights, ``[from, to]``."""
        weights: Floats = self._state.incoming.T.copy()
        return weights


def subsets_along(
    task: Task,
    score: LocalScore,
    order: Integers,
    before: Refinement | None = None,
    *,
    refine: bool,
) -> Refinement:
    """Start the choice of parents along an order under a score with a price for each edge.

    ``before`` is an earlier one for the same task: what it has scored is not scored again.
    """
    cache = before if isinstance(before, _Subsets) else None
    return _Subsets(task, score, order, cache, refine=refine)


@final
class _Subsets(Refinement):
    """Parents by grow and shrink along the order; variables move while the score rises.

    A quasi-MCP charges an edge beyond its width a fixed price; in the limit of no width, which is
    taken here, the problem along an order is the choice of a subset for each column.
    """

    def __init__(
        self,
        task: Task,
        score: LocalScore,
        order: Integers,
        before: _Subsets | None,
        *,
        refine: bool,
    ) -> None:
        from isthmus.numerics import boss, grow_shrink

        d = len(order)
        self._boss, self._trees, self._task, self._refine = boss, grow_shrink, task, refine
        self._score = score
        if before is None or before.scored()[0] is not score:
            self._forest = grow_shrink.new_forest(d, 32 * d + 64, 64 * d + d * d + 64)
        else:
            self._forest = before.scored()[1]
        # As many parents as rows would fit anything.
        max_parents = None if task.loss.rows is None else max(task.loss.rows - 2, 0)
        self._rules = grow_shrink.new_rules(task.required, ~task.open, max_parents)
        self._scratch = grow_shrink.new_scratch(d)
        self._places = boss.new_places(d)
        self._state = boss.new_order(order)
        self._settled, self._sweeps, self._at, self._moved = 0, 0, 0, False
        self._queue = np.empty(0, np.int64)

    def scored(self) -> tuple[LocalScore, Any]:
        """Return the score, and the trees of the parent sets scored so far."""
        return self._score, self._forest

    def _call(self, kernel: Callable[..., Any], *arguments: Any) -> Any:
        """Call a kernel, making room as often as it asks for it."""
        while True:
            code, value = kernel(
                self._score.handle, self._forest, self._scratch, self._state, self._places,
                self._rules, *arguments,
            )  # fmt: skip
            if code == self._trees.DONE:
                return value
            if code != self._trees.NEEDS_ROOM:
                raise RuntimeError("a compiled score failed and gave no reason")
            self._forest = self._trees.enlarge(self._forest)

    def step(self) -> bool:
        """Settle the order, then move variables."""
        end = time.monotonic() + _SLICE
        d = len(self._state.order)
        while self._settled < d:
            stop = min(self._settled + 64, d)
            self._settled = int(self._call(self._boss.settle, self._settled, stop))
            if time.monotonic() > end:
                return False
        while self._refine and d > 1 and self._sweeps <= _SWEEPS:
            if self._at >= len(self._queue):
                if self._sweeps > 0 and not self._moved:
                    break
                self._queue, self._at = self._task.rng.permutation(d), 0
                self._sweeps += 1
                self._moved = False
            gain = self._call(self._boss.improve, int(self._queue[self._at]), 1e-10)
            self._moved = self._moved or gain > 0.0
            self._at += 1
            if time.monotonic() > end:
                return False
        return True

    def describe(self) -> str:
        """Return a phrase for the progress line."""
        return f"moves, sweep {self._sweeps}: {self._at} of {len(self._state.order)} variables"

    @property
    def settled(self) -> bool:
        """Whether all columns are solved along the order."""
        return self._settled >= len(self._state.order)

    def order(self) -> Integers:
        """Return the current order."""
        order: Integers = self._state.order.copy()
        return order

    def weights(self) -> Floats:
        """Return the weights of the regressions on the chosen parents."""
        matrix = self._task.loss.matrix
        weights = np.zeros_like(matrix)
        for j in range(len(matrix)):
            parents = np.sort(self._call(self._boss.parents_in_order, j))
            if len(parents):
                inside = matrix[np.ix_(parents, parents)]
                weights[parents, j] = np.linalg.lstsq(inside, matrix[parents, j], rcond=1e-12)[0]
        return weights
