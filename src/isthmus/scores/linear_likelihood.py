"""Gaussian likelihood of linear models, as a smooth loss of edge weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from isthmus.objectives import EDGE_WEIGHTS, SECOND_MOMENTS, Capabilities
from isthmus.objectives.smooth import LikelihoodLoss, SmoothLoss
from isthmus.scores.base import Score
from isthmus.statistics import Kind, Moments


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
        """Bind the score to moments."""
        moments = statistics.numeric(self)
        return LikelihoodLoss(moments.schema.names, moments.covariance(), moments.n)
