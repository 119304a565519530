"""Losses of linear models: least squares, likelihood, and least squares with lags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.arrays import Bools, Floats, Work, completed
from isthmus.errors import MismatchError
from isthmus.graphs.knowledge import Lag
from isthmus.objectives import (
    ADDITIVE_MODEL,
    EDGE_WEIGHTS,
    LAGGED_MODEL,
    PARAMETRIC_MODEL,
    SECOND_MOMENTS,
    AdditiveLoss,
    Capabilities,
    LikelihoodLoss,
    QuadraticAdditiveLoss,
    QuadraticLoss,
    SmoothLoss,
)
from isthmus.objectives.smooth import (
    Bernoulli,
    GeneralisedLinearLoss,
    NodeModel,
    ParametricLoss,
    PoissonFamily,
)
from isthmus.options import require_boolean, require_integer, require_number
from isthmus.scores.base import Score
from isthmus.statistics import Kind, Moments, Rows


@final
@dataclass(frozen=True)
class LeastSquares(Score[Moments, SmoothLoss]):
    """Squared error ``|X - X W|^2 / (2 n)`` of linear models, as a smooth loss of edge weights.

    For continuous variables, on centred columns; lower is better. The loss depends on the scale of
    the columns: a change of units can change the best graph.
    """

    needs: ClassVar[type[Moments]] = Moments
    kind: ClassVar[Kind] = Kind.CONTINUOUS
    gives: ClassVar[Capabilities] = frozenset({EDGE_WEIGHTS, SECOND_MOMENTS})

    def bind(self, statistics: Moments) -> SmoothLoss:
        moments = statistics.numeric(self)
        return QuadraticLoss(moments.schema.names, moments.covariance(), moments.n)


@final
@dataclass(frozen=True)
class LinearLikelihood(Score[Moments, SmoothLoss]):
    """Negative Gaussian log-likelihood of linear models, with a free noise variance per node.

    For continuous variables; lower is better. Unlike :class:`~isthmus.LeastSquares`, it does not
    depend on the scale of the columns, and Markov-equivalent graphs have the same value, so the
    result is an equivalence class. With a quasi-MCP penalty its minimum is a sparsest graph that
    fits the data (Deng, Bello, Ravikumar and Aragam 2024, arXiv 2410.06163).

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import simulate
    >>> dag = simulate.erdos_renyi(5, 6, seed=1)
    >>> numbers = simulate.linear(dag, 300, seed=1).data
    >>> solution = ist.learn(numbers, score=ist.LinearLikelihood(), search=ist.Notears())
    >>> len(solution.dag.edges)
    6
    """

    needs: ClassVar[type[Moments]] = Moments
    kind: ClassVar[Kind] = Kind.CONTINUOUS
    gives: ClassVar[Capabilities] = frozenset({EDGE_WEIGHTS, SECOND_MOMENTS})

    def bind(self, statistics: Moments) -> SmoothLoss:
        moments = statistics.numeric(self)
        return LikelihoodLoss(moments.schema.names, moments.covariance(), moments.n)


@final
@dataclass(frozen=True)
class LaggedLeastSquares(Score[Moments, AdditiveLoss]):
    """Squared error ``|x_t - x_t W - Σ_k x_{t-k} A_k|² / 2n`` of a vector autoregression.

    For time series, on centred columns; lower is better. The schema states which columns are lagged
    variables, as the schema of a `Series` does. Only moments are needed, so realisations may be at
    many sites.
    """

    needs: ClassVar[type[Moments]] = Moments
    kind: ClassVar[Kind] = Kind.CONTINUOUS
    gives: ClassVar[Capabilities] = frozenset({ADDITIVE_MODEL, LAGGED_MODEL})

    def bind(self, statistics: Moments) -> AdditiveLoss:
        lag_of = statistics.schema.lag_of
        name_of = {lag: name for name, lag in lag_of.items()}
        present = [name for name, lag in lag_of.items() if lag.steps == 0]
        lags = statistics.schema.lags
        expected = [Lag(name, steps) for steps in range(lags + 1) for name in present]
        missing = [lag for lag in expected if lag not in name_of]
        if lags == 0 or missing or len(expected) != len(lag_of):
            raise MismatchError(
                f"{self!r} needs every variable at every earlier time step; "
                + (f"{tuple(missing[0])} is missing." if missing else "there are none.")
                + " Give Series(table, lags=2), or a schema made by Schema.with_lags."
            )
        nodes = [name_of[lag] for lag in expected]
        covariance = statistics.numeric(self).select(nodes).covariance()
        d = len(present)
        return QuadraticAdditiveLoss(
            nodes,
            np.arange(len(nodes)),
            covariance,
            covariance[:, :d].copy(),
            covariance.diagonal()[:d].copy(),
            sample_size=statistics.n,
            lags=expected,
        )


# --- Losses of generalised linear models: logistic and Poisson regressions ----------------------


@final
@dataclass(frozen=True)
class Logistic(Score[Rows, AdditiveLoss]):
    """Negative mean log-likelihood of logistic regressions, as a smooth loss of edge weights.

    For binary columns; lower is better. The model is ``P(x_j = 1) = sigmoid(b_j + Σ_i w_ij x_i)``,
    where the first level is 0 and the second is 1. The score needs rows.
    """

    needs: ClassVar[type[Rows]] = Rows
    kind: ClassVar[Kind] = Kind.DISCRETE
    gives: ClassVar[Capabilities] = frozenset({ADDITIVE_MODEL})

    def bind(self, statistics: Rows) -> AdditiveLoss:
        wide = [v.name for v in statistics.schema.variables if len(v.levels) > 2]
        if wide:
            raise MismatchError(
                f"Logistic needs columns with two levels; {wide[:5]} have more. "
                "Merge levels until two remain, or use BIC() or BDeu()."
            )
        values = statistics.values
        return GeneralisedLinearLoss(statistics.schema.names, values, values, Bernoulli())


@final
@dataclass(frozen=True)
class Poisson(Score[Rows, AdditiveLoss]):
    """Negative mean log-likelihood of Poisson regressions, as a smooth loss of edge weights.

    For columns of counts; lower is better. The model is
    ``x_j ~ Poisson(exp(b_j + Σ_i w_ij z_i))`` with predictors ``z = log(1 + x)``. With the counts
    themselves as predictors, means would grow exponentially along a chain. The score needs rows.

    Parameters
    ----------
    log_causes
        Whether predictors are ``log(1 + x)``. False uses ``z = x``, as in the original NOTEARS.
    """

    log_causes: bool = True
    needs: ClassVar[type[Rows]] = Rows
    kind: ClassVar[Kind] = Kind.CONTINUOUS
    gives: ClassVar[Capabilities] = frozenset({ADDITIVE_MODEL})

    def __post_init__(self) -> None:
        require_boolean(self, "log_causes")

    def bind(self, statistics: Rows) -> AdditiveLoss:
        counts = statistics.values
        invalid = ((counts < 0) | (counts != np.rint(counts))).any(axis=0)
        if invalid.any():
            names = [n for n, b in zip(statistics.schema.names, invalid, strict=True) if b]
            raise MismatchError(
                f"Poisson needs columns of counts 0, 1, 2 …; {names[:5]} contain other numbers. "
                "Use LeastSquares() or AdditiveLeastSquares() for measurements."
            )
        causes = np.log1p(counts) if self.log_causes else counts
        return GeneralisedLinearLoss(statistics.schema.names, causes, counts, PoissonFamily())


# --- Least squares with one small neural network per node ---------------------------------------

_GRID = 2.0**-24
"""Rows are rounded to this fraction of the noise. They are then identical bit by bit in all units,
and an optimisation with many local minima ends in the same one."""
_CURVES = 4
"""Number of functions of a column by which two columns are compared."""
_PIECE = 2**28
"""Multiplications in one piece of work; they take some 20 ms."""


@final
@dataclass(frozen=True)
class Perceptrons(Score[Rows, ParametricLoss]):
    """Squared error ``|x_j - f_j(x)|² / 2n`` of neural networks with one hidden layer per node.

    For continuous variables; lower is better. Columns are centred and divided by the smallest of
    their standard deviations, which is an upper bound on the noise if all noise has the same scale.
    Multiplying all columns by the same factor therefore does not matter, and weights, penalties and
    ``ridge`` are in units of the noise. The weight of an edge is the norm of the weights from the
    cause to the hidden layer of the effect (Zheng et al. 2020, arXiv 1909.13189). The score needs
    rows, and JAX: install the extra ``neural``.

    Parameters
    ----------
    hidden
        Number of units in the hidden layer of each node.
    ridge
        Ridge penalty: half of this times the sum of all squared weights is added to the loss.
    """

    hidden: int = 10
    ridge: float = 0.01
    needs: ClassVar[type[Rows]] = Rows
    kind: ClassVar[Kind] = Kind.CONTINUOUS
    gives: ClassVar[Capabilities] = frozenset({PARAMETRIC_MODEL})

    def __post_init__(self) -> None:
        require_integer(self, "hidden", least=1)
        require_number(self, "ridge", least=0)

    def bind(self, statistics: Rows) -> ParametricLoss:
        values = statistics.values - statistics.values.mean(axis=0)
        spread = values.std(axis=0)
        largest = float(np.abs(statistics.values).max(initial=0.0))
        positive = spread[spread > 1e-12 * largest]
        unit = float(positive.min()) if len(positive) else 1.0
        rows = _GRID * np.rint(values / (unit * _GRID))
        return PerceptronLoss(statistics.schema.names, rows, unit, self)


@final
class PerceptronLoss(ParametricLoss):
    """The loss of `Perceptrons` on rows in units of the noise."""

    def __init__(
        self, names: tuple[str, ...], rows: Floats, unit: float, options: Perceptrons
    ) -> None:
        from isthmus.neural import perceptron

        d = len(names)
        self.nodes = names
        self.sample_size, self.unit = len(rows), unit
        self._rows, self._options, self._hidden = rows, options, options.hidden
        self.edge = np.full(perceptron.size(d, options.hidden), -1)
        self.edge[: d * d * options.hidden] = np.repeat(np.arange(d * d), options.hidden)
        self._evaluate = perceptron.evaluation(rows, options.hidden, options.ridge)

    def start(self, rng: np.random.Generator) -> Floats:
        from isthmus.neural import perceptron

        return perceptron.drawn(len(self.nodes), self._hidden, rng)

    def value_and_gradient(self, parameters: Floats) -> tuple[float, Floats]:
        return completed(self._evaluate(parameters))

    def evaluation(self, parameters: Floats) -> Work[tuple[float, Floats]]:
        return self._evaluate(parameters)

    def refit(
        self, target: int, parents: Sequence[int], start: Floats | NodeModel
    ) -> Work[NodeModel]:
        from isthmus.neural import perceptron

        hidden, ridge = self._hidden, self._options.ridge
        inputs, seen = self._rows[:, list(parents)], self._rows[:, target]
        first, rest = self._layers(target, parents, start)
        fit = yield from perceptron.fit(
            np.concatenate([first.ravel(), rest]), inputs, seen, hidden, ridge
        )
        decay = fit.parameters.copy()
        decay[len(parents) * hidden : (len(parents) + 1) * hidden] = 0.0
        loss = 0.5 * fit.variance + 0.5 * ridge * float(decay[:-1] @ decay[:-1])
        return NodeModel(
            tuple(parents),
            fit.parameters,
            fit.variance,
            loss,
            fit.freedom,
            fit.residual,
            fit.contributions,
        )

    def _layers(
        self, target: int, parents: Sequence[int], start: Floats | NodeModel
    ) -> tuple[Floats, Floats]:
        """Return the first layer [parent, unit] and the other parameters to start from."""
        d, hidden = len(self.nodes), self._hidden
        if isinstance(start, NodeModel):
            size = len(start.parents) * hidden
            first = start.parameters[:size].reshape(-1, hidden)
            return first[[start.parents.index(p) for p in parents]], start.parameters[size:]
        size = d * d * hidden
        first = start[:size].reshape(d, d, hidden)[list(parents), target]
        bias, outer = start[size : size + 2 * d * hidden].reshape(2, d, hidden)[:, target]
        return first, np.concatenate([bias, outer, start[size + 2 * d * hidden + target :][:1]])

    def joined(self, models: Sequence[NodeModel]) -> Floats:
        d, hidden = len(self.nodes), self._hidden
        first, inner = np.zeros((d, d, hidden)), np.zeros((2, d, hidden))
        last = np.zeros(d)
        for target, model in enumerate(models):
            size = len(model.parents) * hidden
            first[list(model.parents), target] = model.parameters[:size].reshape(-1, hidden)
            inner[:, target] = model.parameters[size:-1].reshape(2, hidden)
            last[target] = model.parameters[-1]
        return np.concatenate([first.ravel(), inner.ravel(), last])

    def restricted(self, nodes: Sequence[int]) -> ParametricLoss:
        names = tuple(self.nodes[i] for i in nodes)
        return PerceptronLoss(names, self._rows[:, list(nodes)], self.unit, self._options)

    def looks_dependent(self) -> Work[Bools]:
        """Test all pairs of columns for dependence, by correlations of functions of both columns.

        Interactions of causes are detected too. Under independence, n times the sum of the squared
        correlations is approximately chi-squared; the level admits 0.1 false pairs per node.
        """
        from scipy.special import chdtri

        n, d = self._rows.shape
        blocks = np.zeros((n, d, _CURVES))
        for node in range(d):
            blocks[:, node] = _curves(self._rows[:, node])
            yield
        flat = blocks.reshape(n, d * _CURVES)
        sums = np.empty((d, d))
        size = max(1, _PIECE // max(n * d * _CURVES**2, 1))
        for start in range(0, d, size):
            part = slice(start, start + size)
            squares = (blocks[:, part].reshape(n, -1).T @ flat / n) ** 2
            sums[part] = n * squares.reshape(-1, _CURVES, d, _CURVES).sum(axis=(1, 3))
            yield
        dependent: Bools = sums > float(chdtri(_CURVES**2, 0.2 / max(d, 2)))
        np.fill_diagonal(dependent, val=False)
        return dependent | dependent.T


def _curves(column: Floats) -> Floats:
    """Return uncorrelated bounded functions of a column: cosines of its ranks."""
    if not np.ptp(column) > 0.0:
        return np.zeros((len(column), _CURVES))
    quantiles = (_ranks(column) - 0.5) / len(column)
    curves = np.cos(np.pi * quantiles[:, None] * np.arange(1, _CURVES + 1))
    curves -= curves.mean(axis=0)
    spread = curves.std(axis=0)
    scaled: Floats = curves / np.where(spread > 1e-9, spread, 1.0)
    return scaled


def _ranks(column: Floats) -> Floats:
    """Return ranks from 1; equal values share the mean of theirs."""
    _, inverse, counts = np.unique(column, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - 0.5 * (counts - 1.0))[inverse]
    return ranks
