"""Test of independence for discrete variables."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from isthmus.errors import UnplannedError
from isthmus.objectives import (
    INDEPENDENCE_TESTS,
    LOCAL_SCORES,
    Capabilities,
    IndependenceTest,
    LocalScore,
)
from isthmus.options import require_instance
from isthmus.scores.base import Score
from isthmus.scores.criteria import BIC
from isthmus.scores.criterion import Criterion
from isthmus.statistics import Counts, Kind
from isthmus.statistics.requested import LARGEST_TABLE, RequestedCounts
from isthmus.types import Floats, Integers

_CONSTANT = 1e-9
"""Variance below which the statistic has the same value for all tables with these margins."""


@final
@dataclass(frozen=True)
class ChiSquared(Score[Counts, IndependenceTest]):
    """Pearson's X² of contingency tables, with the exact mean and variance given the margins.

    For discrete variables. The rows that agree on the variables that are conditioned on are a
    stratum, and X² is summed over strata, with smaller weights where levels are rare. Its mean and
    variance under independence are known for given margins, however few rows a stratum has
    (Haldane 1940), and the p-value is that of the multiple of a χ² distribution with this mean and
    variance. So sparse tables keep their level, which the likelihood ratio G² does not: see
    ``benchmarks/results/test-levels.md``. Strata in which one of the two variables does not vary
    say nothing; if there are no others, as if a variable is conditioned on a copy of itself, the
    p-value is NaN.

    Parameters
    ----------
    score
        Score for hybrid searches, such as `BossFCI`, that begin with a graph of the best score. BIC
        has no false edges in noise, and finds more than `BDeu` with the options that `learn` uses.

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=1000, seed=1)
    >>> counts = ist.Frame(data).counts(ist.CountPlan.everything())
    >>> test = ist.ChiSquared().bind(counts)
    >>> names = counts.schema.names
    >>> smoke, bronc, either, dysp = map(names.index, ["smoke", "bronc", "either", "dysp"])
    >>> test.p_values(smoke, [], [dysp]).round(3)
    array([0.])
    >>> test.p_values(smoke, [either, bronc], [dysp]).round(3)
    array([0.474])
    """

    score: Score[Any, Any] = BIC()
    needs: ClassVar[type[Counts]] = Counts
    kind: ClassVar[Kind] = Kind.DISCRETE
    gives: ClassVar[Capabilities] = frozenset({INDEPENDENCE_TESTS})

    def __post_init__(self) -> None:
        require_instance(self, "score", Score, "BIC()")

    def bind(self, statistics: Counts) -> IndependenceTest:
        def local() -> LocalScore:
            return LOCAL_SCORES.require(self.score.bind(statistics))

        return TableTest(statistics, LIKELIHOOD.bind(statistics), local)


@final
@dataclass(frozen=True)
class LikelihoodRatio(Score[Counts, IndependenceTest]):
    """The likelihood ratio G², with degrees of freedom from levels that occur in each stratum.

    It misses more than `ChiSquared` in sparse tables, and rejects less that is true: in a table
    with hundreds of tests, the smallest p-value of `ChiSquared` is too small more often.
    """

    needs: ClassVar[type[Counts]] = Counts
    kind: ClassVar[Kind] = Kind.DISCRETE
    gives: ClassVar[Capabilities] = frozenset({INDEPENDENCE_TESTS})

    def bind(self, statistics: Counts) -> IndependenceTest:
        def local() -> LocalScore:
            return BIC().bind(statistics)

        return TableTest(statistics, LIKELIHOOD.bind(statistics), local, likelihood_ratio)


def likelihood_ratio(strata: Integers) -> float:
    """Return the p-value of G² of tables of shape (strata, levels, levels); NaN if none vary."""
    from scipy.special import chdtrc, xlogy

    rows, columns = strata.sum(axis=2), strata.sum(axis=1)
    freedom = ((rows > 0).sum(axis=1) - 1).clip(0) * ((columns > 0).sum(axis=1) - 1).clip(0)
    if not freedom.any():
        return math.nan
    n = rows.sum(axis=1)
    cells = xlogy(strata, strata).sum() + xlogy(n, n).sum()
    gain = cells - xlogy(rows, rows).sum() - xlogy(columns, columns).sum()
    return float(chdtrc(float(freedom.sum()), max(2.0 * float(gain), 0.0)))


@final
@dataclass(frozen=True)
class _Likelihood(Criterion):
    """The maximised log-likelihood without a penalty."""

    def parameter_price(self, n: int) -> float:
        return 0.0


LIKELIHOOD = _Likelihood()


class Pearson(NamedTuple):
    """X² of each stratum, and its mean and variance over all tables with the same margins."""

    statistic: Floats
    mean: Floats
    variance: Floats


def pearson(strata: Integers) -> Pearson:
    """Return X² of tables of shape (strata, levels, levels) and its exact first two moments.

    Strata in which one of the two variables does not vary are left out. The variance is that of
    Haldane (1940), in the form of Dawson (1954).
    """
    rows, columns = strata.sum(axis=2), strata.sum(axis=1)
    r, c = (rows > 0).sum(axis=1), (columns > 0).sum(axis=1)
    kept = (r > 1) & (c > 1)
    tables, r, c = strata[kept].astype(np.float64), r[kept], c[kept]
    rows, columns = rows[kept].astype(np.float64), columns[kept].astype(np.float64)
    n = rows.sum(axis=1)
    expected = rows[:, :, None] * columns[:, None, :] / n[:, None, None]
    squares = np.square(tables - expected)
    statistic = np.divide(squares, expected, out=squares, where=expected > 0).sum(axis=(1, 2))
    mean = n * (r - 1) * (c - 1) / (n - 1)
    smooth = [(k - 1) * (n - k) / (n - 1) for k in (r, c)]
    uneven = [
        (n * np.divide(1.0, m, out=np.zeros_like(m), where=m > 0).sum(axis=1) - k**2)
        / np.maximum(n - 2, 1)
        for m, k in ((rows, r), (columns, c))
    ]
    # With 2 rows and with 3, what is divided by zero is zero.
    variance = 2 * n / np.maximum(n - 3, 1) * (smooth[0] - uneven[0]) * (smooth[1] - uneven[1])
    variance += n**2 / (n - 1) * uneven[0] * uneven[1]
    return Pearson(statistic, mean, variance)


def p_value(found: Pearson) -> float:
    """Return the p-value of a weighted sum over strata; NaN if there are none.

    The sum is compared with the multiple of a χ² distribution that has its mean and variance. Rare
    levels make the variance of a stratum large. Its weight is then smaller, so that one row with
    two rare levels does not hide what the other strata show.
    """
    from scipy.special import chdtrc

    if not len(found.mean):
        return math.nan
    weights = np.minimum(1.0, 2.0 * found.mean / np.maximum(found.variance, _CONSTANT))
    mean, variance = float(weights @ found.mean), float(weights**2 @ found.variance)
    if variance <= _CONSTANT:
        return 1.0
    factor = 2.0 * mean / variance
    return float(chdtrc(factor * mean, factor * float(weights @ found.statistic)))


@final
class TableTest(IndependenceTest):
    """The test of tables, bound to counts.

    Parameters
    ----------
    counts
        The counts.
    likelihood
        Log-likelihoods of families; it estimates those whose table is not known yet, and asks for
        the table.
    score
        Returns the score for hybrid searches.
    test
        Returns the p-value of tables of shape (strata, levels, levels).
    """

    def __init__(
        self,
        counts: Counts | RequestedCounts,
        likelihood: LocalScore,
        score: Callable[[], LocalScore],
        test: Callable[[Integers], float] = lambda strata: p_value(pearson(strata)),
    ) -> None:
        super().__init__(counts.schema.names)
        self._test = test
        self._counts = counts
        self._likelihood = likelihood
        self._score = score
        self._known: dict[tuple[int, ...], float] = {}

    def p_values(self, x: int, given: Sequence[int], others: Sequence[int]) -> Floats:
        p_values = np.empty(len(others))
        unknown = []
        for k, y in enumerate(others):
            key = (min(x, y), max(x, y), *given)
            if key not in self._known:
                try:
                    self._known[key] = self._p_value(key)
                except UnplannedError:  # not counted yet
                    unknown.append(k)
                    continue
            p_values[k] = self._known[key]
        if unknown:
            p_values[unknown] = self._estimated(x, given, [others[k] for k in unknown])
        return p_values

    def _p_value(self, key: tuple[int, ...]) -> float:
        x, y, *given = key
        counts = self._counts
        if isinstance(counts, RequestedCounts) and counts.cells_of(key) > LARGEST_TABLE:
            raise UnplannedError(f"Tables of more than {LARGEST_TABLE:,} cells are not counted.")
        sizes = counts.schema.cardinalities
        table = counts.table([self.nodes[v] for v in (*given, x, y)])
        found = self._test(table.reshape(-1, int(sizes[x]), int(sizes[y])))
        if math.isnan(found) and not (self._varies(x) and self._varies(y)):
            return 1.0
        return found

    def _estimated(self, x: int, given: Sequence[int], others: Sequence[int]) -> Floats:
        """Return p-values of estimated likelihood ratios; a table that is too large has 0."""
        from scipy.special import chdtrc

        sizes = self._counts.schema.cardinalities.astype(np.float64)
        scores = self._likelihood.extensions(x, given, others)
        strata = np.prod(sizes[list(given)])
        freedom = np.maximum(strata * (sizes[x] - 1.0) * (sizes[list(others)] - 1.0), 1.0)
        with np.errstate(invalid="ignore"):
            g_squared = 2.0 * np.maximum(scores[1:] - scores[0], 0.0)
        unknown = ~np.isfinite(g_squared) | ~np.isfinite(scores[1:])
        p_values: Floats = chdtrc(freedom, np.where(unknown, np.inf, g_squared))
        return p_values

    def _varies(self, variable: int) -> bool:
        return int((self._counts.table([self.nodes[variable]]) > 0).sum()) > 1

    def local_score(self) -> LocalScore:
        return self._score()
