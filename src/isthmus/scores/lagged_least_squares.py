"""Least squares with lagged effects, for time series."""

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
    """Squared error ``|x_t - x_t W - Σ_k x_{t-k} A_k|² / 2n`` of a vector autoregression.

    For time series, on centred columns; lower is better. The schema states which columns are lagged
    variables, as the schema of a `Series` does. Only moments are needed, so realisations may be at
    many sites.
    """

    needs: ClassVar[type[Moments]] = Moments
    kind: ClassVar[Kind] = Kind.CONTINUOUS
    gives: ClassVar[Capabilities] = frozenset({ADDITIVE_MODEL, LAGGED_MODEL})

    def bind(self, statistics: Moments) -> AdditiveLoss:
        """Bind the score to the moments of a series."""
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
