"""Test of independence for tables with continuous and discrete columns."""

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
from isthmus.scores.degenerate_gaussian import DegenerateGaussian
from isthmus.scores.independence.determined import DeterminedColumns
from isthmus.statistics import Moments
from isthmus.statistics.moments import correlate
from isthmus.types import Floats


@final
@dataclass(frozen=True)
class MixedLikelihoodRatio(Score[Moments, IndependenceTest]):
    """Likelihood-ratio test for continuous and discrete variables.

    A discrete variable with r levels is represented by r - 1 indicator columns, as in
    `DegenerateGaussian`, and two variables are independent given others if all partial correlations
    of their columns are zero (Wilks' lambda, with Bartlett's correction for few rows). Interactions
    of discrete variables that change no mean are missed. With rows in memory, `learn` also allows
    for unequal variances, and for curves of numbers that are conditioned on, such as the share of a
    level that follows a logit. If the others determine one of the variables, the test tells
    nothing, and the p-value is NaN. Needs moments only; in an engine and in a federation, variances
    are assumed to be equal, and effects of numbers to be lines.

    Parameters
    ----------
    score
        Score for hybrid searches, such as `BossFCI`, that begin with a graph of the best score.

    Examples
    --------
    >>> import isthmus as ist
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> sex = rng.choice(["f", "m"], 300)
    >>> height = 165 + 12 * (sex == "m") + 6 * rng.normal(size=300)
    >>> table = {"sex": sex, "height": height, "luck": rng.normal(size=300)}
    >>> test = ist.MixedLikelihoodRatio().bind(ist.summarise(table))
    >>> test.p_values(0, [], [1, 2]).round(3)
    array([0.   , 0.404])
    """

    score: Score[Any, Any] = DegenerateGaussian(gamma=0.5)
    needs: ClassVar[type[Moments]] = Moments
    kind: ClassVar[None] = None
    gives: ClassVar[Capabilities] = frozenset({INDEPENDENCE_TESTS})

    def __post_init__(self) -> None:
        require_instance(self, "score", Score, "DegenerateGaussian()")

    def bind(self, statistics: Moments) -> IndependenceTest:
        return _WilksLambda(statistics.without_features(), self.score)


@final
class _WilksLambda(IndependenceTest):
    def __init__(self, moments: Moments, score: Score[Any, Any]) -> None:
        super().__init__(moments.schema.names)
        self._moments = moments
        self._score = score
        self._columns = np.array([stop - start for start, stop in moments.blocks])
        self._likelihood = DegenerateGaussian(penalty_discount=0.0).bind(moments)
        correlation, _ = correlate(moments.scatter())
        self._determined = DeterminedColumns(correlation, moments.blocks)

    def p_values(self, x: int, given: Sequence[int], others: Sequence[int]) -> Floats:
        from scipy.special import chdtrc

        n, own = self._moments.n, int(self._columns[x])
        names = self.nodes
        there = np.array(
            [self._moments.rows_about([names[v] for v in (x, other, *given)]) for other in others]
        )
        scores = self._likelihood.extensions(x, given, others)
        gains = np.maximum(scores[1:] - scores[0], 0.0)
        columns = self._columns[list(others)]
        rows = there - 1 - self._columns[list(given)].sum() - 0.5 * (own + columns + 1)
        p_values: Floats = chdtrc(own * columns, 2.0 * gains / n * np.maximum(rows, 0.0))
        p_values[(rows > 0.0) & self._determined.either(x, given, others)] = np.nan
        return p_values

    def local_score(self) -> LocalScore:
        return LOCAL_SCORES.require(self._score.bind(self._moments))
