"""Extended Bayesian information criterion of linear Gaussian networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.objectives import LocalScore
from isthmus.options import require_number
from isthmus.scores.base import Score
from isthmus.scores.extended import edge_prices, small_sample_prices
from isthmus.scores.gaussian import bind_likelihood
from isthmus.statistics import Kind, Moments


@final
@dataclass(frozen=True)
class GaussianEBIC(Score[Moments, LocalScore]):
    """BIC that also accounts for the number of edges there are to choose from.

    ``GaussianBIC`` minus ``2 * gamma * log(d)`` for each edge among d variables (Foygel and
    Drton, NeurIPS 2010, for graphical models). It keeps the number of false edges in check
    when there are many variables, and every edge costs the same, so the score stays
    score-equivalent.

    Parameters
    ----------
    gamma
        Weight of the extra term: 0 is BIC, 0.5 and 1 are usual.
    small_sample
        Whether each edge must pass a test of the same level by the t distribution, which asks for
        more when there are few rows. False is the criterion as published; for many rows both agree.
    """

    gamma: float = 0.5
    small_sample: bool = True
    needs: ClassVar[type[Moments]] = Moments
    kind: ClassVar[Kind] = Kind.CONTINUOUS

    def __post_init__(self) -> None:
        require_number(self, "gamma", least=0)

    def bind(self, statistics: Moments) -> LocalScore:
        """Bind the score to statistics."""
        n, d = statistics.n, len(statistics.schema)
        if self.small_sample:
            edges = small_sample_prices(n, d, self.gamma)
        else:
            edges = 0.5 * np.log(n) * np.arange(d + 1) + edge_prices(d, self.gamma)
        penalties = np.log(n) + edges
        return bind_likelihood(statistics.numeric(self), penalties)
