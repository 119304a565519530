"""Extended Bayesian information criterion of linear Gaussian networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.objectives import LocalScore
from isthmus.scores.base import Score
from isthmus.scores.gaussian import bind_likelihood
from isthmus.statistics import Kind, Moments


@final
@dataclass(frozen=True)
class GaussianEBIC(Score[Moments, LocalScore]):
    """BIC that also pays for the number of edges there were to choose from.

    ``GaussianBIC`` minus ``2 * gamma * log(d)`` for each edge among d variables (Foygel and
    Drton, NeurIPS 2010, for graphical models). It keeps the number of false edges in check
    when there are many variables, and every edge costs the same, so the score stays
    score-equivalent.

    Parameters
    ----------
    gamma
        Weight of the last term: 0 is BIC, 0.5 and 1 are usual.
    """

    gamma: float = 0.5
    needs: ClassVar[type[Moments]] = Moments
    kind: ClassVar[Kind] = Kind.CONTINUOUS

    def bind(self, statistics: Moments) -> LocalScore:
        """Give the objective that a search sees."""
        n, d = statistics.n, len(statistics.schema)
        parents = np.arange(d + 1)
        penalties = 0.5 * np.log(n) * (parents + 2) + 2.0 * self.gamma * np.log(d) * parents
        return bind_likelihood(statistics, penalties)
