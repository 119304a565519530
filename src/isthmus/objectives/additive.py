"""Additive losses: each node a sum of functions of its causes, linear in coefficients.

Linear, generalised linear and basis-expanded models are of this kind, with or without the past.
Coefficients are a matrix ``[row, target]``. A row belongs to a node, its possible cause: one row
for a linear effect, several for a curve, and rows of no node are constants. The weight of an edge
is the norm of its coefficients.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, final

import numpy as np

from isthmus.graphs.lags import Lag
from isthmus.objectives.base import ADDITIVE_MODEL, LAGGED_MODEL, Capabilities, Objective, Sense
from isthmus.types import Floats, Integers


class AdditiveLoss(Objective):
    """A differentiable objective, to be minimised; mostly convex for a given order of the nodes.

    Attributes
    ----------
    nodes
        Names of all possible causes. The first ``targets`` are explained; the others, such as the
        past of a series, only explain.
    targets
        How many nodes are explained.
    owner
        For each row of the coefficients the node it belongs to, -1 for a constant.
    sample_size
        Number of observations behind the loss; None if it is not known. Criteria that weigh fit
        against the number of edges need it.
    likelihood
        Whether the loss is minus a mean log-likelihood, in nats per observation. Otherwise it is
        half a mean square, in squared units of the targets.
    lags
        For each node, the variable it is and how many time steps earlier; empty where the model
        knows no time.
    """

    sense: ClassVar[Sense] = Sense.MINIMISE
    capabilities: Capabilities = frozenset({ADDITIVE_MODEL})
    equivalent = False
    targets: int
    owner: Integers
    sample_size: int | None = None
    likelihood: bool = False
    lags: tuple[Lag, ...] = ()

    @abstractmethod
    def value_and_gradient(self, coefficients: Floats) -> tuple[float, Floats]:
        """Return the loss at ``coefficients`` and its gradient."""

    @abstractmethod
    def column(self, target: int, rows: Integers, coefficients: Floats) -> tuple[float, Floats]:
        """Return the loss of one target, and its gradient over all rows.

        Parameters
        ----------
        target
            Which node is explained.
        rows, coefficients
            The coefficients that are not zero.
        """

    @abstractmethod
    def curvature(self, target: int, rows: Integers, coefficients: Floats) -> Floats:
        """Return the Hessian of the loss of one target over ``rows``, or what stands for it."""


@final
class QuadraticAdditiveLoss(AdditiveLoss):
    """Least squares from the second moments of features Φ and targets Y alone.

    With ``q_j = |y_j - Φ c_j|²/2n`` the loss is ``Σ_j q_j``; or, profiled, ``Σ_j log(2 q_j) / 2``:
    minus the mean Gaussian log-likelihood with the best variance for each target.

    Parameters
    ----------
    nodes, owner
        As above.
    features
        Second moments of the rows' features Φ.
    cross
        Second moments of Φ with the targets, shape (rows, targets).
    variances
        Second moments of the targets.
    profiled
        Which of the two.
    sample_size
        Number of observations behind the moments, if known.
    lags
        As above.
    """

    def __init__(
        self,
        nodes: Sequence[str],
        owner: Integers,
        features: Floats,
        cross: Floats,
        variances: Floats,
        *,
        profiled: bool = False,
        sample_size: int | None = None,
        lags: Sequence[Lag] = (),
    ) -> None:
        self.nodes = tuple(nodes)
        self.targets = cross.shape[1]
        if self.targets < len(self.nodes):
            self.capabilities = frozenset({ADDITIVE_MODEL, LAGGED_MODEL})
        self.owner = owner
        self.features = features
        self.cross = cross
        self.variances = variances
        self.profiled = self.likelihood = profiled
        self.sample_size = sample_size
        self.lags = tuple(lags)
        # What is explained to the last digit must not make the likelihood infinite.
        self._least = 1e-12 * np.maximum(variances, 1e-300)

    def value_and_gradient(self, coefficients: Floats) -> tuple[float, Floats]:
        """Return the loss at ``coefficients`` and its gradient."""
        product = self.features @ coefficients
        squares = 0.5 * self.variances
        squares = squares + np.einsum("ij,ij->j", coefficients, 0.5 * product - self.cross)
        gradient = product - self.cross
        if not self.profiled:
            return float(squares.sum()), gradient
        squares = np.maximum(squares, self._least)
        return 0.5 * float(np.log(2.0 * squares).sum()), gradient / (2.0 * squares)

    def column(self, target: int, rows: Integers, coefficients: Floats) -> tuple[float, Floats]:
        """Return the loss of one target, and its gradient over all rows."""
        gradient = self.features[:, rows] @ coefficients - self.cross[:, target]
        linear = gradient[rows] - self.cross[rows, target]
        square = 0.5 * float(self.variances[target] + coefficients @ linear)
        if not self.profiled:
            return square, gradient
        square = max(square, float(self._least[target]))
        return 0.5 * float(np.log(2.0 * square)), gradient / (2.0 * square)

    def curvature(self, target: int, rows: Integers, coefficients: Floats) -> Floats:
        """Return the Hessian of one target over ``rows``; profiled, its positive part."""
        found = self.features[np.ix_(rows, rows)]
        if not self.profiled:
            return found
        product = found @ coefficients
        square = 0.5 * float(self.variances[target])
        square += float(coefficients @ (0.5 * product - self.cross[rows, target]))
        return found / (2.0 * max(square, float(self._least[target])))
