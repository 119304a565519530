"""Scores of data from several regimes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

from isthmus.kernels.scoring import child_scores
from isthmus.objectives import LOCAL_SCORES, LocalScore
from isthmus.scores.base import Score
from isthmus.statistics import Kind
from isthmus.statistics.regimes import Regimes


@final
@dataclass(frozen=True)
class InterventionalScore(Score[Regimes, LocalScore]):
    """A local score in which each child is scored on the rows where it was not a target.

    Parameters
    ----------
    base
        A local score of counts or moments.
    """

    base: Score[Any, Any]
    needs: ClassVar[type[Regimes]] = Regimes
    kind: ClassVar[Kind | None] = None

    def bind(self, statistics: Regimes) -> LocalScore:
        """Bind the score to the statistics of each regime."""
        parts = [LOCAL_SCORES.require(self.base.bind(part)) for part in statistics.parts]
        kernel = child_scores([parts[k].kernel for k in statistics.part_of])
        names = statistics.schema.names

        def cost(parents: int) -> float:
            return max(part.seconds(parents) for part in parts)

        return LocalScore(names, kernel, equivalent=False, cost=cost)
