"""Least squares: the smooth loss of a linear model, from moments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from isthmus.objectives import EDGE_WEIGHTS, SECOND_MOMENTS, Capabilities, QuadraticLoss, SmoothLoss
from isthmus.scores.base import Score
from isthmus.statistics import Kind, Moments


@final
@dataclass(frozen=True)
class LeastSquares(Score[Moments, SmoothLoss]):
    """``|X - X W|^2 / (2 n)`` on centred columns, for searches over weights.

    Lower is better. The loss reads the variances of the columns: on other units it prefers other
    graphs.
    """

    needs: ClassVar[type[Moments]] = Moments
    kind: ClassVar[Kind] = Kind.CONTINUOUS
    gives: ClassVar[Capabilities] = frozenset({EDGE_WEIGHTS, SECOND_MOMENTS})

    def bind(self, statistics: Moments) -> SmoothLoss:
        """Give the objective that a search sees."""
        moments = statistics.numeric(self)
        return QuadraticLoss(moments.schema.names, moments.covariance(), moments.n)
