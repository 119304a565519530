"""Local scores with an additional penalty on the number of parents."""

from __future__ import annotations

from dataclasses import replace
from typing import final

import numpy as np
from numpy.typing import NDArray

from isthmus.kernels import scoring
from isthmus.objectives.local import LocalScore
from isthmus.objectives.score_bound import BoundWork


@final
class PenalisedScore(LocalScore):
    """A local score minus a penalty: ``factor * score(child | parents) - prices[parents]``.

    A penalty that depends only on the number of parents preserves score equivalence, because
    reversing a covered edge exchanges the numbers of parents of its two ends.

    Parameters
    ----------
    score
        The score without the penalty.
    prices
        Penalty of 0, 1, … d parents; it must not decrease.
    factor
        Factor of the score, above 0.
    """

    def __init__(self, score: LocalScore, prices: NDArray[np.float64], factor: float = 1.0) -> None:
        def bound() -> BoundWork:
            inner = yield from score.ceiling_work()
            if inner is None or factor != 1.0:
                return None
            return replace(inner, top=inner.top - prices)

        kernel = scoring.penalised_score(score.kernel, prices, factor)
        super().__init__(
            score.nodes,
            kernel,
            equivalent=score.equivalent,
            ceiling=bound,
            cost=score.seconds,
        )
