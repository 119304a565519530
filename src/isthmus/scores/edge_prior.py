"""A local score with prior probabilities of edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

from isthmus.graphs import Knowledge
from isthmus.kernels.scoring import prior_score
from isthmus.objectives import LOCAL_SCORES, LocalScore
from isthmus.scores.base import Score
from isthmus.statistics import Basis, Kind, Moments, Statistic
from isthmus.types import Floats


@final
@dataclass(frozen=True, repr=False)
class EdgePrior(Score[Any, LocalScore]):
    """A local score plus the log-odds of edges that background knowledge makes (im)probable.

    The prior is the same for both directions, so a score-equivalent score stays one.

    Parameters
    ----------
    base
        The score of the data.
    knowledge
        Where the probabilities of edges are from.
    doubts
        Pairs of variables, and what is added to the log-odds of an edge between them because a
        larger model finds less evidence for it.
    """

    base: Score[Any, Any]
    knowledge: Knowledge
    doubts: tuple[tuple[str, str, float], ...] = ()
    kind: ClassVar[Kind | None] = None

    def __repr__(self) -> str:
        """Name the score of the data: the prior is part of the knowledge, which results show."""
        return repr(self.base)

    @property
    def needs(self) -> type[Statistic]:  # type: ignore[override]
        """The statistics of the score of the data."""
        return self.base.needs

    @property
    def basis(self) -> Basis | None:  # type: ignore[override]
        """The basis functions of the score of the data."""
        return self.base.basis

    def posterior(self, moments: Moments) -> tuple[Floats, float, Floats | None] | None:
        return self.base.posterior(moments)

    def bind(self, statistics: Any) -> LocalScore:
        inner = LOCAL_SCORES.require(self.base.bind(statistics))
        odds, place = (
            self.knowledge.log_odds(inner.nodes),
            {v: i for i, v in enumerate(inner.nodes)},
        )
        for a, b, doubt in self.doubts:
            odds[place[a], place[b]] += doubt
            odds[place[b], place[a]] += doubt
        return LocalScore(
            inner.nodes,
            prior_score(inner.kernel, odds),
            equivalent=inner.equivalent,
            equivalent_given_targets=inner.equivalent_given_targets,
            cost=inner.seconds,
        )
