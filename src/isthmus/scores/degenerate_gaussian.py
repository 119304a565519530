"""Degenerate Gaussian score for tables with continuous and discrete columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.kernels.scoring import gaussian_block_score
from isthmus.objectives import LocalScore
from isthmus.options import require_number
from isthmus.scores.base import Score
from isthmus.scores.costs import block_cost
from isthmus.scores.extended import extended, small_sample_prices
from isthmus.scores.family_rows import at_own_rows
from isthmus.scores.gaussian import TOLERANCE
from isthmus.scores.score_bounds import block_bound
from isthmus.statistics import Moments
from isthmus.statistics.moments import correlate
from isthmus.statistics.relations import covariance_without_rare
from isthmus.types import Floats


@final
@dataclass(frozen=True)
class DegenerateGaussian(Score[Moments, LocalScore]):
    """Degenerate Gaussian score for continuous and discrete variables; higher is better.

    A discrete variable with r levels is represented by r - 1 indicator columns, and BIC is computed
    as if all columns were jointly Gaussian (Andrews, Ramsey and Cooper 2019). The score is fast,
    needs only moments, is score-equivalent, and equals ``GaussianBIC`` on continuous tables.

    A Gaussian likelihood overrates coincidences of rare levels: two levels that occur once, in the
    same row, look like an exact linear relation. Therefore a level with fewer than ``sqrt(n)`` of n
    rows gets additional independent noise, as if it had that many.

    Parameters
    ----------
    penalty_discount
        Factor of the penalty ``log(n) / 2`` per parameter.
    gamma
        Weight of the extended penalty ``2 * gamma * log(d)`` per edge among d variables, which
        accounts for the number of possible edges. 0 is BIC; `learn` uses 0.5.

    Examples
    --------
    >>> import isthmus as ist
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 300)
    >>> table = {"sex": sex, "height": 165 + 12 * (sex == "m") + 6 * rng.normal(size=300)}
    >>> ist.learn(table, score=ist.DegenerateGaussian()).dag.skeleton().edges
    (('sex', 'height'),)
    """

    penalty_discount: float = 1.0
    gamma: float = 0.0
    needs: ClassVar[type[Moments]] = Moments
    kind: ClassVar[None] = None

    def __post_init__(self) -> None:
        require_number(self, "penalty_discount", least=0)
        require_number(self, "gamma", least=0)

    def bind(self, statistics: Moments) -> LocalScore:
        statistics = statistics.without_features()
        n = statistics.n
        starts = np.array([start for start, _ in statistics.blocks] + [statistics.schema.width])
        sizes = np.diff(starts)
        correlation, scale = correlate(covariance_without_rare(statistics))
        each = self.penalty_discount * 0.5 * np.log(n)
        log_scale = np.concatenate([[0.0], np.cumsum(np.log(scale))])
        base = (
            -0.5 * n * (np.log(2.0 * np.pi) + 1.0) * sizes
            - 0.5 * n * (log_scale[starts[1:]] - log_scale[starts[:-1]])
            - each * (sizes + sizes * (sizes + 1) / 2.0)
        )
        kernel = gaussian_block_score(
            correlation, starts, base, half_n=0.5 * n, penalty=each, tolerance=TOLERANCE
        )
        score = LocalScore(
            statistics.schema.names,
            kernel,
            equivalent=True,
            score_bound=lambda: block_bound(correlation, starts, base, 0.5 * n, each, TOLERANCE),
            cost=block_cost(sizes),
        )
        d = len(statistics.schema)

        def prices(n: int) -> Floats:
            if self.gamma == 0.0:
                return np.zeros(d + 1)
            # The penalty of the parameters is already included, so only the rest is added.
            rest: Floats = small_sample_prices(n, d, self.gamma) - 0.5 * np.log(n) * np.arange(
                d + 1
            )
            return rest

        def coefficient(n: int) -> float:
            return self.penalty_discount * 0.5 * float(np.log(n))

        return at_own_rows(extended(score, prices(n)), statistics, prices, coefficient)
