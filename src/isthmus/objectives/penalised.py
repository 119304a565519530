"""A local score with a price on the number of parents."""

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
    """``score(child | parents) - prices[number of parents]``.

    A price that depends only on the number of parents keeps a score-equivalent score
    score-equivalent: reversing a covered edge exchanges the numbers of parents of its two ends.

    Parameters
    ----------
    score
        The score without the price.
    prices
        Price of 0, 1, … d parents; it must not fall.
    """

    def __init__(self, score: LocalScore, prices: NDArray[np.float64]) -> None:
        self.nodes = score.nodes
        self.equivalent = score.equivalent
        self._score = score
        # One entry more, so that the extensions of the largest set have a price.
        self._prices = np.append(prices, prices[-1:])

    @cached_property
    def _packed(self) -> tuple[NDArray[np.int64], tuple[Any, ...]]:
        from isthmus.numerics.size_penalty import pack_penalised

        return pack_penalised(self._score.handle, self._prices)

    @property
    def handle(self) -> tuple[int, int]:
        """Address of the C function and of its data."""
        from isthmus.numerics.size_penalty import penalised_score

        return int(penalised_score.address), int(self._packed[0].ctypes.data)

    @cached_property
    def ceiling(self) -> ScoreBound | None:
        """Bound on the score of supersets: that of the inner score minus the price of the set."""
        bound = self._score.ceiling
        if bound is None:
            return None
        return replace(bound, top=bound.top - self._prices[: bound.top.shape[1]])

    def extensions(
        self, child: int, parents: Sequence[int], candidates: Sequence[int]
    ) -> NDArray[np.float64]:
        """Score ``parents`` and each of its one-element extensions."""
        values = self._score.extensions(child, parents, candidates)
        values[0] -= self._prices[len(parents)]
        values[1:] -= self._prices[len(parents) + 1]
        return values

    def raise_failure(self) -> None:
        """Raise what the inner score could not raise through its C function."""
        self._score.raise_failure()
