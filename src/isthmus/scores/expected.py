"""Criteria of expected counts: one half of structural expectation-maximisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.kernels.scoring import DiscreteForm, discrete_score
from isthmus.objectives import LocalScore
from isthmus.objectives.penalised import PenalisedScore
from isthmus.scores.aic import AIC
from isthmus.scores.base import Score
from isthmus.scores.bic import BIC
from isthmus.scores.costs import counting_cost
from isthmus.scores.ebic import EBIC
from isthmus.scores.extended import edge_prices
from isthmus.statistics import Kind
from isthmus.statistics.expected import ExpectedCounts
from isthmus.types import Floats


def penalties(base: BIC | AIC | EBIC, n: int, d: int) -> tuple[float, Floats]:
    """Return the price of a free parameter, and those of 0, 1, … d parents."""
    log_n, none = float(np.log(n)), np.zeros(d + 1)
    if isinstance(base, BIC):
        return 0.5 * base.penalty * log_n, none
    if isinstance(base, EBIC):
        return 0.5 * log_n, edge_prices(d, base.gamma)
    return 1.0, none


@final
@dataclass(frozen=True)
class ExpectedScore(Score[ExpectedCounts, LocalScore]):
    """A criterion of expected counts, for discrete variables with missing values.

    The log-likelihood is that of the expected counts, and the number of rows in the penalty is that
    of all rows; higher is better.

    Parameters
    ----------
    base
        `BIC`, `AIC` or `EBIC`.
    """

    base: BIC | AIC | EBIC
    needs: ClassVar[type[ExpectedCounts]] = ExpectedCounts
    kind: ClassVar[Kind] = Kind.DISCRETE

    def bind(self, statistics: ExpectedCounts) -> LocalScore:
        """Bind the score to expected counts."""
        schema, rows, draws = statistics.schema, statistics.completed, statistics.draws
        each, prices = penalties(self.base, statistics.n, len(schema))
        form = DiscreteForm.LIKELIHOOD
        kernel = discrete_score(rows.codes, rows.weights, schema.cardinalities, form, draws * each)
        cost = counting_cost(schema, statistics.n * draws)
        many = LocalScore(schema.names, kernel, equivalent=True, cost=cost)
        return PenalisedScore(many, prices, 1.0 / draws)
