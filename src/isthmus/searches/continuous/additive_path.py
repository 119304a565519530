"""The central path of an additive loss: from no edges to an order of the nodes."""

from __future__ import annotations

from typing import final

import numpy as np

from isthmus.graphs.adjacency import heaviest_acyclic, order_of
from isthmus.objectives import AdditiveLoss
from isthmus.searches.continuous.central_path import CentralPath, Problem
from isthmus.types import Bools, Floats, Integers

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
        Of each edge.
    noise
        Gradients that noise alone reaches at most, for each edge; None to leave nothing out.
    """

    def __init__(
        self,
        loss: AdditiveLoss,
        allowed: Bools,
        required: Bools,
        penalties: Floats,
        noise: Floats | None,
    ) -> None:
        self._loss, self._required = loss, required
        if noise is not None and loss.targets > _SCREENED:
            allowed = allowed & (required | stands_out(loss, noise))
        self._open = self._open_places(allowed)
        rows, columns = np.divmod(self._open, loss.targets)
        owner = loss.owner[rows]
        problem = Problem(
            self._value_and_gradient,
            np.zeros(len(self._open)),
            np.where(owner < 0, -1, owner * loss.targets + columns),
            len(loss.nodes),
            loss.targets,
            allowed,
            penalties,
            grouped=True,
        )
        self._path = CentralPath(problem)

    def _open_places(self, allowed: Bools) -> Integers:
        """Return the flat places of the coefficients that are optimised."""
        owned = self._loss.owner >= 0
        open_ = np.ones((len(self._loss.owner), self._loss.targets), dtype=np.bool_)
        open_[owned] = allowed[self._loss.owner[owned]]
        return np.flatnonzero(open_)

    def _value_and_gradient(self, parameters: Floats) -> tuple[float, Floats]:
        value, gradient = self._loss.value_and_gradient(self._matrix(parameters))
        return value, gradient.ravel()[self._open]

    def _matrix(self, parameters: Floats) -> Floats:
        coefficients = np.zeros(len(self._loss.owner) * self._loss.targets)
        coefficients[self._open] = parameters
        return coefficients.reshape(-1, self._loss.targets)

    def step(self) -> bool:
        """Go on for a slice of time; return whether the end of the path is reached."""
        return self._path.step()

    def describe(self) -> str:
        """Say where on the path this is."""
        return self._path.describe()

    @property
    def evaluations(self) -> int:
        """Number of evaluations of the loss."""
        return self._path.evaluations

    def coefficients(self) -> Floats:
        """Return the coefficients reached, shape (rows, targets)."""
        return self._matrix(self._path.parameters)

    def order(self) -> list[int]:
        """Return the order of the heaviest edges that close no cycle."""
        targets = self._loss.targets
        weights = edge_norms(self._loss, self.coefficients())[:targets]
        order = order_of(heaviest_acyclic(weights, self._required[:targets], _LEAST))
        assert order is not None
        return order


def edge_norms(loss: AdditiveLoss, values: Floats) -> Floats:
    """Return the norm of the values of each edge, shape (nodes, targets)."""
    owned = loss.owner >= 0
    squares = np.zeros((len(loss.nodes), loss.targets))
    np.add.at(squares, loss.owner[owned], values[owned] ** 2)
    norms: Floats = np.sqrt(squares)
    return norms


def stands_out(loss: AdditiveLoss, noise: Floats) -> Bools:
    """Return for each edge whether its gradient without any edge is more than likely noise."""
    _, gradient = loss.value_and_gradient(np.zeros((len(loss.owner), loss.targets)))
    spread = np.ones(loss.targets)
    if not loss.likelihood:
        none = np.empty(0, dtype=np.int64)
        losses = [loss.column(j, none, np.empty(0))[0] for j in range(loss.targets)]
        spread = np.sqrt(2.0 * np.maximum(losses, 0.0))
    above: Bools = edge_norms(loss, gradient) > _NOISE * noise * spread
    return above
