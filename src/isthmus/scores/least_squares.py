"""Least squares of linear models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from isthmus.objectives import EDGE_WEIGHTS, SECOND_MOMENTS, Capabilities, QuadraticLoss, SmoothLoss
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
        """Bind the score to moments."""
        moments = statistics.numeric(self)
        return QuadraticLoss(moments.schema.names, moments.covariance(), moments.n)
