"""Bayesian information criterion for discrete variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.kernels.scoring import DiscreteForm
from isthmus.objectives import LocalScore
from isthmus.options import require_number
from isthmus.scores.base import Score
from isthmus.scores.score_bounds import likelihood_bound
from isthmus.scores.tables import bind_counts, free_parameters, log_likelihood
from isthmus.statistics import Counts, Kind
from isthmus.types import Integers


@final
@dataclass(frozen=True)
class BIC(Score[Counts, LocalScore]):
    """Bayesian information criterion: log-likelihood minus a penalty per free parameter.

    For discrete variables; higher is better. The penalty is ``penalty * log(n) / 2`` per parameter.
    All configurations of the parents have parameters, including those that do not occur.

    Parameters
    ----------
    penalty
        Factor of the penalty. 1 is the standard criterion; larger values give sparser graphs.

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=1000, seed=1)
    >>> round(ist.score(data, data.dag, ist.BIC()), 1)
    -2258.4
    """

    penalty: float = 1.0
    needs: ClassVar[type[Counts]] = Counts
    kind: ClassVar[Kind] = Kind.DISCRETE

    def __post_init__(self) -> None:
        require_number(self, "penalty", least=0)

    def bind(self, statistics: Counts) -> LocalScore:
        """Bind the score to counts."""
        each = self.penalty * 0.5 * float(np.log(statistics.n))

        def table_score(table: Integers) -> float:
            return log_likelihood(table) - each * free_parameters(table)

        return bind_counts(
            statistics,
            DiscreteForm.LIKELIHOOD,
            each,
            table_score,
            equivalent=True,
            ceiling=lambda: likelihood_bound(statistics, each),
        )
