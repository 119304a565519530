"""Test of partial correlations, for continuous variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from isthmus.objectives import (
    INDEPENDENCE_TESTS,
    LOCAL_SCORES,
    Capabilities,
    IndependenceTest,
    LocalScore,
)
from isthmus.options import require_instance
from isthmus.scores.base import Score
from isthmus.scores.gaussian import bind_likelihood
from isthmus.scores.gaussian_criteria import GaussianEBIC
from isthmus.scores.independence.determined import DeterminedColumns
from isthmus.statistics import Kind, Moments
from isthmus.statistics.moments import correlate
from isthmus.types import Floats


@final
@dataclass(frozen=True)
class FisherZ(Score[Moments, IndependenceTest]):
    """Test of partial correlations by Fisher's z transform, for continuous variables.

    The variables are independent given others if their partial correlation is zero, which holds for
    linear relations with normal noise. With rows in memory, `learn` also asks for noise whose
    variance may depend on the others, and takes the larger p-value. If the others determine
    one of the variables, the test tells nothing, and the p-value is NaN. Needs moments only, so it
    works wherever sums do: in a warehouse, and across organisations. There, the variance is assumed
    to be constant.

    Parameters
    ----------
    score
        Score for hybrid searches, such as `BossFCI`, that begin with a graph of the best score.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import simulate
    >>> dag = ist.DAG(["a", "b", "c"], [("a", "b"), ("b", "c")])
    >>> moments = ist.summarise(simulate.linear(dag, 500, seed=2).data)
    >>> test = ist.FisherZ().bind(moments)
    >>> test.p_values(0, [], [2]).round(3), test.p_values(0, [1], [2]).round(3)
    (array([0.]), array([0.188]))
    """

    score: Score[Any, Any] = GaussianEBIC()
    needs: ClassVar[type[Moments]] = Moments
    kind: ClassVar[Kind] = Kind.CONTINUOUS
    gives: ClassVar[Capabilities] = frozenset({INDEPENDENCE_TESTS})

    def __post_init__(self) -> None:
        require_instance(self, "score", Score, "GaussianBIC()")

    def bind(self, statistics: Moments) -> IndependenceTest:
        return _PartialCorrelations(statistics.numeric(self), self.score)


@final
class _PartialCorrelations(IndependenceTest):
    def __init__(self, moments: Moments, score: Score[Any, Any]) -> None:
        super().__init__(moments.schema.names)
        self._moments = moments
        self._score = score
        self._likelihood = bind_likelihood(moments, lambda _: np.zeros(len(self.nodes) + 1))
        correlation, _ = correlate(moments.covariance())
        self._determined = DeterminedColumns(correlation, moments.blocks)

    def p_values(self, x: int, given: Sequence[int], others: Sequence[int]) -> Floats:
        from scipy.special import erfc

        n = self._moments.n
        scores = self._likelihood.extensions(x, given, others)
        gains = np.maximum(scores[1:] - scores[0], 0.0)
        # The log-likelihood gains -n/2 log(1 - r^2) for a partial correlation r.
        correlation = np.sqrt(-np.expm1(-2.0 * gains / n))
        names = self.nodes
        rows = np.array(
            [self._moments.rows_about([names[v] for v in (x, other, *given)]) for other in others]
        )
        freedom = np.maximum(rows - len(given) - 3, 0)
        with np.errstate(divide="ignore"):
            z = np.where(freedom > 0, np.sqrt(freedom) * np.arctanh(correlation), 0.0)
        p_values: Floats = erfc(z / np.sqrt(2.0))
        determined = self._determined.either(x, given, others) & (freedom > 0)
        p_values[determined] = np.nan
        return p_values

    def local_score(self) -> LocalScore:
        return LOCAL_SCORES.require(self._score.bind(self._moments))
