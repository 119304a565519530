"""Smooth losses of a matrix of edge weights."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Bools, Floats, Integers, Work, completed
from isthmus.kernels import scoring
from isthmus.objectives.additive import PIECE, AdditiveLoss
from isthmus.objectives.local import Capabilities, Capability, LocalScore, Objective
from isthmus.watch import Sense

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


# --- Losses of models with parameters of any shape, such as small neural networks ---------------


@final
@dataclass(frozen=True, eq=False)
class NodeModel:
    """The model of one node, fitted on its parents alone.

    Attributes
    ----------
    parents
        Nodes that it depends on.
    parameters
        Its parameters, in a layout of the loss's own.
    variance
        Mean squared residual, in squared units of the noise.
    loss
        Value of the objective of this node.
    freedom
        Effective degrees of freedom, not counting a constant.
    residual
        Largest violation of optimality, in units of the noise.
    contributions
        Standard deviation of what each parent contributes to the prediction.
    """

    parents: tuple[int, ...]
    parameters: Floats
    variance: float
    loss: float
    freedom: float
    residual: float
    contributions: Floats


PARAMETRIC_MODEL: Capability[ParametricLoss] = Capability("a loss of parametric models")
"""A loss of a vector of parameters, such as those of neural networks; see `ParametricLoss`."""


class ParametricLoss(Objective):
    """A differentiable objective of a vector of parameters, to be minimised.

    It is in units of the noise, so that no penalty depends on the unit of the data.

    Attributes
    ----------
    nodes
        Names of the variables.
    edge
        For each parameter the edge it belongs to, as ``cause * len(nodes) + effect``; -1 for none.
        The model of a node does not depend on a cause when all parameters of that edge are zero.
    sample_size
        Number of observations.
    unit
        Size of the noise in the unit of the data; the loss is divided by its square.
    """

    sense: ClassVar[Sense] = Sense.MINIMISE
    capabilities: Capabilities = frozenset({PARAMETRIC_MODEL})
    equivalent = False
    edge: Integers
    sample_size: int
    unit: float

    @abstractmethod
    def start(self, rng: np.random.Generator) -> Floats:
        """Draw parameters to begin with."""

    @abstractmethod
    def value_and_gradient(self, parameters: Floats) -> tuple[float, Floats]:
        """Return the loss at ``parameters`` and its gradient."""

    def evaluation(self, parameters: Floats) -> Work[tuple[float, Floats]]:
        """Compute `value_and_gradient` in pieces; override it where that takes long."""
        yield
        return self.value_and_gradient(parameters)

    @abstractmethod
    def refit(
        self, target: int, parents: Sequence[int], start: Floats | NodeModel
    ) -> Work[NodeModel]:
        """Fit the model of one node on its parents alone, without a penalty on edges.

        Parameters
        ----------
        target, parents
            The node, and what it depends on.
        start
            Parameters of all nodes, or a model of this node with more parents, to begin with.
        """

    @abstractmethod
    def joined(self, models: Sequence[NodeModel]) -> Floats:
        """Return the parameters of all nodes, from one model for each."""

    @abstractmethod
    def restricted(self, nodes: Sequence[int]) -> ParametricLoss:
        """Return the loss of some of the nodes, as if there were no others."""

    @abstractmethod
    def looks_dependent(self) -> Work[Bools]:
        """Return for each pair of nodes whether they depend on each other more than noise does."""


# --- Losses of generalised linear models: logistic and Poisson regression -----------------------


class Family(ABC):
    """Distribution of a node given its linear predictor, up to terms without parameters."""

    @abstractmethod
    def loss(self, predictor: Floats, observed: Floats) -> Floats:
        """Return the negative log-likelihood of each cell."""

    @abstractmethod
    def mean(self, predictor: Floats) -> Floats:
        """Return the expected value; the derivative of the loss is mean minus observed."""

    @abstractmethod
    def variance(self, predictor: Floats) -> Floats:
        """Return the variance, which is the derivative of the mean."""


@final
class Bernoulli(Family):
    """Binary values with the logit link."""

    def loss(self, predictor: Floats, observed: Floats) -> Floats:
        # Four times as fast as logaddexp, and as exact.
        loss: Floats = np.log1p(np.exp(-np.abs(predictor)))
        loss += np.maximum(predictor, 0.0)
        loss -= observed * predictor
        return loss

    def mean(self, predictor: Floats) -> Floats:
        # The tanh form does not overflow.
        mean: Floats = 0.5 * (1.0 + np.tanh(0.5 * predictor))
        return mean

    def variance(self, predictor: Floats) -> Floats:
        mean = self.mean(predictor)
        return mean * (1.0 - mean)


@final
class PoissonFamily(Family):
    """Counts with the log link."""

    def loss(self, predictor: Floats, observed: Floats) -> Floats:
        loss: Floats = self.mean(predictor) - observed * predictor
        return loss

    def mean(self, predictor: Floats) -> Floats:
        with np.errstate(over="ignore"):  # the line search handles infinite values
            mean: Floats = np.exp(predictor)
        return mean

    def variance(self, predictor: Floats) -> Floats:
        return self.mean(predictor)


@final
class GeneralisedLinearLoss(AdditiveLoss):
    """Negative mean log-likelihood of a generalised linear model. The last row is the intercept.

    Parameters
    ----------
    nodes
        Names of the columns.
    inputs
        Values of the columns as causes, shape (n, d).
    observed
        Values of the columns as effects, shape (n, d).
    family
        Distribution of a node given its predictor.
    """

    def __init__(
        self, nodes: Sequence[str], inputs: Floats, observed: Floats, family: Family
    ) -> None:
        n, d = observed.shape
        self.nodes = tuple(nodes)
        self.targets = d
        self.owner = np.append(np.arange(d), -1)
        self.sample_size, self.likelihood = n, True
        self._inputs = np.column_stack([inputs, np.ones(n)])
        self._observed = observed
        self._family = family

    def value_and_gradient(self, coefficients: Floats) -> tuple[float, Floats]:
        return completed(self.evaluation(coefficients))

    def evaluation(self, coefficients: Floats) -> Work[tuple[float, Floats]]:
        n = len(self._observed)
        value, gradient = 0.0, np.empty_like(coefficients)
        # Functions of each cell cost as much as some dozens of multiplications.
        size = max(1, PIECE // max(2 * n * (len(coefficients) + 32), 1))
        for start in range(0, self.targets, size):
            part = slice(start, start + size)
            predictor = self._inputs @ coefficients[:, part]
            observed = self._observed[:, part]
            value += float(self._family.loss(predictor, observed).sum()) / n
            if not np.isfinite(value):
                return np.inf, np.full_like(coefficients, np.nan)
            gradient[:, part] = self._inputs.T @ (self._family.mean(predictor) - observed) / n
            if size < self.targets:
                yield
        return value, gradient

    def column(self, target: int, rows: Integers, coefficients: Floats) -> tuple[float, Floats]:
        n = len(self._observed)
        observed = self._observed[:, target]
        predictor = self._inputs[:, rows] @ coefficients
        value = float(self._family.loss(predictor, observed).sum()) / n
        if not np.isfinite(value):
            return np.inf, np.full(self._inputs.shape[1], np.nan)
        return value, self._inputs.T @ (self._family.mean(predictor) - observed) / n

    def curvature(self, target: int, rows: Integers, coefficients: Floats) -> Floats:
        inputs = self._inputs[:, rows]
        weights = self._family.variance(inputs @ coefficients) / len(inputs)
        hessian: Floats = (inputs * weights[:, None]).T @ inputs
        return hessian


# --- Tests of the noise of linear regressions, as searches see them -----------------------------

INDEPENDENT_NOISE: Capability[NoiseTest] = Capability("tests of independent noise")
"""p-values of linear regressions with independent noise; see `NoiseTest`."""


class NoiseFit(NamedTuple):
    """How well a regression with independent noise fits.

    Attributes
    ----------
    p_value
        The p-value of the test.
    misfit
        The statistic: it grows with the rows and with the squared distance from the model.
    possible
        Upper limit of the distance that these rows allow for, in the unit of `misfit`: with a
        larger one, the statistic would have been larger in 95% of tables.
    dependence
        How much the noise depends on each parent, from ranks in rows; empty without rows.
    """

    p_value: float
    misfit: float = 0.0
    possible: float = math.inf
    dependence: tuple[float, ...] = ()


class NoiseTest(Objective):
    """Base class of tests whether the noise of a linear regression is independent of the parents.

    Parameters
    ----------
    nodes
        Names of the variables; an index means a position in this tuple.
    rows
        Number of rows.
    """

    sense: ClassVar[Sense] = Sense.MAXIMISE
    capabilities: Capabilities = frozenset({INDEPENDENT_NOISE})
    equivalent = True

    def __init__(self, nodes: Sequence[str], rows: float) -> None:
        self.nodes = tuple(nodes)
        self.rows = rows

    def with_rows(self, columns: Sequence[NDArray[np.generic]]) -> NoiseTest:
        """Use the rows, one array per variable, if they tell the test something; return it."""
        return self

    @abstractmethod
    def fit(self, child: int, parents: Sequence[int]) -> NoiseFit:
        """Test whether a variable is linear in its parents with noise that is independent of them.

        The p-value is 1 if nothing can be tested, as for a variable without parents.

        Parameters
        ----------
        child
            The variable.
        parents
            Its parents, in ascending order.
        """

    @abstractmethod
    def local_score(self) -> LocalScore:
        """Return the score of the same data that a search begins with."""

    @abstractmethod
    def noise_score(self) -> LocalScore | None:
        """Return that score with a model of the noise, which tells directions; None if it cannot.

        Graphs of one equivalence class differ in it, unless all noise is normal.
        """
