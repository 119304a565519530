"""Local scores with an additional penalty on the number of parents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.objectives.local import LocalScore
from isthmus.objectives.score_bound import ScoreBound


@final
class PenalisedScore(LocalScore):
    """A local score minus a penalty: ``score(child | parents) - prices[number of parents]``.

    A penalty that depends only on the number of parents preserves score equivalence, because
    reversing a covered edge exchanges the numbers of parents of its two ends.

    Parameters
    ----------
    score
        The score without the penalty.
    prices
        Penalty of 0, 1, … d parents; it must not decrease.
    """

    def __init__(self, score: LocalScore, prices: NDArray[np.float64]) -> None:
        self.nodes = score.nodes
        self.equivalent = score.equivalent
        self._score = score
        # One more entry, so that the extensions of the largest set have a penalty.
        self._prices = np.append(prices, prices[-1:])

    @cached_property
    def _packed(self) -> tuple[NDArray[np.int64], tuple[Any, ...]]:
        from isthmus.numerics.size_penalty import pack_penalised

        return pack_penalised(self._score.handle, self._prices)

    @property
    def handle(self) -> tuple[int, int]:
        from isthmus.numerics.size_penalty import penalised_score

        return int(penalised_score.address), int(self._packed[0].ctypes.data)

    @cached_property
    def ceiling(self) -> ScoreBound | None:
        """Bound on the scores of supersets: that of the inner score minus the penalty."""
        bound = self._score.ceiling
        if bound is None:
            return None
        return replace(bound, top=bound.top - self._prices[: bound.top.shape[1]])

    def extensions(
        self, child: int, parents: Sequence[int], candidates: Sequence[int]
    ) -> NDArray[np.float64]:
        values = self._score.extensions(child, parents, candidates)
        values[0] -= self._prices[len(parents)]
        values[1:] -= self._prices[len(parents) + 1]
        return values

    def raise_failure(self) -> None:
        self._score.raise_failure()
