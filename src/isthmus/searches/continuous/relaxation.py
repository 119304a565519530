"""Acyclicity constraints of NOTEARS: a log-determinant barrier, or the published Lagrangian."""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from isthmus.kernels.continuous import BarrierSweeps
from isthmus.objectives.smooth import LikelihoodLoss, MomentsLoss
from isthmus.options import require_integer, require_number
from isthmus.searches.continuous.acyclicity import exponential
from isthmus.searches.continuous.background import BackgroundCall
from isthmus.searches.continuous.notears_penalties import Penalty
from isthmus.types import Bools, Floats, Work

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
