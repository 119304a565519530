"""Bayesian information criterion of linear Gaussian networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.objectives import LocalScore
from isthmus.options import require_number
from isthmus.scores.base import Score
from isthmus.scores.gaussian import bind_likelihood
from isthmus.statistics import Kind, Moments


@final
@dataclass(frozen=True)
class GaussianBIC(Score[Moments, LocalScore]):
    """Log-likelihood minus ``penalty * log(n) / 2`` for each parameter.

    A node with k parents has k + 2 parameters: coefficients, intercept and variance. Higher is
    better.

    Parameters
    ----------
    penalty
        1 is the criterion itself; 2 is what other implementations of order search use by default
        and gives sparser graphs.
    """

    penalty: float = 1.0
    needs: ClassVar[type[Moments]] = Moments
    kind: ClassVar[Kind] = Kind.CONTINUOUS

    def __post_init__(self) -> None:
        require_number(self, "penalty", least=0)

    def bind(self, statistics: Moments) -> LocalScore:
        """Give the objective that a search sees."""
        parents = np.arange(len(statistics.schema) + 1)
        penalties = self.penalty * 0.5 * np.log(statistics.n) * (parents + 2)
        return bind_likelihood(statistics.numeric(self), penalties)
