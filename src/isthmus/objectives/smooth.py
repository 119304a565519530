"""Smooth losses of a matrix of edge weights."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from isthmus.kernels import scoring
from isthmus.objectives.base import Capabilities, Capability, Objective, Sense
from isthmus.objectives.local import LocalScore

_DETERMINED = 1e-10


EDGE_WEIGHTS: Capability[SmoothLoss] = Capability("a smooth loss over edge weights")
"""A differentiable loss of a matrix of edge weights; see `SmoothLoss`."""


SECOND_MOMENTS: Capability[MomentsLoss] = Capability("a smooth loss from second moments")
"""A loss of edge weights that a covariance matrix determines; see `MomentsLoss`."""


class SmoothLoss(Objective):
    """A differentiable loss of edge weights ``[from, to]``, to be minimised.

    Attributes
    ----------
    nodes
        Names of the variables.
    equivalent
        Whether Markov-equivalent graphs have the same minimum.
    """

    sense: ClassVar[Sense] = Sense.MINIMISE
    capabilities: Capabilities = frozenset({EDGE_WEIGHTS})

    @abstractmethod
    def value_and_gradient(self, weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return the loss at ``weights`` and its gradient."""


class MomentsLoss(SmoothLoss):
    """A loss of a linear model that is computed from second moments.

    Parameters
    ----------
    nodes
        Names of the variables.
    matrix
        The covariance ``S`` of the data, or another symmetric matrix.
    rows
        Number of rows, for information criteria; None if unknown.
    """

    capabilities: Capabilities = frozenset({EDGE_WEIGHTS, SECOND_MOMENTS})

    def __init__(
        self, nodes: Sequence[str], matrix: NDArray[np.float64], rows: int | None = None
    ) -> None:
        self.nodes = tuple(nodes)
        self.matrix = matrix
        self.rows = rows

    def value_and_gradient(self, weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        return self.columns(weights, 0, len(self.matrix))

    @abstractmethod
    def columns(
        self, weights: NDArray[np.float64], start: int, stop: int
    ) -> tuple[float, NDArray[np.float64]]:
        """Return the share of the loss of nodes ``start`` to ``stop``, and its gradient.

        Parameters
        ----------
        weights
            Weights of all edges.
        start, stop
            The nodes. The gradient has one column for each of them.
        """

    def residuals(
        self, weights: NDArray[np.float64], start: int, stop: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the columns ``start`` to ``stop`` of ``I - W``, and of ``S (I - W)``."""
        residual = -weights[:, start:stop]
        own = np.arange(residual.shape[1])
        residual[start + own, own] += 1.0
        rows = np.flatnonzero(residual.any(axis=1))
        if 2 * len(rows) > len(residual):
            return residual, self.matrix @ residual
        # The matrix is symmetric, and its rows are contiguous.
        return residual, self.matrix[rows].T @ residual[rows]

    def subset_score(self, price: float) -> LocalScore:
        """Return the local score of parent sets: the negative minimum of the loss minus a penalty.

        Parameters
        ----------
        price
            Penalty per parent, in the unit of the loss.
        """
        return _subset_score(self.nodes, self.matrix, price, logarithm=self.equivalent)


@final
class QuadraticLoss(MomentsLoss):
    """Least squares loss ``tr((I - W)^T S (I - W)) / 2``.

    Parameters
    ----------
    nodes, matrix, rows
        As for `MomentsLoss`.
    """

    equivalent = False

    def columns(
        self, weights: NDArray[np.float64], start: int, stop: int
    ) -> tuple[float, NDArray[np.float64]]:
        residual, product = self.residuals(weights, start, stop)
        return 0.5 * float(np.vdot(residual, product)), -product


@final
class LikelihoodLoss(MomentsLoss):
    """Gaussian likelihood loss ``Σ_j log((I - W)_j^T S (I - W)_j) / 2``.

    This is the negative log-likelihood of a row, up to a constant, with the optimal noise variance
    for each node. A change of units changes the loss only by a constant, so the order of graphs
    does not depend on units. Markov-equivalent graphs have the same minimum.

    Parameters
    ----------
    nodes, matrix, rows
        As for `MomentsLoss`.
    """

    equivalent = True

    def columns(
        self, weights: NDArray[np.float64], start: int, stop: int
    ) -> tuple[float, NDArray[np.float64]]:
        residual, product = self.residuals(weights, start, stop)
        least = _DETERMINED * np.diagonal(self.matrix)[start:stop]
        variances = np.maximum(np.einsum("ij,ij->j", residual, product), least)
        variances = np.where(variances > 0.0, variances, 1.0)
        return 0.5 * float(np.log(variances).sum()), -product / variances


def _subset_score(
    nodes: tuple[str, ...], matrix: NDArray[np.float64], price: float, *, logarithm: bool
) -> LocalScore:
    d = len(nodes)
    variance = np.diagonal(matrix).copy()
    constant = variance <= 0.0
    variance[constant] = 1.0
    spread = np.sqrt(variance)
    correlation = np.clip(matrix / spread[:, None] / spread[None, :], -1.0, 1.0)
    # A constant column is independent of all others.
    correlation[constant, :] = correlation[:, constant] = 0.0
    np.fill_diagonal(correlation, 1.0)
    costs = -price * np.arange(d + 1, dtype=np.float64)
    none = np.zeros(d + 1)
    kernel = scoring.gaussian_score(
        correlation,
        np.log(variance),
        constant=costs,
        log_variance=np.full(d + 1, 0.5) if logarithm else none,
        log_determinant=none,
        squares=None if logarithm else 0.5 * np.where(constant, 0.0, variance),
        tolerance=_DETERMINED,
    )
    return LocalScore(nodes, kernel, equivalent=logarithm)
