"""Bayesian information criterion for continuous variables."""

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
    """BIC of linear Gaussian networks: log-likelihood minus a penalty per parameter.

    For continuous variables; higher is better. The penalty is ``penalty * log(n) / 2`` per
    parameter. A node with k parents has k + 2 parameters: coefficients, intercept and variance.

    Parameters
    ----------
    penalty
        Factor of the penalty. 1 is the standard criterion; larger values give sparser graphs. Other
        implementations of order search use 2 by default.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import simulate
    >>> dag = simulate.erdos_renyi(5, 6, seed=1)
    >>> numbers = simulate.linear(dag, 300, seed=1).data
    >>> round(ist.score(numbers, dag, ist.GaussianBIC()), 1)
    -2177.2
    """

    penalty: float = 1.0
    needs: ClassVar[type[Moments]] = Moments
    kind: ClassVar[Kind] = Kind.CONTINUOUS

    def __post_init__(self) -> None:
        require_number(self, "penalty", least=0)

    def bind(self, statistics: Moments) -> LocalScore:
        """Bind the score to moments."""
        parents = np.arange(len(statistics.schema) + 1)
        penalties = self.penalty * 0.5 * np.log(statistics.n) * (parents + 2)
        return bind_likelihood(statistics.numeric(self), penalties)
