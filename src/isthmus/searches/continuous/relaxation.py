"""Acyclicity constraints of NOTEARS: a log-determinant barrier, or the published Lagrangian."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from isthmus.objectives.smooth import LikelihoodLoss, MomentsLoss
from isthmus.searches.continuous.acyclicity import exponential
from isthmus.searches.continuous.notears_penalties import Penalty
from isthmus.types import Bools, Floats


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

    def objective(self, penalty: Penalty, weights: Floats) -> float:
        """Loss and penalty."""
        paid = np.where(self.required, 0.0, penalty.value(weights))
        return self.loss.value_and_gradient(weights)[0] + float(paid.sum())


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
        First t, as a share of the mean variance (for a likelihood, as it is).
    growth
        Factor between stages.
    stages
        Number of stages.
    sweeps
        Most passes over all nodes in a stage.
    """

    radius: float = 1.0
    start: float = 0.03
    growth: float = 4.0
    stages: int = 7
    sweeps: int = 8

    def begin(self, task: Task, penalty: Penalty) -> Relaxation:
        """Start from no weights."""
        return _Barrier(self, task, penalty)


@final
class _Barrier(Relaxation):
    def __init__(self, options: LogDet, task: Task, penalty: Penalty) -> None:
        from isthmus.numerics import columns

        d = len(task.open)
        self._kernels = columns
        self._options, self._task, self._penalty = options, task, penalty
        self._moments = np.array(task.loss.matrix, order="C")
        self._incoming = np.zeros((d, d))
        self._inverse = np.eye(d)
        self._room = columns.new_room(d)
        self._unit = float(np.diagonal(self._moments).mean()) if d else 1.0
        if isinstance(task.loss, LikelihoodLoss):
            self._unit = 1.0
        self._stage = self._sweep = 0
        self._queue = np.empty(0, np.int64)
        self._at, self._moved = 0, np.inf
        # A column costs d²: so many of them take a tenth of a second or so.
        self._chunk = max(1, 40_000_000 // max(d * d, 1))

    def weights(self) -> Floats:
        """Return the current weights, ``[from, to]``."""
        return self._incoming.T

    def step(self) -> bool:
        """Do some columns of a sweep."""
        if self._at >= len(self._queue):
            if self._turn_over():
                return True
            self._begin_sweep()
        stop = min(self._at + self._chunk, len(self._queue))
        moved = self._kernels.sweep(
            self._problem, self._incoming, self._inverse, self._queue[self._at : stop],
            self._options.start * self._options.growth**self._stage * self._unit,
            self._options.radius, 1e-6 * self._unit, self._room,
        )  # fmt: skip
        self._moved = max(self._moved, float(moved))
        self._at = stop
        return False

    def _turn_over(self) -> bool:
        """Decide at the end of a sweep what comes next; return whether nothing does."""
        if len(self._queue) and (self._moved < 1e-3 or self._sweep >= self._options.sweeps):
            self._stage += 1
            self._sweep = 0
        return self._stage >= self._options.stages or not len(self._moments)

    def _begin_sweep(self) -> None:
        task, d = self._task, len(self._incoming)
        self._sweep += 1
        self._moved = 0.0
        self._at = 0
        self._queue = task.rng.permutation(d)
        scale = np.ones(d)
        if isinstance(task.loss, LikelihoodLoss):
            # log v is at most v / v₀ + constant, with equality at v₀: a weighted least-squares
            # problem for each column, renewed in every sweep.
            residual = np.eye(d) - self.weights()
            left = np.einsum("ij,ij->j", residual, self._moments @ residual)
            scale = 1.0 / np.maximum(left, 1e-6)
        self._problem = self._kernels.Problem(
            self._moments,
            scale,
            np.array(task.costs(self._penalty, self.weights()).T, order="C"),
            np.array(task.open.T, order="C"),
            np.array(task.required.T, order="C"),
        )
        matrix = self._options.radius * np.eye(d) - self.weights() ** 2
        ones = np.ones(d)
        if np.abs(self._inverse @ (matrix @ ones) - ones).max() > 1e-8:
            self._inverse = np.ascontiguousarray(np.linalg.inv(matrix))

    def describe(self) -> str:
        """Return a phrase for the progress line."""
        return f"barrier stage {self._stage + 1} of {self._options.stages}, sweep {self._sweep}"


@final
@dataclass(frozen=True)
class Exponential(Acyclicity):
    """The published method: an augmented Lagrangian with ``tr exp(W ∘ W) - d``.

    Parameters
    ----------
    tolerance
        Stop when the constraint is at most this.
    growth
        Factor of the quadratic term when the measure does not fall to ``progress`` of what it was.
    progress
        See ``growth``.
    largest
        Stop when the quadratic term has this weight.
    """

    tolerance: float = 1e-8
    growth: float = 10.0
    progress: float = 0.25
    largest: float = 1e16

    def begin(self, task: Task, penalty: Penalty) -> Relaxation:
        """Start from no weights."""
        return _Lagrangian(self, task, penalty)


@final
class _Lagrangian(Relaxation):
    """L-BFGS-B on the positive and negative parts of the weights, some iterations a step."""

    def __init__(self, options: Exponential, task: Task, penalty: Penalty) -> None:
        d = len(task.open)
        self._options, self._task, self._penalty = options, task, penalty
        self._rho, self._alpha, self._h = 1.0, 0.0, np.inf
        self._outer = np.zeros(2 * d * d)
        self._inner = self._outer
        self._upper = np.where(np.tile(task.open.ravel(), 2), np.inf, 0.0)
        self._weights = np.zeros((d, d))

    def weights(self) -> Floats:
        """Return the current weights, ``[from, to]``."""
        return self._weights

    def _whole(self, halves: Floats) -> Floats:
        d = len(self._weights)
        weights: Floats = (halves[: d * d] - halves[d * d :]).reshape(d, d)
        return weights

    def _value(self, halves: Floats) -> tuple[float, Floats]:
        weights = self._whole(halves)
        value, slope = self._task.loss.value_and_gradient(weights)
        h, h_slope = exponential(weights)
        # Concave penalties by their tangent at the last outer point.
        costs = self._task.costs(self._penalty, self._weights).ravel()
        both = np.concatenate([costs, costs])
        value += 0.5 * self._rho * h * h + self._alpha * h + float(both @ halves)
        smooth = (slope + (self._rho * h + self._alpha) * h_slope).ravel()
        return value, np.concatenate([smooth, -smooth]) + both

    def step(self) -> bool:
        """Do some iterations of the inner problem, or move the multipliers."""
        from scipy.optimize import Bounds, minimize

        d = len(self._weights)
        if d == 0:
            return True
        bounds: Any = Bounds(0.0, self._upper)  # the stubs take it for another type
        done = minimize(
            self._value, self._inner, method="L-BFGS-B", jac=True, bounds=bounds,
            options={"maxiter": max(20, 200_000 // (d * d))},
        )  # fmt: skip
        self._inner = done.x
        if done.status == 1:  # not there yet
            return False
        h = exponential(self._whole(done.x))[0]
        if h > self._options.progress * self._h and self._rho < self._options.largest:
            self._rho *= self._options.growth
            self._inner = self._outer
            return False
        self._outer, self._h = done.x, h
        self._weights = self._whole(done.x)
        self._alpha += self._rho * h
        return h <= self._options.tolerance or self._rho >= self._options.largest

    def describe(self) -> str:
        """Return a phrase for the progress line."""
        return f"augmented Lagrangian, h = {self._h:.1e}"
