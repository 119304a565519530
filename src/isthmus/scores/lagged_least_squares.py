"""Least squares of each step on the same and on earlier steps, from moments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.errors import MismatchError
from isthmus.graphs.lags import lagged_name, split_lag
from isthmus.objectives import (
    ADDITIVE_MODEL,
    LAGGED_MODEL,
    AdditiveLoss,
    Capabilities,
    QuadraticAdditiveLoss,
)
from isthmus.scores.base import Score
from isthmus.statistics import Kind, Moments


@final
@dataclass(frozen=True)
class LaggedLeastSquares(Score[Moments, AdditiveLoss]):
    """``|x_t - x_t W - Σ_k x_{t-k} A_k|² / 2n`` on centred columns.

    The columns of earlier steps are named ``x@1``, ``x@2`` …, as `Series` makes them; only
    their moments are needed, so realisations may lie at many sites.
    """

    needs: ClassVar[type[Moments]] = Moments
    kind: ClassVar[Kind] = Kind.CONTINUOUS
    gives: ClassVar[Capabilities] = frozenset({ADDITIVE_MODEL, LAGGED_MODEL})

    def bind(self, statistics: Moments) -> AdditiveLoss:
        """Give the objective that a search sees."""
        places = [split_lag(n) for n in statistics.schema.names]
        now = [name for name, lag in places if lag == 0]
        lags = max((lag for _, lag in places), default=0)
        wanted = [lagged_name(n, lag) for lag in range(lags + 1) for n in now]
        lacking = [n for n in wanted if n not in statistics.schema]
        if lags == 0 or lacking or len(wanted) != len(places):
            raise MismatchError(
                f"{self!r} needs the columns x@1, x@2 … of earlier steps for every variable; "
                + (f"{lacking[:5]} are not there." if lacking else "there are none.")
                + " Give Series(table, lags=2), or the moments of such a table."
            )
        covariance = statistics.select(wanted).covariance()
        d = len(now)
        return QuadraticAdditiveLoss(
            wanted,
            np.arange(len(wanted)),
            covariance,
            covariance[:, :d].copy(),
            covariance.diagonal()[:d].copy(),
            sample_size=statistics.n,
        )
