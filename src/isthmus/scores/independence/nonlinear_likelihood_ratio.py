"""Test of independence for continuous variables with nonlinear effects."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from isthmus.errors import MismatchError
from isthmus.kernels.scoring import gaussian_block_score
from isthmus.objectives import (
    INDEPENDENCE_TESTS,
    LOCAL_SCORES,
    Capabilities,
    IndependenceTest,
    LocalScore,
    PythonLocalScore,
)
from isthmus.options import require_instance
from isthmus.scores.base import Score
from isthmus.scores.gaussian import TOLERANCE
from isthmus.statistics import Chebyshev, Kind, Moments
from isthmus.statistics.moments import correlate
from isthmus.types import Floats


@final
@dataclass(frozen=True)
class NonlinearLikelihoodRatio(Score[Moments, IndependenceTest]):
    """Likelihood-ratio test of regressions on curves, for nonlinear effects.

    For continuous variables. Each of the two variables is regressed on functions of the variables
    that are conditioned on, and then also on functions of the other variable. They are independent
    if neither regression improves: the p-value is the smaller one of both, corrected for two tests
    (Šidák). So curves are seen that `FisherZ` misses, and straight lines with a little less power.
    Effects must be sums of smooth curves; interactions leave dependence. With rows in memory,
    `learn` also asks for noise whose variance is not constant, and takes the larger p-value. Needs
    the moments of the basis functions only, so it works wherever sums do; in an engine and in a
    federation, the variance is assumed to be constant.

    Parameters
    ----------
    score
        Score for hybrid searches, such as `BossFCI`, that begin with a graph of the best score. By
        default the BIC of these regressions, which also sees curves; a linear score does not.
    basis
        The functions of each variable.

    Examples
    --------
    >>> import isthmus as ist
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> x = rng.normal(size=300)
    >>> table = {"x": x, "y": x**2 + rng.normal(size=300)}
    >>> test = ist.NonlinearLikelihoodRatio()
    >>> test = test.bind(ist.summarise(ist.WithFeatures(table, test.basis)))
    >>> test.p_values(0, [], [1]).round(3)
    array([0.])
    """

    score: Score[Any, Any] | None = None
    basis: Chebyshev = Chebyshev(6, 3.0)
    needs: ClassVar[type[Moments]] = Moments
    kind: ClassVar[Kind] = Kind.CONTINUOUS
    gives: ClassVar[Capabilities] = frozenset({INDEPENDENCE_TESTS})

    def __post_init__(self) -> None:
        require_instance(self, "score", Score, "GaussianBIC()", optional=True)
        require_instance(self, "basis", Chebyshev, "Chebyshev(6, 3.0)")

    def bind(self, statistics: Moments) -> IndependenceTest:
        variables = statistics.schema.variables
        if not all(v.features and isinstance(v.features.basis, Chebyshev) for v in variables):
            raise MismatchError(
                f"{self!r} needs Chebyshev polynomials of every variable. Give the table, or the "
                "moments of WithFeatures(table, Chebyshev(6, 3.0))."
            )
        return _Regressions(statistics, self.score)


@final
class _Regressions(IndependenceTest):
    """Log-likelihoods of regressions: variable i is block i, and its functions are block d + i."""

    def __init__(self, moments: Moments, score: Score[Any, Any] | None) -> None:
        names = moments.schema.names
        super().__init__(names)
        self._values = moments.without_features()
        self._score = score
        self._functions = np.array([stop - start - 1 for start, stop in moments.blocks])
        starts = [start for start, _ in moments.blocks]
        functions = [k for start, stop in moments.blocks for k in range(start + 1, stop)]
        columns = [*starts, *functions]
        correlation, _ = correlate(moments.scatter()[np.ix_(columns, columns)])
        d = len(names)
        blocks = np.concatenate([np.arange(d), d + np.cumsum([0, *self._functions])])
        self._likelihood = gaussian_block_score(
            correlation,
            blocks,
            np.zeros(2 * d),
            half_n=0.5 * moments.n,
            penalty=0.0,
            tolerance=TOLERANCE,
        )

    def p_values(self, x: int, given: Sequence[int], others: Sequence[int]) -> Floats:
        forward = self._improvement(x, given, np.array(others))
        backward = [self._improvement(y, given, np.array([x]))[0] for y in others]
        p_values: Floats = -np.expm1(2.0 * np.log1p(-np.minimum(forward, backward)))
        return p_values

    def _improvement(self, child: int, given: Sequence[int], others: np.ndarray) -> Floats:
        """Return p-values of the regression on functions of each of some more variables."""
        from scipy.special import chdtrc

        d, n = len(self.nodes), self._values.n
        condition = d + np.array(given, np.int64)
        scores = self._likelihood.extensions(child, condition, d + others)
        gains = np.maximum(scores[1:] - scores[0], 0.0)
        columns = self._functions[others]
        rows = n - 1 - self._functions[list(given)].sum() - 0.5 * (columns + 2)  # Bartlett
        p_values: Floats = chdtrc(columns, 2.0 * gains / n * np.maximum(rows, 0.0))
        return p_values

    def local_score(self) -> LocalScore:
        if self._score is not None:
            return LOCAL_SCORES.require(self._score.bind(self._values))
        return PythonLocalScore(self.nodes, self._bic, equivalent=False)

    def _bic(self, child: int, parents: tuple[int, ...]) -> float:
        """Return the BIC of the regression of a variable on functions of its parents."""
        own = np.array(parents, np.int64)
        likelihood = self._likelihood.extensions(child, len(self.nodes) + own, own[:0])[0]
        price = 0.5 * math.log(self._values.n)  # per function
        return float(likelihood) - price * int(self._functions[own].sum())
