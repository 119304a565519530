"""Losses of additive models: each node is a sum of functions of its causes.

Linear, generalised linear and basis-expanded models are additive models, with or without lagged
effects. Coefficients are a matrix ``[row, target]``. Each row belongs to a node, a possible cause:
one row for a linear effect, several for a curve. Rows that belong to no node are constants. The
weight of an edge is the norm of its coefficients.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats, Integers, Work, completed
from isthmus.graphs.knowledge import Lag
from isthmus.kernels.scoring import CurveScore
from isthmus.kernels.scoring import LocalScore as LocalScoreKernel
from isthmus.objectives.local import (
    LOCAL_SCORES,
    Capabilities,
    Capability,
    FamilyCost,
    LocalScore,
    Objective,
)
from isthmus.watch import Sense

ADDITIVE_MODEL: Capability[AdditiveLoss] = Capability("a loss of additive models")
"""A loss that is linear in the coefficients of each cause; see `AdditiveLoss`."""


LAGGED_MODEL: Capability[AdditiveLoss] = Capability("a loss with lagged effects")
"""An additive loss whose last nodes are earlier time steps of the first ones, as `lags` states."""

PIECE = 2**28
"""Multiplications in one piece of an evaluation; they take some 20 ms."""


class AdditiveLoss(Objective):
    """A differentiable loss of an additive model, to be minimised.

    Attributes
    ----------
    nodes
        Names of all possible causes. The first ``targets`` of them are also effects; the others,
        such as lagged variables, are causes only.
    targets
        Number of nodes that can be effects.
    owner
        The node to which each row of the coefficients belongs; -1 for a constant.
    sample_size
        Number of observations; None if unknown. Information criteria need it.
    likelihood
        Whether the loss is a negative mean log-likelihood, in nats per observation. Otherwise it
        is half a mean squared error, in squared units of the targets.
    lags
        For each node, its variable and its lag; empty if the model has no lagged effects.
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

    def evaluation(self, coefficients: Floats) -> Work[tuple[float, Floats]]:
        """Compute `value_and_gradient` in pieces; override it where that takes long."""
        yield
        return self.value_and_gradient(coefficients)

    @abstractmethod
    def column(self, target: int, rows: Integers, coefficients: Floats) -> tuple[float, Floats]:
        """Return the loss of one target, and its gradient with respect to all rows.

        Parameters
        ----------
        target
            Index of the target.
        rows, coefficients
            Rows of the nonzero coefficients, and their values.
        """

    @abstractmethod
    def curvature(self, target: int, rows: Integers, coefficients: Floats) -> Floats:
        """Return the Hessian of the loss of one target over ``rows``, or an approximation of it."""


@final
class QuadraticAdditiveLoss(AdditiveLoss):
    """Least squares loss, computed from second moments of features Φ and targets Y.

    With ``q_j = |y_j - Φ c_j|²/2n`` the loss is ``Σ_j q_j``. If profiled, it is
    ``Σ_j log(2 q_j) / 2``: the negative mean Gaussian log-likelihood with the optimal variance for
    each target.

    Parameters
    ----------
    nodes, owner
        As for `AdditiveLoss`.
    features
        Second moments of the features Φ.
    cross
        Second moments of Φ with the targets, shape (rows, targets).
    variances
        Second moments of the targets.
    profiled
        Whether the loss is the profiled log-likelihood.
    sample_size
        Number of observations, if known.
    lags
        As for `AdditiveLoss`.

    Attributes
    ----------
    least
        Smallest ``q_j`` that the likelihood of each target is computed with.
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
        # Avoid an infinite likelihood for targets that are explained completely.
        self.least = 1e-12 * np.maximum(variances, 1e-300)

    def value_and_gradient(self, coefficients: Floats) -> tuple[float, Floats]:
        return completed(self.evaluation(coefficients))

    def evaluation(self, coefficients: Floats) -> Work[tuple[float, Floats]]:
        rows, targets = self.cross.shape
        gradient = np.empty((rows, targets))
        squares = 0.5 * self.variances
        size = max(1, PIECE // max(rows * targets, 1))
        for start in range(0, rows, size):
            part = slice(start, start + size)
            product = self.features[part] @ coefficients
            np.subtract(product, self.cross[part], out=gradient[part])
            product *= 0.5
            product -= self.cross[part]
            squares = squares + np.einsum("ij,ij->j", coefficients[part], product)
            if size < rows:
                yield
        if not self.profiled:
            return float(squares.sum()), gradient
        squares = np.maximum(squares, self.least)
        gradient /= 2.0 * squares
        return 0.5 * float(np.log(2.0 * squares).sum()), gradient

    def column(self, target: int, rows: Integers, coefficients: Floats) -> tuple[float, Floats]:
        # The matrix is symmetric, and whole rows are much faster to read than parts of all rows.
        gradient = coefficients @ self.features[rows] - self.cross[:, target]
        linear = gradient[rows] - self.cross[rows, target]
        square = 0.5 * float(self.variances[target] + coefficients @ linear)
        if not self.profiled:
            return square, gradient
        square = max(square, float(self.least[target]))
        return 0.5 * float(np.log(2.0 * square)), gradient / (2.0 * square)

    def curvature(self, target: int, rows: Integers, coefficients: Floats) -> Floats:
        """Return the Hessian of one target over ``rows``; its positive part if profiled."""
        gram = self.features[np.ix_(rows, rows)]
        if not self.profiled:
            return gram
        product = gram @ coefficients
        square = 0.5 * float(self.variances[target])
        square += float(coefficients @ (0.5 * product - self.cross[rows, target]))
        return gram / (2.0 * max(square, float(self.least[target])))


# --- The least squares loss over some of the coefficients only, all others being zero -----------

_LARGEST = 2**26
"""Numbers that may be copied: half a gigabyte."""
_TARGET = 150_000
"""Multiplications in a large product that take as long as the overhead of one target here."""
_SLOWER = 4
"""How many of them take as long as one multiplication here."""


def pays(loss: QuadraticAdditiveLoss, open_: Integers) -> bool:
    """Return whether a `PartOfQuadraticLoss` is faster than the loss of all coefficients.

    The unit is a multiplication in a large product of matrices.
    """
    sizes = np.bincount(open_ % loss.targets, minlength=loss.targets).astype(np.float64)
    numbers = float(sizes @ sizes)
    whole = float(len(loss.owner)) ** 2 * loss.targets
    return numbers <= _LARGEST and _SLOWER * numbers + _TARGET * loss.targets < whole


@final
class PartOfQuadraticLoss:
    """A quadratic loss as a function of some coefficients, with copies of what it needs for them.

    Parameters
    ----------
    loss
        The loss of all coefficients.
    open_
        The coefficients, as ``row * targets + target``.
    """

    def __init__(self, loss: QuadraticAdditiveLoss, open_: Integers) -> None:
        self._loss = loss
        rows, columns = np.divmod(open_, loss.targets)
        self._order = np.argsort(columns, kind="stable")
        self._rows = rows[self._order]
        self._starts = np.searchsorted(columns[self._order], np.arange(loss.targets + 1)).tolist()
        self._cross = loss.cross[self._rows, columns[self._order]]
        self._blocks: list[Floats] = []

    def evaluation(self, parameters: Floats) -> Work[tuple[float, Floats]]:
        """Return the loss and its gradient."""
        loss = self._loss
        while len(self._blocks) < loss.targets:
            j = len(self._blocks)
            rows = self._rows[self._starts[j] : self._starts[j + 1]]
            self._blocks.append(loss.features[np.ix_(rows, rows)])
            yield
        own = parameters[self._order]
        slopes = np.empty_like(own)
        squares = 0.5 * loss.variances
        for j, block in enumerate(self._blocks):
            part = slice(self._starts[j], self._starts[j + 1])
            product = block @ own[part]
            slopes[part] = product - self._cross[part]
            squares[j] += own[part] @ (0.5 * product - self._cross[part])
            yield
        value = float(squares.sum())
        if loss.profiled:
            squares = np.maximum(squares, loss.least)
            value = 0.5 * float(np.log(2.0 * squares).sum())
            slopes /= np.repeat(2.0 * squares, np.diff(self._starts))
        gradient = np.empty_like(slopes)
        gradient[self._order] = slopes
        return value, gradient


# --- Local scores of regressions on curves, which tell where curves are needed ------------------

CURVES: Final[Capability[CurvedScore]] = Capability("scores of regressions on curves")
"""Which parents need curves, and what their curves gain; see `CurvedScore`."""


class CurvedScore(LocalScore):
    """A score of regressions in which each parent enters by a line or by a curve.

    Parameters
    ----------
    nodes
        Names of the variables.
    kernel
        The score in the compiled core.
    curves
        The part of the score that chooses curves.
    bends
        For each variable, whether there are functions of it.
    edge_price
        Part of the penalty of an edge that accounts for the number of possible edges.
    cost
        As for `LocalScore`.
    """

    capabilities: Capabilities = frozenset({LOCAL_SCORES, CURVES})

    def __init__(
        self,
        nodes: Sequence[str],
        kernel: LocalScoreKernel,
        *,
        curves: CurveScore,
        bends: NDArray[np.bool_],
        edge_price: float,
        cost: FamilyCost,
    ) -> None:
        super().__init__(nodes, kernel, equivalent=False, cost=cost)
        self._curves = curves
        self.bends = bends
        self.edge_price = edge_price

    @final
    def degrees(self, child: int, parents: Sequence[int]) -> NDArray[np.int64]:
        """Return for each parent how curved its effect on a child is; 0 is a line."""
        return self._curves.degrees(child, np.asarray(parents, np.int64))

    @final
    def gain(self, child: int, others: Sequence[int], parent: int) -> float:
        """Return what one more parent adds to the score of a child."""
        own = np.asarray(others, np.int64)
        values = self.kernel.extensions(child, own, np.array([parent], np.int64))
        return float(values[1] - values[0])

    @final
    def bend(self, child: int, others: Sequence[int], parent: int) -> float:
        """Return what a curve of a parent gains over its line, less the price of an edge."""
        family = np.array([*others, parent], np.int64)
        curved = float(self._curves.extensions(child, family, family[:0])[0])
        straight = self._curves.without_functions(child, family, parent)
        return curved - straight - self.edge_price
