"""Node-average likelihood: criteria for discrete variables with missing values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.kernels.scoring import incomplete_score
from isthmus.objectives import LocalScore
from isthmus.options import require_number
from isthmus.scores.aic import AIC
from isthmus.scores.base import Score
from isthmus.scores.bic import BIC
from isthmus.scores.costs import counting_cost
from isthmus.scores.ebic import EBIC
from isthmus.scores.expected import penalties
from isthmus.scores.extended import extended
from isthmus.statistics import Kind
from isthmus.statistics.incomplete import IncompleteCounts
from isthmus.types import Floats


@final
@dataclass(frozen=True)
class NodeAverageScore(Score[IncompleteCounts, LocalScore]):
    """A criterion in which each family is scored on the rows that are complete for it.

    For discrete variables; higher is better. Let n be the number of rows, m that of the rows
    complete for a child and its parents, and I the mutual information of child and parents in these
    rows. The score is ``n * I`` plus the log-likelihood of the child without parents, scaled to n
    rows, minus the penalties. The penalty per parameter of the parents grows by the factor
    ``n / m``, as the noise of ``n * I`` does. For each parent, `caution` standard errors of the
    comparison of different rows are subtracted, so that the score is consistent if values are
    missing completely at random (Balov 2013; Bodewes and Scutari 2021). Without missing values it
    is the criterion itself.

    Parameters
    ----------
    base
        `BIC`, `AIC` or `EBIC`.
    caution
        Number of standard errors.
    """

    base: BIC | AIC | EBIC
    caution: float = 1.0
    needs: ClassVar[type[IncompleteCounts]] = IncompleteCounts
    kind: ClassVar[Kind] = Kind.DISCRETE

    def __post_init__(self) -> None:
        require_number(self, "caution", least=0)

    def bind(self, statistics: IncompleteCounts) -> LocalScore:
        """Bind the score to incomplete rows."""
        if not statistics.has_missing:
            return self.base.bind(statistics.complete())
        each, prices = penalties(self.base, statistics.n, len(statistics.schema))
        kernel = incomplete_score(
            statistics.codes,
            statistics.weights,
            statistics.schema.cardinalities,
            each,
            self._errors(statistics),
        )
        # Markov-equivalent graphs have the same score on complete data, and nearly so here.
        schema = statistics.schema
        cost = counting_cost(schema, statistics.n)
        local = LocalScore(schema.names, kernel, equivalent=True, cost=cost)
        return extended(local, prices)

    def _errors(self, statistics: IncompleteCounts) -> Floats:
        """Return the penalty per parent of each child, per standard deviation of a contribution."""
        pairs = statistics.pairs()
        lost = np.diagonal(pairs)[:, None] / np.maximum(pairs, 1.0) - 1.0
        errors: Floats = self.caution * np.sqrt(statistics.n * np.maximum(lost, 0.0))
        return errors
