"""The central path of an additive loss, and how far its end is from an optimum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from isthmus.graphs.order import order_of
from isthmus.kernels import _native
from isthmus.kernels.continuous import acyclic_part
from isthmus.objectives import AdditiveLoss, QuadraticAdditiveLoss
from isthmus.objectives.additive_part import PartOfQuadraticLoss, pays
from isthmus.searches.continuous.central_path import CentralPath, PathProblem
from isthmus.searches.continuous.lbfgs import LARGE
from isthmus.searches.continuous.order_descent import SolvedOrder
from isthmus.types import Bools, Floats, Integers, Work


@final
@dataclass(frozen=True, eq=False)
class AdditiveCandidate:
    """The solution for one penalty, and the graph that was chosen along its order."""

    share: float
    penalties: Floats
    descent: SolvedOrder
    graph: Bools
    criterion: float | None
    moved: bool


@final
@dataclass(frozen=True, eq=False)
class Answer:
    """A graph with coefficients and all that `best` tells about them, in units of the noise."""

    coefficients: Floats
    graph: Bools
    value: float
    residual: float
    removed: int


_SCREENED = 40
"""With more targets, edges that look like noise on their own are left out of the path."""
_NOISE = 0.6
"""Gradients below this share of what noise alone reaches at most look like noise."""
_LEAST = 1e-3
"""Edges of a smaller weight say nothing about the order."""


@final
class AdditivePath:
    """The central path over the coefficients of an additive loss.

    Parameters
    ----------
    loss
        The loss, in units of the noise.
    allowed, required
        Edges that may and that must be there, shape (nodes, targets).
    penalties
        Penalty of each edge.
    """

    def __init__(
        self, loss: AdditiveLoss, allowed: Bools, required: Bools, penalties: Floats
    ) -> None:
        self._loss, self._allowed, self._required = loss, allowed, required
        self._penalties = penalties
        self._open = np.empty(0, dtype=np.int64)
        self._path: CentralPath | None = None

    def _begin(self) -> Work[CentralPath]:
        loss = self._loss
        self._open = self._open_places(self._allowed)
        yield
        rows, columns = np.divmod(self._open, loss.targets)
        yield
        owner = loss.owner[rows]
        edge = np.where(owner < 0, -1, owner * loss.targets + columns)
        del rows, columns, owner
        yield
        function = self._value_and_gradient
        if isinstance(loss, QuadraticAdditiveLoss) and pays(loss, self._open):
            function = PartOfQuadraticLoss(loss, self._open).evaluation
        start = np.zeros(len(self._open))
        nodes, targets = len(loss.nodes), loss.targets
        yield
        return CentralPath(
            PathProblem(
                function, start, edge, nodes, targets, self._allowed, self._penalties, grouped=True
            )
        )

    def _open_places(self, allowed: Bools) -> Integers:
        """Return the flat places of the coefficients that are optimised."""
        owned = self._loss.owner >= 0
        open_ = np.ones((len(self._loss.owner), self._loss.targets), dtype=np.bool_)
        open_[owned] = allowed[self._loss.owner[owned]]
        return np.flatnonzero(open_)

    def _value_and_gradient(self, parameters: Floats) -> Work[tuple[float, Floats]]:
        large = len(parameters) >= LARGE
        coefficients = self._matrix(parameters)
        if large:
            yield
        value, gradient = yield from self._loss.evaluation(coefficients)
        open_gradient: Floats = gradient.ravel()[self._open]
        if large:
            yield
        return value, open_gradient

    def _matrix(self, parameters: Floats) -> Floats:
        coefficients = np.zeros(len(self._loss.owner) * self._loss.targets)
        coefficients[self._open] = parameters
        return coefficients.reshape(-1, self._loss.targets)

    def iterate(self) -> Work[bool]:
        """Do one iteration; return whether the end of the path is reached."""
        if self._path is None:
            self._path = yield from self._begin()
            yield
        return (yield from self._path.iterate())

    def describe(self) -> str:
        """Return a phrase for the progress line."""
        return "start" if self._path is None else self._path.describe()

    @property
    def iterations(self) -> int:
        """Number of iterations."""
        return 0 if self._path is None else self._path.iterations

    @property
    def evaluations(self) -> int:
        """Number of evaluations of the loss."""
        return 0 if self._path is None else self._path.evaluations

    def coefficients(self) -> Floats:
        """Return the coefficients reached, shape (rows, targets)."""
        if self._path is None:
            return np.zeros((len(self._loss.owner), self._loss.targets))
        return self._matrix(self._path.parameters)

    def order(self) -> list[int]:
        """Return the order of the heaviest edges that close no cycle."""
        targets = self._loss.targets
        weights = edge_norms(self._loss, self.coefficients())[:targets]
        order = order_of(acyclic_part(weights, self._required[:targets], _LEAST))
        assert order is not None
        return order


def edge_norms(loss: AdditiveLoss, values: Floats) -> Floats:
    """Return the norm of the values of each edge, shape (nodes, targets)."""
    squares = np.zeros((len(loss.nodes), loss.targets))
    for row, node in enumerate(loss.owner.tolist()):
        if node >= 0:
            squares[node] += values[row] * values[row]
    norms: Floats = np.sqrt(squares)
    return norms


def screened(loss: AdditiveLoss, allowed: Bools, required: Bools, noise: Floats) -> Work[Bools]:
    """Leave out edges that look like noise on their own, where there are many targets.

    Parameters
    ----------
    loss
        The loss, in units of the noise.
    allowed, required
        Edges that may and that must be there, shape (nodes, targets).
    noise
        Gradients that noise alone reaches at most, for each edge.
    """
    if loss.targets <= _SCREENED:
        return allowed
    kept = np.empty_like(allowed)
    nothing, none = np.empty(0, dtype=np.int64), np.empty(0)
    owned = np.flatnonzero(loss.owner >= 0)
    owner = loss.owner[owned]
    for j in range(loss.targets):
        value, gradient = loss.column(j, nothing, none)
        spread = 1.0 if loss.likelihood else np.sqrt(2.0 * max(value, 0.0))
        sizes = np.sqrt(np.bincount(owner, gradient[owned] ** 2, len(loss.nodes)))
        kept[:, j] = sizes > _NOISE * noise[:, j] * spread
        yield
    open_: Bools = allowed & (required | kept)
    return open_


def loss_and_violation(
    loss: AdditiveLoss, allowed: Bools, coefficients: Floats, graph: Bools, penalties: Floats
) -> Work[tuple[float, float]]:
    """Return the loss of coefficients, and by how much they violate the optimality conditions.

    Parameters
    ----------
    loss
        The loss.
    allowed
        Edges that may be there, shape (nodes, targets).
    coefficients
        Zero where the graph has no edge.
    graph
        An acyclic graph; edges that would close a cycle in it need not be optimal.
    penalties
        Weight of the penalty of each edge.
    """
    targets, nodes = loss.targets, len(loss.nodes)
    closed = np.zeros_like(graph)
    square = np.ascontiguousarray(graph[:targets])
    closed[:targets] = _native.reachable(square).T | np.eye(targets, dtype=np.bool_)
    open_ = allowed & ~closed
    # What belongs to no node is counted for one that does not exist.
    owner = np.where(loss.owner < 0, nodes, loss.owner)
    yield
    value, worst = 0.0, 0.0
    for j in range(targets):
        own = coefficients[:, j]
        rows = np.flatnonzero(own)
        part, gradient = loss.column(j, rows, own[rows])
        value += part
        free = np.abs(gradient[loss.owner < 0]).max(initial=0.0)
        sizes = np.sqrt(np.bincount(owner, own * own, nodes + 1))
        there = sizes[:nodes] > 0.0
        pull = np.zeros(nodes + 1)
        np.divide(penalties[:, j], sizes[:nodes], out=pull[:nodes], where=there)
        pulled = gradient + pull[owner] * own
        steep = np.sqrt(np.bincount(owner, pulled * pulled, nodes + 1))[:nodes]
        entering = np.where(open_[:, j], np.maximum(steep - penalties[:, j], 0.0), 0.0)
        worst = max(worst, float(free), float(np.where(there, steep, entering).max(initial=0.0)))
        yield
    return value, worst
