"""Test of independence for discrete variables."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from isthmus.arrays import Bools, Floats, Integers
from isthmus.errors import MismatchError, UnplannedError
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
from isthmus.scores.criterion import Criterion
from isthmus.scores.discrete import BIC
from isthmus.scores.gaussian import TOLERANCE, DegenerateGaussian, GaussianEBIC, bind_likelihood
from isthmus.statistics import Chebyshev, Counts, Kind, Moments
from isthmus.statistics.moments import correlate
from isthmus.statistics.requested import LARGEST_TABLE, RequestedCounts

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


# --- Test of independence for continuous variables with nonlinear effects -----------------------


@final
@dataclass(frozen=True)
class NonlinearLikelihoodRatio(Score[Moments, IndependenceTest]):
    """Likelihood-ratio test of regressions on curves, for nonlinear effects.

    For continuous variables. Each of the two variables is regressed on functions of the variables
    that are conditioned on, and then also on functions of the other variable. They are independent
    if neither regression improves: the p-value is the smaller one of both, corrected for two tests
    (Šidák). So curves are seen that `FisherZ` misses, and straight lines with a little less power.
    Effects must be sums of smooth curves; interactions leave dependence. `learn` also asks for
    noise whose variance is not constant, and takes the larger p-value. Needs the moments of the
    basis functions only, so it works wherever sums do; there, the second test sees lines and
    parabolas.

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


# --- Variables that others determine -------------------------------------------------------------
#
# Which variables others determine exactly, so that a test given those others tells nothing.

_NOTHING = 1e-10
"""Share of the variance of a column up to which the rest counts as rounding."""


@final
class DeterminedColumns:
    """Finds variables all of whose columns are linear functions of the columns of others.

    Given a copy of it, a variable is independent of everything, and so is the copy. If such tests
    counted as others do, both would lose their edges.

    Parameters
    ----------
    correlation
        Correlations of all columns.
    blocks
        First and last column (exclusive) of each variable.
    """

    def __init__(self, correlation: Floats, blocks: Sequence[tuple[int, int]]) -> None:
        self._correlation = correlation
        self._columns = [np.arange(start, stop) for start, stop in blocks]
        try:
            np.linalg.cholesky(correlation - 2.0 * _NOTHING * np.eye(len(correlation)))
        except np.linalg.LinAlgError:
            self._exist = True
        else:  # every column has a rest that no others determine
            self._exist = False

    def either(self, x: int, conditions: Sequence[int], others: Sequence[int]) -> Bools:
        """Return for each of the others whether the conditions determine it, or x."""
        if not self._exist or not len(conditions):
            return np.zeros(len(others), dtype=bool)
        inside = np.concatenate([self._columns[v] for v in conditions])
        values, vectors = np.linalg.eigh(self._correlation[np.ix_(inside, inside)])
        kept = values > _NOTHING
        directions = vectors[:, kept] / np.sqrt(values[kept])
        rests = np.array([self._rest(inside, directions, v) for v in (x, *others)])
        return np.asarray((rests[1:] <= _NOTHING) | (rests[0] <= _NOTHING))

    def _rest(self, inside: np.ndarray, directions: Floats, variable: int) -> float:
        """Return the largest share of a column of a variable that directions do not explain."""
        explained = self._correlation[np.ix_(self._columns[variable], inside)] @ directions
        return float((1.0 - np.square(explained).sum(axis=1)).max(initial=0.0))


# --- Test of partial correlations, for continuous variables -------------------------------------


@final
@dataclass(frozen=True)
class FisherZ(Score[Moments, IndependenceTest]):
    """Test of partial correlations by Fisher's z transform, for continuous variables.

    The variables are independent given others if their partial correlation is zero, which holds for
    linear relations with normal noise. `learn` also asks for noise whose variance may depend on the
    others, and takes the larger p-value: with rows in memory, or from sums of functions of the
    columns. If the others determine one of the variables, the test tells nothing, and the p-value
    is NaN. Needs moments only, so it works wherever sums do: in a warehouse, and across
    organisations.

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


# --- Test of independence for tables with continuous and discrete columns -----------------------


@final
@dataclass(frozen=True)
class MixedLikelihoodRatio(Score[Moments, IndependenceTest]):
    """Likelihood-ratio test for continuous and discrete variables.

    A discrete variable with r levels is represented by r - 1 indicator columns, as in
    `DegenerateGaussian`, and two variables are independent given others if all partial correlations
    of their columns are zero (Wilks' lambda, with Bartlett's correction for few rows). Interactions
    of discrete variables that change no mean are missed. `learn` also allows for unequal variances,
    and for curves of numbers that are conditioned on, such as the share of a level that follows a
    logit: with rows in memory, or from sums of functions of the columns. If the others determine
    one of the variables, the test tells nothing, and the p-value is NaN. Needs moments only.

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
