"""Akaike information criterion for discrete variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from isthmus.kernels.scoring import DiscreteForm
from isthmus.objectives import LocalScore
from isthmus.scores.base import Score
from isthmus.scores.score_bounds import likelihood_bound
from isthmus.scores.tables import bind_counts, free_parameters, log_likelihood
from isthmus.statistics import Counts, Kind
from isthmus.types import Integers


@final
@dataclass(frozen=True)
class AIC(Score[Counts, LocalScore]):
    """Akaike information criterion: log-likelihood minus the number of free parameters.

    For discrete variables; higher is better.

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=1000, seed=1)
    >>> ist.learn(data, score=ist.AIC()).dag.parents("either")
    ('tub', 'lung')
    """

    needs: ClassVar[type[Counts]] = Counts
    kind: ClassVar[Kind] = Kind.DISCRETE

    def bind(self, statistics: Counts) -> LocalScore:
        """Bind the score to counts."""

        def table_score(table: Integers) -> float:
            return log_likelihood(table) - free_parameters(table)

        return bind_counts(
            statistics,
            DiscreteForm.LIKELIHOOD,
            1.0,
            table_score,
            equivalent=True,
            ceiling=lambda: likelihood_bound(statistics, 1.0),
        )
