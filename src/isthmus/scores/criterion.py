"""The base class of criteria for discrete variables, and their versions for missing values."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, final

import numpy as np

from isthmus.kernels.scoring import DiscreteForm, discrete_score, incomplete_score
from isthmus.objectives import LocalScore, PenalisedScore
from isthmus.options import require_number
from isthmus.scores.base import Score
from isthmus.scores.costs import counting_cost
from isthmus.scores.extended import extended
from isthmus.scores.score_bounds import likelihood_bound
from isthmus.scores.tables import bind_counts, free_parameters, log_likelihood
from isthmus.statistics import Counts, ExpectedCounts, IncompleteCounts, Kind
from isthmus.types import Floats, Integers

_LEAST_VARIANCE = 0.2
"""Pairs do not show dependences that only three variables have, such as an exclusive or, so less
than this is not believed. A binary variable and its noisy copy have at most 0.44. See the exclusive
or in ``tests/repro/test_w07_nodeaverage_direction.py``."""


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
