"""The degenerate Gaussian score for tables of continuous and discrete columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.objectives import CompiledLocalScore, LocalScore
from isthmus.options import require_number
from isthmus.scores.base import Score
from isthmus.scores.extended import extended, small_sample_prices
from isthmus.scores.gaussian import TOLERANCE
from isthmus.scores.score_bounds import block_bound
from isthmus.statistics import Moments
from isthmus.statistics.moments import correlate


@final
@dataclass(frozen=True)
class DegenerateGaussian(Score[Moments, LocalScore]):
    """BIC of the joint Gaussian over one-hot blocks (Andrews, Ramsey and Cooper 2019).

    A discrete variable with r levels is the block of r - 1 indicator columns; a family of blocks
    is scored by log determinants of the covariance of the columns, as if they were Gaussian. Fast,
    needs moments only, score-equivalent, and on purely continuous tables the same as
    ``GaussianBIC``.

    Parameters
    ----------
    penalty
        Multiplies ``log(n) / 2`` for each parameter.
    gamma
        Weight of the extended term ``2 * gamma * log(d)`` for each edge among d variables, which
        accounts for the number of edges there are to choose from. 0 is BIC; `learn` uses 0.5.
    """

    penalty: float = 1.0
    gamma: float = 0.0
    needs: ClassVar[type[Moments]] = Moments
    kind: ClassVar[None] = None

    def __post_init__(self) -> None:
        require_number(self, "penalty", least=0)
        require_number(self, "gamma", least=0)

    def bind(self, statistics: Moments) -> LocalScore:
        """Bind the score to moments."""
        from isthmus.numerics import gaussian

        statistics = statistics.without_features()
        n = statistics.n
        starts = np.array([start for start, _ in statistics.blocks] + [statistics.schema.width])
        sizes = np.diff(starts)
        correlation, scale = correlate(statistics.covariance())
        each = self.penalty * 0.5 * np.log(n)
        log_scale = np.concatenate([[0.0], np.cumsum(np.log(scale))])
        base = (
            -0.5 * n * (np.log(2.0 * np.pi) + 1.0) * sizes
            - 0.5 * n * (log_scale[starts[1:]] - log_scale[starts[:-1]])
            - each * (sizes + sizes * (sizes + 1) / 2.0)
        )
        data, keep = gaussian.pack_block(correlation, starts, base, 0.5 * n, each, TOLERANCE)
        score = CompiledLocalScore(
            statistics.schema.names,
            gaussian.block_score.address,
            data,
            keep,
            equivalent=True,
            ceiling=lambda: block_bound(correlation, starts, base, 0.5 * n, each, TOLERANCE),
        )
        if self.gamma == 0.0:
            return score
        d = len(statistics.schema)
        # The parameters are paid for above, so only the rest of the price is added.
        prices = small_sample_prices(n, d, self.gamma) - 0.5 * np.log(n) * np.arange(d + 1)
        return extended(score, prices)
