"""The base class of criteria for discrete variables, and their versions for missing values."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, TypeAlias, final

import numpy as np

from isthmus.arrays import Floats, Integers
from isthmus.kernels.scoring import DiscreteForm, discrete_score, incomplete_score, row_score
from isthmus.kernels.scoring import LocalScore as LocalScoreKernel
from isthmus.objectives import LocalScore, PythonLocalScore
from isthmus.objectives.local import BoundWork, FamilyCost, PenalisedScore
from isthmus.options import require_number
from isthmus.scores.base import Score, extended
from isthmus.scores.score_bounds import likelihood_bound
from isthmus.statistics import Counts, Kind, Moments, Schema
from isthmus.statistics.incomplete import ExpectedCounts, IncompleteCounts
from isthmus.statistics.on_demand import RowsOfScores

# --- Scores that charge a family by its own rows -------------------------------------------------
#
# Penalties of families by the rows that speak about their variables, if values were missing.

_MOST_LEVELS = 64
"""Different numbers of rows for which penalties are computed; others are rounded down to them."""
_SECONDS = 4e-5
"""For the penalties of a family; those of many families at once share most of it."""


def at_own_rows(
    score: LocalScore,
    moments: Moments,
    prices: Callable[[int], Floats],
    coefficient: Callable[[int], float] = lambda _: 0.0,
) -> LocalScore:
    """Return a score whose families are charged by the rows that speak about their variables.

    All families have the likelihood of ``n`` rows, from one covariance matrix, so an edge gains
    nothing if the others explain it. In a family about which only m rows speak, chance gains
    ``n / m`` times as much as with n rows. Its penalty is therefore ``n / m`` times that of m rows:
    an edge must gain as much as if the table had m rows. A sparse variable makes the edges of its
    own families dearer, and no others.

    Graphs that are Markov-equivalent have the same likelihood and number of edges, but their
    families differ, so their penalties may. The best member of a class is one in which a sparse
    variable is a parent of few others. Complete rows give the score itself.

    Parameters
    ----------
    score
        The score with penalties for n rows.
    moments
        The moments.
    prices
        Returns the penalties of 0, 1, … d parents for a number of rows.
    coefficient
        Returns the penalty of a coefficient between two columns for a number of rows.
    """
    if moments.pair_rows is None or len(moments.schema) < 2:
        return score
    families = _Families(score.kernel, moments, moments.pair_rows, prices, coefficient)
    if not families.charge:
        return score
    return LocalScore(
        score.nodes,
        row_score(len(score.nodes), families.values),
        equivalent=score.equivalent,
        cost=lambda parents: score.seconds(parents) + _SECONDS,
    )


@final
class _Families:
    """Scores of families with their penalties; see `at_own_rows`."""

    def __init__(
        self,
        inner: LocalScoreKernel,
        moments: Moments,
        rows: Floats,
        prices: Callable[[int], Floats],
        coefficient: Callable[[int], float],
    ) -> None:
        n, d = moments.n, len(moments.schema)
        self.error: BaseException | None = None
        self._inner = inner
        numbers = np.unique(rows[~np.eye(d, dtype=np.bool_)])
        if len(numbers) > _MOST_LEVELS:
            ends = np.geomspace(numbers[0], numbers[-1], _MOST_LEVELS)
            numbers = numbers[np.unique(np.searchsorted(numbers, ends))]
        levels = np.maximum(np.searchsorted(numbers, rows, side="right") - 1, 0)
        np.fill_diagonal(levels, len(numbers) - 1)
        self._levels = levels
        usual = prices(n)
        self._flat = np.array([n / m * prices(int(m)) - usual for m in numbers])
        self._flat -= self._flat[:, :1]
        self._slope = np.array([n / m * coefficient(int(m)) - coefficient(n) for m in numbers])
        self.charge = bool(self._flat.any() or self._slope.any())
        self._widths = np.array([b - a for a, b in moments.schema.blocks], np.float64)

    def values(self, child: int, parents: tuple[int, ...], candidates: Integers) -> Floats:
        """Return the score of the parents, then those with each candidate."""
        given = np.array(parents, np.int64)
        scores = np.asarray(self._inner.extensions(child, given, candidates))
        scores[:1] -= self._more(child, given, given[:0])
        if len(candidates):
            scores[1:] -= self._more(child, given, candidates)
        return scores

    def _more(self, child: int, parents: Integers, candidates: Integers) -> Floats:
        """Return what families cost more than at n rows, for each candidate or without one."""
        members = np.append(parents, child)
        level = self._levels[np.ix_(members, members)].min()
        columns = self._widths[parents].sum()
        if not len(candidates):
            return self._cost(level, len(parents), self._widths[child] * columns)
        levels = self._levels[np.ix_(candidates, members)].min(axis=1, initial=level)
        columns = self._widths[child] * (columns + self._widths[candidates])
        return self._cost(levels, len(members), columns)

    def _cost(self, level: Any, parents: int, coefficients: Any) -> Floats:
        costs: Floats = self._flat[level, parents] + self._slope[level] * coefficients
        return costs


# --- Estimates of how long one family takes to score, from sizes alone --------------------------
#
# They choose the default search and sampler. The figures are seconds on one core of the machine
# that ``benchmarks/exact/costs.py`` was run on, and they are never measured while learning: the
# choice, and with it the graph, must not depend on the machine or on what else it does. A factor
# of two does not matter, a factor of ten would.

_PER_ROW, _PER_ROW_SPARSE = 2e-9, 5e-8
"""Counting one row in a small table, and in a table that does not fit into the cache."""
_LARGE_TABLE = 4096.0
"""Number of cells of such a table."""


def gaussian_cost(parents: int) -> float:
    """Return the seconds to solve one regression from a covariance matrix."""
    return 2e-7 + 3e-8 * parents**2


def block_cost(sizes: Integers | Floats) -> FamilyCost:
    """Return the cost of a regression whose variables are blocks of so many columns each."""
    # The cubic mean: a few wide blocks take nearly all of the time.
    width = float(np.mean(np.asarray(sizes, np.float64) ** 3) ** (1.0 / 3.0))

    def seconds(parents: int) -> float:
        columns = width * (parents + 1)
        return gaussian_cost(parents) + 1.5e-10 * (columns - parents - 1) * columns**2

    return seconds


def counting_cost(schema: Schema, rows: float) -> FamilyCost:
    """Return the cost of counting a family of discrete variables in coded rows.

    Parameters
    ----------
    schema
        The variables.
    rows
        Number of rows. There are at most as many distinct ones as cells, and sources differ in
        whether they keep the others, so that no estimate may depend on it.
    """
    levels = np.log(np.maximum(schema.cardinalities, 1).astype(np.float64))
    distinct = min(float(rows), float(np.exp(min(levels.sum(), 700.0))))
    mean = float(levels.mean()) if len(levels) else 0.0

    def seconds(parents: int) -> float:
        cells = float(np.exp(min((parents + 1) * mean, 700.0)))
        sparse = min(1.0, cells / _LARGE_TABLE)
        return 1e-6 + distinct * (_PER_ROW + _PER_ROW_SPARSE * sparse)

    return seconds


def process_cost(*, fixed: float = 0.0, per_parent: float = 0.0, draws: int = 0) -> FamilyCost:
    """Return the cost of the modes of a Gaussian-process regression, and of draws around them.

    Parameters
    ----------
    fixed, per_parent
        Number of coordinates of the regression: rows, and basis functions per parent.
    draws
        Number of evaluations of the density after the modes are found.
    """

    def seconds(parents: int) -> float:
        cube = (fixed + per_parent * parents) ** 3 if parents else 1.0
        modes = 1e-3 + 5e-3 * parents + 2.5e-9 * (parents + 1) * cube
        return modes + draws * (3e-5 + 1e-10 * cube)

    return seconds


# --- Scores of contingency tables, shared by all scores for discrete variables ------------------

TableScore: TypeAlias = Callable[[Integers | Floats], Floats]
"""Scores of tables with parent configurations as rows and levels of the child as columns; axes in
front number the tables."""


def bind_counts(
    counts: Counts,
    form: DiscreteForm,
    parameter: float,
    table_score: TableScore,
    *,
    equivalent: bool,
    score_bound: Callable[[], BoundWork] | None = None,
) -> LocalScore:
    """Bind a score to counts: to the joint rows if they are available, otherwise to single tables.

    Parameters
    ----------
    counts
        The counts.
    form, parameter
        The score in the compiled core, used for joint rows.
    table_score
        The same score of one table.
    equivalent
        Whether Markov-equivalent graphs always have the same total.
    score_bound
        Returns the bound on supersets; called only if needed.
    """
    names = counts.schema.names
    joint = counts.joint
    if joint is not None:
        cards = counts.schema.cardinalities
        kernel = discrete_score(joint.codes, joint.weights, cards, form, parameter)
        cost = counting_cost(counts.schema, counts.n)
        return LocalScore(names, kernel, equivalent=equivalent, score_bound=score_bound, cost=cost)
    if counts.on_demand is not None:
        rows = RowsOfScores(counts.on_demand, names, table_score)
        return LocalScore(
            names,
            row_score(len(names), rows.values),
            equivalent=equivalent,
            score_bound=score_bound,
            cost=lambda _: math.inf,
        )

    def local(child: int, parents: tuple[int, ...]) -> float:
        table = counts.table([*(names[p] for p in parents), names[child]])
        return float(table_score(table.reshape(-1, table.shape[-1])))

    # Only the planned tables came over. A search that looks at every set would ask for more.
    return PythonLocalScore(
        names, local, equivalent=equivalent, score_bound=score_bound, cost=lambda _: math.inf
    )


def log_likelihood(table: Integers | Floats) -> Floats:
    """Return the maximised log-likelihood of the child given its parents."""
    from scipy.special import xlogy

    rows = table.sum(axis=-1)
    difference: Floats = xlogy(table, table).sum(axis=(-2, -1)) - xlogy(rows, rows).sum(axis=-1)
    return difference


def free_parameters(table: Integers | Floats) -> int:
    """Return the number of free parameters, including configurations that do not occur."""
    configurations, levels = table.shape[-2:]
    return int(configurations * (levels - 1))


def log_dirichlet(table: Integers | Floats, per_cell: float) -> Floats:
    """Return the log marginal likelihood under a symmetric Dirichlet prior per configuration.

    Configurations that do not occur contribute exactly 0.
    """
    from scipy.special import gammaln

    prior = table.shape[-1] * per_cell
    total = gammaln(prior) - gammaln(prior + table.sum(axis=-1))
    cells = gammaln(per_cell + table) - gammaln(per_cell)
    likelihood: Floats = total.sum(axis=-1) + cells.sum(axis=(-2, -1))
    return likelihood


# --- Criteria for discrete variables, also with missing values -----------------------------------

_LEAST_VARIANCE = 0.2
"""Pairs do not show dependences that only three variables have, such as an exclusive or, so less
than this is not believed. A binary variable and its noisy copy have at most 0.44. See the exclusive
or in ``tests/scores/test_missingness_has_no_direction.py``."""


class Criterion(Score[Counts, LocalScore]):
    """Base class of information criteria: log-likelihood minus prices of parameters and edges.

    A criterion states its prices, and everything else follows from them: the score of counts, and
    its versions for missing values.
    """

    needs: ClassVar[type[Counts]] = Counts
    kind: ClassVar[Kind] = Kind.DISCRETE

    @abstractmethod
    def parameter_price(self, n: int) -> float:
        """Return the price of a free parameter, for n rows."""

    def size_penalties(self, d: int) -> Floats:
        """Return the further price of 0, 1, … d parents of one of d variables; none by default."""
        return np.zeros(d + 1)

    @final
    def bind(self, statistics: Counts) -> LocalScore:
        each = self.parameter_price(statistics.n)

        def table_score(table: Integers | Floats) -> Floats:
            return log_likelihood(table) - each * free_parameters(table)

        local = bind_counts(
            statistics,
            DiscreteForm.LIKELIHOOD,
            each,
            table_score,
            equivalent=True,
            score_bound=lambda: likelihood_bound(statistics, each),
        )
        return extended(local, self.size_penalties(len(statistics.schema)))

    @final
    def of_incomplete_rows(self, standard_errors: float = 1.0) -> AvailableCasesScore:
        """Return the criterion for incomplete rows."""
        return AvailableCasesScore(self, standard_errors)


@final
@dataclass(frozen=True)
class AvailableCasesScore(Score[IncompleteCounts, LocalScore]):
    """A criterion in which each set of variables is scored on the rows that are complete for it.

    For discrete variables; higher is better. Let n be the number of rows, ``m(S)`` that of the rows
    complete for a set S of variables, and ``T(S)`` the total correlation of S in these rows. The
    score of a family is ``n * T(child and parents) - n * T(parents)``, plus the log-likelihood of
    the child without parents, scaled to n rows, minus the penalties. The penalty per parameter of a
    set grows by the factor ``n / m(S)``, as the noise of ``n * T(S)`` does.

    Families are compared on different rows, which has a standard error of order ``sqrt(n)``. For
    each edge, ``standard_errors * sqrt(log(n))`` times an estimate of it is subtracted: a price
    must grow faster than the noise, or false edges do not vanish with more rows (Balov 2013;
    Bodewes and Scutari 2021). The estimate is taken from pairs of variables and is not a bound for
    families with many parents. In simulations with values missing completely at random, false edges
    become rarer with n; consistency is not proved.

    The score is a difference of two functions of sets, so Markov-equivalent graphs have the same
    score: which values are missing tells nothing about directions. Without missing values it is the
    criterion itself.

    Parameters
    ----------
    base
        `BIC`, `AIC`, `EBIC` or another criterion.
    standard_errors
        Multiple of ``sqrt(log(n))`` standard errors.
    """

    base: Criterion
    standard_errors: float = 1.0
    needs: ClassVar[type[IncompleteCounts]] = IncompleteCounts
    kind: ClassVar[Kind] = Kind.DISCRETE

    def __post_init__(self) -> None:
        require_number(self, "standard_errors", least=0)

    def bind(self, statistics: IncompleteCounts) -> LocalScore:
        if not statistics.has_missing:
            return self.base.bind(statistics.complete())
        kernel = incomplete_score(
            statistics.codes,
            statistics.weights,
            statistics.schema.cardinalities,
            self.base.parameter_price(statistics.n),
            self.standard_errors * _prices(statistics),
        )
        cost = counting_cost(statistics.schema, statistics.n)
        local = LocalScore(statistics.schema.names, kernel, equivalent=True, cost=cost)
        return extended(local, self.base.size_penalties(len(statistics.schema)))


@final
@dataclass(frozen=True)
class ExpectedScore(Score[ExpectedCounts, LocalScore]):
    """A criterion of expected counts: one half of structural expectation-maximisation.

    The log-likelihood is that of the expected counts, and the number of rows in the penalty is that
    of all rows; higher is better.

    Parameters
    ----------
    base
        `BIC`, `AIC`, `EBIC` or another criterion.
    """

    base: Criterion
    needs: ClassVar[type[IncompleteCounts]] = IncompleteCounts
    kind: ClassVar[Kind] = Kind.DISCRETE

    def bind(self, statistics: ExpectedCounts) -> LocalScore:
        schema, rows, draws = statistics.schema, statistics.completed, statistics.draws
        each = draws * self.base.parameter_price(statistics.n)
        form = DiscreteForm.LIKELIHOOD
        kernel = discrete_score(rows.codes, rows.weights, schema.cardinalities, form, each)
        cost = counting_cost(schema, statistics.n * draws)
        many = LocalScore(schema.names, kernel, equivalent=True, cost=cost)
        return PenalisedScore(many, self.base.size_penalties(len(schema)), 1.0 / draws)


def _prices(statistics: IncompleteCounts) -> Floats:
    """Return for each pair how far the gain of an edge may be off because the rows differ.

    If an edge adds a variable to a family, the log-likelihood ratios of the other variables are
    averaged over fewer rows, even if they have nothing to do with the new one. So the variance is
    that of the strongest dependence of either end on any variable.
    """
    n, variances = statistics.n, _pair_variances(statistics)
    starts = statistics.level_starts()
    rows = np.add.reduceat(statistics.level_pairs(), starts, axis=0)
    rows = np.add.reduceat(rows, starts, axis=1)
    largest = np.maximum(variances.max(axis=1), _LEAST_VARIANCE)
    variance = np.maximum(largest[:, None], largest)
    prices: Floats = np.sqrt(np.log(max(n, 1)) * n * (n / np.maximum(rows, 1.0) - 1.0) * variance)
    np.fill_diagonal(prices, 0.0)
    return np.maximum(prices, prices.T)  # equal but for rounding


def _pair_variances(statistics: IncompleteCounts) -> Floats:
    """Return the variances over the rows of ``log p(v, w) / (p(v) p(w))``, for each pair."""
    counts, starts = statistics.level_pairs(), statistics.level_starts()
    variances = np.zeros((len(starts), len(starts)))
    for v, (start, stop) in enumerate(pairwise([*starts.tolist(), len(counts)])):
        table = counts[start:stop]
        rows = np.add.reduceat(table.sum(axis=0), starts)  # that have a value of v and the other
        width = np.diff([*starts, len(counts)])
        given = np.repeat(np.add.reduceat(table, starts, axis=1), width, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = np.log(table * np.repeat(rows, width) / (given * table.sum(axis=0)))
        gain[table == 0.0] = 0.0
        m = np.maximum(rows, 1.0)
        mean = np.add.reduceat((table * gain).sum(axis=0), starts) / m
        square = np.add.reduceat((table * gain**2).sum(axis=0), starts) / m
        variances[v] = np.maximum(square - mean**2, 0.0)
    np.fill_diagonal(variances, 0.0)
    return variances
