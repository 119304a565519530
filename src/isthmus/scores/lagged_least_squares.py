"""Least squares of each step on the same and on earlier steps, from moments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.errors import MismatchError
from isthmus.graphs.lags import Lag
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

    The schema states which variables are of earlier time steps, as that of a `Series` does; only
    moments are needed, so realisations may lie at many sites.
    """

    needs: ClassVar[type[Moments]] = Moments
    kind: ClassVar[Kind] = Kind.CONTINUOUS
    gives: ClassVar[Capabilities] = frozenset({ADDITIVE_MODEL, LAGGED_MODEL})

    def bind(self, statistics: Moments) -> AdditiveLoss:
        """Bind the score to the moments of a series."""
        lag_of = statistics.schema.lag_of
        name_of = {lag: name for name, lag in lag_of.items()}
        now = [name for name, lag in lag_of.items() if lag.steps == 0]
        lags = statistics.schema.lags
        wanted = [Lag(name, steps) for steps in range(lags + 1) for name in now]
        lacking = [lag for lag in wanted if lag not in name_of]
        if lags == 0 or lacking or len(wanted) != len(lag_of):
            raise MismatchError(
                f"{self!r} needs every variable at every earlier time step; "
                + (f"{tuple(lacking[0])} is not there." if lacking else "there are none.")
                + " Give Series(table, lags=2), or a schema made by Schema.with_lags."
            )
        nodes = [name_of[lag] for lag in wanted]
        covariance = statistics.numeric(self).select(nodes).covariance()
        d = len(now)
        return QuadraticAdditiveLoss(
            nodes,
            np.arange(len(nodes)),
            covariance,
            covariance[:, :d].copy(),
            covariance.diagonal()[:d].copy(),
            sample_size=statistics.n,
            lags=wanted,
        )
