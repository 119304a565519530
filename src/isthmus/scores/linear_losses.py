"""Losses of linear models: least squares, likelihood, and least squares with lags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.errors import MismatchError
from isthmus.graphs.lags import Lag
from isthmus.objectives import (
    ADDITIVE_MODEL,
    EDGE_WEIGHTS,
    LAGGED_MODEL,
    SECOND_MOMENTS,
    AdditiveLoss,
    Capabilities,
    LikelihoodLoss,
    QuadraticAdditiveLoss,
    QuadraticLoss,
    SmoothLoss,
)
from isthmus.scores.base import Score
from isthmus.statistics import Kind, Moments


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
