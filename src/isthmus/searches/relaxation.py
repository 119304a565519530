"""Acyclicity constraints of NOTEARS: a log-determinant barrier, or the published Lagrangian."""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from isthmus.arrays import Bools, Floats, Integers, Work
from isthmus.kernels import _native
from isthmus.kernels.continuous import BarrierSweeps, OrderedLassos, order_along
from isthmus.kernels.orders import OrderDescent
from isthmus.objectives.local import LocalScore
from isthmus.objectives.smooth import LikelihoodLoss, MomentsLoss
from isthmus.options import require_integer, require_number
from isthmus.searches.notears_penalties import L1, BackgroundCall, Penalty, exponential

_SLICE = 0.02
"""Seconds per step."""
_BLOCK = 64
"""Number of columns that are multiplied in one step."""
_UNFINISHED = 1
"""SciPy's status at the limit on the number of iterations."""


@final
@dataclass(frozen=True, eq=False)
class Task:
    """The problem: a loss, and the edges that are allowed and required, ``[from, to]``."""

    loss: MomentsLoss
    open: Bools
    required: Bools
    rng: np.random.Generator

    def costs(self, penalty: Penalty, weights: Floats) -> Floats:
        """Slope of the penalty for each edge; required ones cost nothing."""
        return np.where(self.required, 0.0, penalty.slope(weights))

    def objective_and_gradient(
        self, penalty: Penalty, weights: Floats
    ) -> Work[tuple[float, Floats]]:
        """Return loss and penalty, and the gradient of the loss."""
        paid = np.where(self.required, 0.0, penalty.value(weights))
        value, gradient = 0.0, np.empty_like(weights)
        for start in range(0, len(weights), _BLOCK):
            stop = start + _BLOCK
            part, gradient[:, start:stop] = self.loss.columns(weights, start, stop)
            value += part
            yield
        return value + float(paid.sum()), gradient


class Relaxation(ABC):
    """A minimisation in progress, from no weights to nearly acyclic ones."""

    @abstractmethod
    def step(self) -> bool:
        """Do one step; return whether the minimisation has finished."""

    @abstractmethod
    def weights(self) -> Floats:
        """Return the current weights, ``[from, to]``."""

    @abstractmethod
    def describe(self) -> str:
        """Return a phrase for the progress line."""


class Acyclicity(ABC):
    """How a relaxed problem is made acyclic."""

    @abstractmethod
    def begin(self, task: Task, penalty: Penalty) -> Relaxation:
        """Start from no weights."""


@final
@dataclass(frozen=True)
class LogDet(Acyclicity):
    """A barrier ``-t log det(r I - W ∘ W)`` whose weight t grows from stage to stage.

    Within a stage the weights into one node at a time are set to their exact minimum; this needs
    no step sizes, and each such problem is convex. The default: in our benchmarks as accurate as
    the exponential, and much faster.

    Parameters
    ----------
    radius
        r, the bound on the spectral radius of the squared weights.
    start
        Initial t, as a fraction of the mean variance; for a likelihood, t itself.
    growth
        Factor between stages.
    stages
        Number of stages.
    sweeps
        Maximum number of passes over all nodes per stage.
    """

    radius: float = 1.0
    start: float = 0.03
    growth: float = 4.0
    stages: int = 7
    sweeps: int = 8

    def __post_init__(self) -> None:
        require_number(self, "radius", above=0)
        require_number(self, "start", above=0)
        require_number(self, "growth", above=1)
        require_integer(self, "stages", least=1)
        require_integer(self, "sweeps", least=1)

    def begin(self, task: Task, penalty: Penalty) -> Relaxation:
        return _Barrier(self, task, penalty)


@final
class _Barrier(Relaxation):
    def __init__(self, options: LogDet, task: Task, penalty: Penalty) -> None:
        self._options, self._task, self._penalty = options, task, penalty
        moments = np.ascontiguousarray(task.loss.matrix)
        self._columns = BarrierSweeps(moments, allowed=task.open, radius=options.radius)
        likelihood = isinstance(task.loss, LikelihoodLoss)
        self._unit = 1.0 if likelihood else float(np.diagonal(moments).mean())
        self._stage = self._sweep = 0
        self._work = self._descend()

    def weights(self) -> Floats:
        return np.ascontiguousarray(self._columns.weights())

    def step(self) -> bool:
        """Do some columns of a sweep."""
        return bool(next(self._work, True))

    def _descend(self) -> Work[None]:
        options = self._options
        while self._stage < options.stages:
            barrier = options.start * options.growth**self._stage * self._unit
            for self._sweep in range(1, max(options.sweeps, 1) + 1):
                yield from self._begin_sweep(barrier)
                while not self._columns.step(_SLICE):
                    yield
                if self._columns.moved < 1e-3:
                    break
            self._stage += 1

    def _begin_sweep(self, barrier: float) -> Work[None]:
        task, weights = self._task, self.weights()
        turns = task.rng.permutation(len(weights))
        scale = yield from self._scale(weights)
        yield
        # Rounding adds up over the sweeps.
        if self._columns.inverse_error() > 1e-8:
            inverse = yield from _inverse(
                self._options.radius * np.eye(len(weights)) - weights * weights
            )
            self._columns.set_inverse(inverse)
        yield
        penalties = task.costs(self._penalty, weights)
        yield
        self._columns.begin(
            turns,
            scale=scale,
            penalties=penalties,
            barrier=barrier,
            tolerance=1e-6 * self._unit,
        )

    def _scale(self, weights: Floats) -> Work[Floats]:
        """Return the factor of the squared loss of each column.

        log v is at most v / v₀ + constant, with equality at v₀: a likelihood gives a weighted
        least-squares problem for each column, renewed in every sweep.
        """
        loss, d = self._task.loss, len(weights)
        scale = np.ones(d)
        if isinstance(loss, LikelihoodLoss):
            for start in range(0, d, _BLOCK):
                stop = start + _BLOCK
                residual, product = loss.residuals(weights, start, stop)
                left = np.einsum("ij,ij->j", residual, product)
                scale[start:stop] = 1.0 / np.maximum(left, 1e-6)
                yield
        return scale

    def describe(self) -> str:
        return f"barrier stage {self._stage + 1} of {self._options.stages}, sweep {self._sweep}"


def _inverse(matrix: Floats) -> Work[Floats]:
    from scipy.linalg import lu_factor, lu_solve

    factors = lu_factor(matrix, overwrite_a=True, check_finite=False)
    inverse = np.eye(len(matrix))
    yield
    for start in range(0, len(matrix), _BLOCK):
        block = inverse[:, start : start + _BLOCK]
        block[:] = lu_solve(factors, block, check_finite=False)
        yield
    return inverse


@final
@dataclass(frozen=True)
class ExponentialAcyclicity(Acyclicity):
    """The published constraint: an augmented Lagrangian with ``tr exp(W ∘ W) - d``.

    With more than some 500 variables SciPy's optimiser takes seconds between two evaluations, in
    which the search cannot be stopped.

    Parameters
    ----------
    tolerance
        Stop when the constraint is at most this.
    growth
        Factor by which the weight of the quadratic term grows if the constraint did not decrease
        to ``sufficient_decrease`` times its previous value.
    sufficient_decrease
        See ``growth``.
    largest
        Stop when the weight of the quadratic term reaches this value.
    """

    tolerance: float = 1e-8
    growth: float = 10.0
    sufficient_decrease: float = 0.25
    largest: float = 1e16

    def __post_init__(self) -> None:
        require_number(self, "tolerance", least=0)
        require_number(self, "growth", above=1)
        require_number(self, "sufficient_decrease", above=0)
        require_number(self, "largest", above=0)

    def begin(self, task: Task, penalty: Penalty) -> Relaxation:
        return _Lagrangian(self, task, penalty)


@final
@dataclass(frozen=True, eq=False)
class _InnerProblem:
    """The augmented Lagrangian for fixed multipliers, of the two halves of the weights."""

    loss: MomentsLoss
    costs: Floats
    """Cost of each half; a concave penalty counts by its tangent at the last outer point."""
    rho: float
    alpha: float

    def value(self, halves: Floats) -> tuple[float, Floats]:
        weights = _whole(halves)
        value, slope = self.loss.value_and_gradient(weights)
        h, h_slope = exponential(weights)
        value += 0.5 * self.rho * h * h + self.alpha * h + float(self.costs @ halves)
        smooth = (slope + (self.rho * h + self.alpha) * h_slope).ravel()
        return value, np.concatenate([smooth, -smooth]) + self.costs

    def minimise(
        self, start: Floats, upper: Floats, check: Callable[[], None]
    ) -> tuple[Any, float]:
        """Do some iterations; return SciPy's answer, and the constraint at a solution."""
        from scipy.optimize import Bounds, minimize

        def value(halves: Floats) -> tuple[float, Floats]:
            check()
            return self.value(halves)

        bounds: Any = Bounds(0.0, upper)  # the stubs take it for another type
        answer = minimize(
            value, start, method="L-BFGS-B", jac=True, bounds=bounds,
            options={"maxiter": max(20, 400_000 // len(start))},
        )  # fmt: skip
        if answer.status == _UNFINISHED:
            return answer, np.inf
        check()
        return answer, exponential(_whole(answer.x))[0]


def _whole(halves: Floats) -> Floats:
    """Return the weights of which these are the positive and the negative parts."""
    positive, negative = np.split(halves, 2)
    d = math.isqrt(len(positive))
    weights: Floats = (positive - negative).reshape(d, d)
    return weights


@final
class _Lagrangian(Relaxation):
    """L-BFGS-B on the positive and negative parts of the weights."""

    def __init__(self, options: ExponentialAcyclicity, task: Task, penalty: Penalty) -> None:
        d = len(task.open)
        self._options, self._task, self._penalty = options, task, penalty
        self._h = np.inf
        self._weights = np.zeros((d, d))
        self._work = self._descend()

    def weights(self) -> Floats:
        return self._weights

    def step(self) -> bool:
        """Continue with the inner problem, or move the multipliers."""
        return bool(next(self._work, True))

    def _descend(self) -> Work[None]:
        options, d = self._options, len(self._weights)
        rho, alpha = 1.0, 0.0
        outer = np.zeros(2 * d * d)
        while True:
            solved, h = yield from self._solve(outer, rho, alpha)
            if h > options.sufficient_decrease * self._h and rho < options.largest:
                rho *= options.growth
                continue
            outer, self._h, self._weights = solved, h, _whole(solved)
            alpha += rho * h
            if h <= options.tolerance or rho >= options.largest:
                return
            yield

    def _solve(self, start: Floats, rho: float, alpha: float) -> Work[tuple[Floats, float]]:
        """Solve the inner problem; return its solution and the constraint there."""
        upper = np.where(np.tile(self._task.open.ravel(), 2), np.inf, 0.0)
        costs = np.tile(self._task.costs(self._penalty, self._weights).ravel(), 2)
        problem = _InnerProblem(self._task.loss, costs, rho, alpha)
        while True:
            call = BackgroundCall(functools.partial(problem.minimise, start, upper))
            while not call.wait(_SLICE):
                yield
            answer, h = call.value()
            start = answer.x
            if answer.status != _UNFINISHED:
                return start, h

    def describe(self) -> str:
        return f"augmented Lagrangian, h = {self._h:.1e}"


# --- Exact local minima along and between orders of the variables -------------------------------

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
