"""The Gaussian likelihood of a linear model as a smooth loss that does not see units."""

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
    """Negative Gaussian log-likelihood with a free noise variance for each node.

    Lower is better. Unlike :class:`~isthmus.LeastSquares` it gives the same graphs in all units, so
    standardising the data changes nothing; and it cannot tell Markov-equivalent graphs apart, so
    the answer is an equivalence class. With a quasi-MCP penalty its minimum is a sparsest graph
    that fits (Deng, Bello, Ravikumar and Aragam 2024, arXiv 2410.06163).
    """

    needs: ClassVar[type[Moments]] = Moments
    kind: ClassVar[Kind] = Kind.CONTINUOUS
    gives: ClassVar[Capabilities] = frozenset({EDGE_WEIGHTS, SECOND_MOMENTS})

    def bind(self, statistics: Moments) -> SmoothLoss:
        """Give the objective that a search sees."""
        moments = statistics.numeric(self)
        return LikelihoodLoss(moments.schema.names, moments.covariance(), moments.n)
