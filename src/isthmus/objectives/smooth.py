"""Smooth losses: a number and its gradient for a matrix of edge weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray


class SmoothLoss(ABC):
    """A differentiable objective of weights ``[from, to]``, to be minimised."""

    nodes: tuple[str, ...]

    @abstractmethod
    def value_and_gradient(self, weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return the loss at ``weights`` and its gradient."""


@final
class QuadraticLoss(SmoothLoss):
    """``tr((I - W)^T S (I - W)) / 2`` for a symmetric matrix ``S``.

    With ``S`` the covariance of the data this is the least-squares loss of a linear model,
    whatever the number of rows was.
    """

    def __init__(self, nodes: Sequence[str], matrix: NDArray[np.float64]) -> None:
        self.nodes = tuple(nodes)
        self.matrix = matrix

    def value_and_gradient(self, weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return the loss at ``weights`` and its gradient."""
        residual = np.eye(len(self.matrix)) - weights
        product = self.matrix @ residual
        return 0.5 * float(np.vdot(residual, product)), -product
