"""The central path to an acyclic graph, for any differentiable model whose parameters have edges.

For falling μ the sum ``μ (loss + penalty) + h`` is minimised, each time from the last minimum, with
h the log-determinant of the squared weights of edges (Bello et al. 2022, arXiv 2209.08037). The
weight of an edge is the norm of its parameters. Norms are smoothed near zero, so that L-BFGS can be
used; the search removes what is small in the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from isthmus.arrays import Bools, Floats, Integers, Work
from isthmus.graphs import BoundKnowledge
from isthmus.kernels import _native
from isthmus.searches.notears import LBFGS, Function

SMOOTHING = 1e-3
_LARGE = 100
"""Number of nodes from which the inverse of a matrix is computed in pieces."""
_NUMBERS = 2**17
"""Numbers of an inverse that are computed in one piece: with 1,000 nodes some 20 ms."""


@dataclass(frozen=True)
class PathStage:
    """One value of μ, with the bound on the spectral radius and when to leave it."""

    mu: float
    radius: float
    tolerance: float
    iterations: int


PATH = (
    PathStage(1.0, 1.0, 1e-5, 500),
    PathStage(0.1, 0.9, 1e-5, 500),
    PathStage(0.01, 0.8, 1e-5, 500),
    PathStage(0.001, 0.7, 1e-6, 1000),
)
"""Stages of the path: enough for the weights of cycles to fall far below any threshold."""


@final
@dataclass(frozen=True, eq=False)
class PathProblem:
    """A model whose parameters belong to edges.

    Attributes
    ----------
    function
        Value and gradient of the smooth loss.
    start
        First parameters.
    edge
        For each parameter the edge it belongs to, as ``cause * targets + target``; -1 for none.
    nodes, targets
        Numbers of possible causes and of effects; the first ``targets`` nodes are both.
    allowed
        Edges that may be there, shape (nodes, targets).
    penalties
        Weight of the penalty of each edge, shape (nodes, targets).
    grouped
        Whether the penalty is on the norm of an edge's parameters, or on each of them.
    """

    function: Function
    start: Floats
    edge: Integers
    nodes: int
    targets: int
    allowed: Bools
    penalties: Floats
    grouped: bool

    def squares(self, parameters: Floats) -> Floats:
        """Squared weight of each edge, shape (nodes, targets)."""
        # The last cell collects what belongs to no edge.
        size = self.nodes * self.targets
        cells = np.where(self.edge < 0, size, self.edge)
        sums = _sums(cells, parameters * parameters, size + 1)
        return sums[:size].reshape(self.nodes, self.targets)

    def weights(self, parameters: Floats) -> Floats:
        """Weight of each edge."""
        weights: Floats = np.sqrt(self.squares(parameters))
        return weights


def _sums(cells: Integers, values: Floats, size: int) -> Floats:
    """Add up the values of each cell."""
    # The stubs forget that weights make the sums floats.
    return np.asarray(np.bincount(cells, values, size), dtype=np.float64)


def log_determinant(squares: Floats, radius: float) -> Work[tuple[float, Floats] | None]:
    """Return h and its gradient for squared weights; None if the spectral radius is too large."""
    from scipy.linalg import lapack

    d = len(squares)
    factors, pivots, singular = lapack.dgetrf(radius * np.eye(d) - squares)
    if d >= _LARGE:
        yield
    if singular:
        return None
    inverse = np.zeros((d, d), order="F")
    np.fill_diagonal(inverse, 1.0)
    width = max(1, _NUMBERS // d)
    for start in range(0, d, width):
        part = inverse[:, start : start + width]
        part[:], _ = lapack.dgetrs(factors, pivots, part)
        if d >= _LARGE:
            yield
    if not np.isfinite(inverse).all() or inverse.min() < -1e-12 * float(np.abs(inverse).max()):
        return None
    diagonal = factors.diagonal()
    if (np.count_nonzero(diagonal < 0.0) + np.count_nonzero(pivots != np.arange(d))) % 2:
        return None
    log_det = float(np.log(np.abs(diagonal)).cumsum()[-1])
    return d * float(np.log(radius)) - log_det, inverse.T


@final
class CentralPath:
    """Minimisation along the central path, one iteration at a time.

    Attributes
    ----------
    parameters
        Parameters after the last iteration.
    evaluations, iterations
        How many there were so far.
    """

    def __init__(self, problem: PathProblem, stages: tuple[PathStage, ...] = PATH) -> None:
        self.problem = problem
        self._stages = stages
        self._at = -1
        self._quiet = 0
        self.evaluations = self.iterations = 0
        self.parameters = problem.start
        self._solver: LBFGS | None = None

    def _begin(self) -> Work[None]:
        """Find for each parameter its edge, and whether it may be there."""
        problem, size = self.problem, self.problem.nodes * self.problem.targets
        self._penalties = np.append(problem.penalties.ravel(), 0.0)
        self._owned = problem.edge >= 0
        yield
        # The last cell is for what belongs to no edge.
        self._cells = np.where(self._owned, problem.edge, size)
        yield
        self._open = np.append(problem.allowed.ravel(), True)[self._cells]
        yield
        self.parameters = np.where(self._open, problem.start, 0.0)
        yield

    def _next(self, start: Floats) -> Work[LBFGS]:
        """Begin the next stage."""
        stage, d = self._stages[self._at + 1], self.problem.targets
        size = self.problem.nodes * d
        # A tighter bound on the spectral radius may leave the last minimum outside.
        while True:
            squared = start * start
            yield
            squares = _sums(self._cells, squared, size + 1)[: d * d].reshape(d, d)
            yield
            if (yield from log_determinant(squares, stage.radius)) is not None:
                break
            start = np.where(self._owned, 0.9 * start, start)
        solver = LBFGS(lambda x: self._value(x, stage), start)
        yield from solver.begin()
        self._at += 1
        self._quiet = 0
        return solver

    def _value(self, parameters: Floats, stage: PathStage) -> Work[tuple[float, Floats]]:
        problem, d = self.problem, self.problem.targets
        self.evaluations += 1
        size = problem.nodes * d
        squared = parameters * parameters
        squares = _sums(self._cells, squared, size + 1)
        yield
        barrier = yield from log_determinant(squares[: d * d].reshape(d, d), stage.radius)
        if barrier is None:
            return np.inf, np.full_like(parameters, np.nan)
        loss, gradient = yield from problem.function(parameters)
        if not np.isfinite(loss):
            return np.inf, np.full_like(parameters, np.nan)
        cost, slope = yield from self._penalty(squared, squares)
        h, pull = barrier
        pulls = np.zeros(size + 1)
        pulls[: d * d] = 2.0 * pull.ravel()
        slope *= stage.mu
        slope += pulls[self._cells]
        yield
        slope *= parameters
        gradient = stage.mu * gradient
        gradient += slope
        gradient *= self._open
        return stage.mu * (loss + cost) + h, gradient

    def _penalty(self, squared: Floats, squares: Floats) -> Work[tuple[float, Floats]]:
        """Return the smoothed penalty, and the factor of the parameters in its gradient."""
        if self.problem.grouped:
            norms = np.sqrt(squares + SMOOTHING**2)
            cost = float(self._penalties @ (norms - SMOOTHING))
            factors: Floats = (self._penalties / norms)[self._cells]
        else:
            factors = self._penalties[self._cells]
            sizes = squared + SMOOTHING**2
            yield
            np.sqrt(sizes, out=sizes)
            cost = float(factors @ (sizes - SMOOTHING))
            yield
            factors /= sizes
        yield
        return cost, factors

    def iterate(self) -> Work[bool]:
        """Do one iteration; return whether the end of the path is reached."""
        if not self.iterations:
            yield from self._begin()
        solver = self._solver
        if solver is None:
            solver = self._solver = yield from self._next(self.parameters)
        stage = self._stages[self._at]
        fell = yield from solver.iterate()
        self.iterations += 1
        self.parameters = solver.x
        self._quiet = self._quiet + 1 if fell <= stage.tolerance * stage.mu else 0
        if fell == 0.0 or self._quiet >= 3 or solver.iterations >= stage.iterations:
            if self._at + 1 == len(self._stages):
                return True
            self._solver = None
        return False

    def describe(self) -> str:
        """Return a phrase for the progress line."""
        text = f"stage {max(self._at, 0) + 1} of {len(self._stages)}"
        if self._solver is None:
            return text
        return f"{text}, {self._solver.iterations} iterations, value {self._solver.value:.6g}"


def allowed_edges(knowledge: BoundKnowledge, targets: int) -> Bools:
    """Edges that knowledge leaves open, shape (nodes, targets); none against what is required."""
    reach = _native.reachable(knowledge.required)
    allowed: Bools = ~(knowledge.forbidden | reach.T)[:, :targets]
    return allowed
