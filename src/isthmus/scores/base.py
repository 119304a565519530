"""Base class of scores."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats
from isthmus.errors import MismatchError
from isthmus.graphs import Knowledge
from isthmus.kernels.scoring import child_scores, prior_score
from isthmus.objectives import LOCAL_SCORES, Capabilities, LocalScore, Objective
from isthmus.objectives.local import PenalisedScore
from isthmus.statistics import Basis, Counts, Kind, Moments, Statistic, Summary
from isthmus.statistics.regimes import Regimes, Remainder

StatisticsT = TypeVar("StatisticsT", bound=Summary)
ObjectiveT_co = TypeVar("ObjectiveT_co", bound=Objective, covariant=True)


class Score(ABC, Generic[StatisticsT, ObjectiveT_co]):
    """Base class of scores, which turn statistics into an objective for a search.

    Implementations are frozen dataclasses whose fields are the options of the score.

    Attributes
    ----------
    needs
        The statistics that a source is asked for.
    kind
        The type of variable that it supports; None if it supports both.
    gives
        Capabilities of its objectives; local scores by default.
    of_columns
        Whether it can also be bound to `StandardisedColumns`, for tables of very many columns, and
        to `Remainder`, for very many regimes.
    basis
        Basis functions of the columns that the score needs; None for most scores.
    """

    needs: ClassVar[type[Statistic]]
    kind: ClassVar[Kind | None]
    gives: ClassVar[Capabilities] = frozenset({LOCAL_SCORES})
    of_columns: ClassVar[bool] = False
    basis: Basis | None = None

    @abstractmethod
    def bind(self, statistics: StatisticsT) -> ObjectiveT_co:
        """Bind the score to statistics and return the objective for a search."""

    def of_incomplete_rows(self, standard_errors: float = 1.0) -> Score[Any, LocalScore]:
        """Return the version of a criterion for incomplete rows; other scores have none."""
        del standard_errors
        if LOCAL_SCORES not in self.gives:
            raise MismatchError(
                f"{self!r} needs complete rows of discrete columns. Use DropRows() or "
                "MissingAsLevel(), or a search for a score, such as XGES()."
            )
        raise MismatchError(
            "Leaving missing values to the score works with BIC(), AIC(), EBIC() and other "
            f"criteria, and the score is {self!r}. Name one of these scores, or use DropRows() or "
            "MissingAsLevel()."
        )

    def posterior(self, moments: Moments) -> tuple[Floats, float, Floats | None] | None:
        """Return the posterior of linear networks, if the score has a prior of them; see `BGe`."""
        del moments
        return None

    @final
    def of_regimes(self) -> InterventionalScore:
        """Return the version of a local score for data of several regimes."""
        plain = self.needs in (Counts, Moments) and self.basis is None
        if not plain or LOCAL_SCORES not in self.gives:
            raise MismatchError(
                f"Data of several regimes need a local score of counts or moments without basis "
                f"functions, and the score is {self!r}. Use BIC(), BDeu(), GaussianBIC() or BGe(), "
                "for instance, and a search such as Boss()."
            )
        return InterventionalScore(self)


@final
@dataclass(frozen=True)
class InterventionalScore(Score[Regimes, LocalScore]):
    """A local score in which each child is scored on the rows where it was not a target.

    Parameters
    ----------
    base
        A local score of counts or moments.
    """

    base: Score[Any, Any]
    kind: ClassVar[Kind | None] = None

    @property
    def needs(self) -> type[Statistic]:  # type: ignore[override]
        """The statistics that are needed of each part of the rows."""
        return self.base.needs

    def bind(self, statistics: Regimes) -> LocalScore:
        parts = [LOCAL_SCORES.require(self.base.bind(self._whole(p))) for p in statistics.parts]
        kernel = child_scores([parts[k].kernel for k in statistics.part_of])
        return LocalScore(
            statistics.schema.names,
            kernel,
            equivalent=False,
            equivalent_given_targets=parts[0].equivalent,
            cost=lambda parents: max(part.seconds(parents) for part in parts),
        )

    def _whole(self, part: Statistic) -> Statistic:
        """Return what the score can be bound to."""
        moments: Moments | None = None
        if isinstance(part, Remainder) and not self.base.of_columns:
            moments = part.as_moments()
        return part if moments is None else moments


# --- A local score with prior probabilities of edges --------------------------------------------


@final
@dataclass(frozen=True, repr=False)
class EdgePrior(Score[Any, LocalScore]):
    """A local score plus the log-odds of edges that background knowledge makes (im)probable.

    The prior is the same for both directions, so a score-equivalent score stays one.

    Parameters
    ----------
    base
        The score of the data.
    knowledge
        Where the probabilities of edges are from.
    doubts
        Pairs of variables, and what is added to the log-odds of an edge between them because a
        larger model finds less evidence for it.
    """

    base: Score[Any, Any]
    knowledge: Knowledge = field(repr=False)
    doubts: tuple[tuple[str, str, float], ...] = field(default=(), repr=False)
    kind: ClassVar[Kind | None] = None

    def __repr__(self) -> str:
        """Name the score of the data: the prior is part of the knowledge, which results show."""
        return repr(self.base)

    @property
    def needs(self) -> type[Statistic]:  # type: ignore[override]
        """The statistics of the score of the data."""
        return self.base.needs

    @property
    def basis(self) -> Basis | None:  # type: ignore[override]
        """The basis functions of the score of the data."""
        return self.base.basis

    def posterior(self, moments: Moments) -> tuple[Floats, float, Floats | None] | None:
        return self.base.posterior(moments)

    def bind(self, statistics: Any) -> LocalScore:
        inner = LOCAL_SCORES.require(self.base.bind(statistics))
        odds, place = (
            self.knowledge.log_odds(inner.nodes),
            {v: i for i, v in enumerate(inner.nodes)},
        )
        for a, b, doubt in self.doubts:
            odds[place[a], place[b]] += doubt
            odds[place[b], place[a]] += doubt
        return LocalScore(
            inner.nodes,
            prior_score(inner.kernel, odds),
            equivalent=inner.equivalent,
            equivalent_given_targets=inner.equivalent_given_targets,
            cost=inner.seconds,
        )


# --- Penalties of extended criteria, which account for the number of possible edges -------------

_PROHIBITIVE = 1e3
"""Penalty per row of a parent for which there are too few rows."""

_MANY_DEGREES_OF_FREEDOM = 1e5

_ROWS_PER_PARENT = 4
"""Minimum number of rows per parent, chosen by ``benchmarks/false_edges.py``."""


def size_penalties(d: int, gamma: float) -> NDArray[np.float64]:
    """Return the extended penalty ``2 * gamma * log(d)`` per parent, for 0, 1, … d parents."""
    prices: NDArray[np.float64] = 2.0 * gamma * np.log(max(d, 1)) * np.arange(d + 1)
    return prices


def small_sample_prices(n: int, d: int, gamma: float) -> NDArray[np.float64]:
    """Return penalties for 0, 1, … d Gaussian parents that are exact for few rows.

    The extended BIC has a penalty of ``log(n) / 2 + 2 * gamma * log(d)`` nats per parent. For many
    rows this is a likelihood-ratio test at some level. For few rows the statistic has heavier
    tails, since the residuals have only ``n - k - 2`` degrees of freedom. With these penalties,
    each parent must pass the t-test of the same level, and there is at most one parent per four
    rows. For large n the two agree.
    """
    level = 0.5 * math.log(n) + 2.0 * gamma * math.log(max(d, 1))
    tail = math.erfc(math.sqrt(level))  # of a chi-squared variable with one degree of freedom
    gains = np.full(d, _PROHIBITIVE * n)
    freedom: NDArray[np.float64] = n - 2.0 - np.arange(d, dtype=np.float64)
    open_ = np.arange(d) < max(1, n // _ROWS_PER_PARENT)
    open_ &= freedom >= 1.0
    if tail > 0.0 and open_.any():
        exact = 0.5 * n * student_log_ratio(level, freedom[open_])
        gains[open_] = np.where(np.isfinite(exact), np.maximum(exact, level), gains[open_])
    prices: NDArray[np.float64] = np.concatenate([[0.0], np.cumsum(gains)])
    return prices


def student_log_ratio(level: float, freedom: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``log(1 + t² / freedom)`` for the t that is as unlikely as a normal ``√(2 level)``.

    SciPy has the quantile, but importing its special functions takes a third of a first `learn`.
    The approximation of Wallace (1959) is exact to ten digits for many degrees of freedom. For
    fewer, it starts Newton's method on the logarithm of the tail, an incomplete beta function.
    """
    wallace = (8.0 * freedom + 3.0) / (8.0 * freedom + 1.0)
    ratio: NDArray[np.float64] = 2.0 * level / freedom * wallace**2
    few = freedom < _MANY_DEGREES_OF_FREEDOM
    if few.any():
        y, a = ratio[few], 0.5 * freedom[few]
        target = math.log(math.erfc(math.sqrt(level)))
        log_beta = np.array([math.lgamma(v) - math.lgamma(v + 0.5) for v in a])
        log_beta += 0.5 * math.log(math.pi)
        for _ in range(10):
            density = -a * y - log_beta
            half = 0.5 * np.log(-np.expm1(-y))
            tail = density + half - np.log(a) + np.log(_beta_fraction(np.exp(-y), a))
            step = (tail - target) * np.exp(tail - density + half)
            y += step
            if np.abs(step / y).max() < 1e-11:
                break
        ratio[few] = y
    return ratio


def _beta_fraction(x: NDArray[np.float64], a: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the continued fraction of the incomplete beta function for a and 1/2 (Lentz)."""
    c, d = np.ones_like(a), 1.0 / (1.0 - (a + 0.5) * x / (a + 1.0))
    value = d
    for m in range(1, 500):
        even = m * (0.5 - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + 0.5 + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            c, d = 1.0 + term / c, 1.0 / (1.0 + term * d)
            value = value * c * d
        if np.abs(c * d - 1.0).max() < 1e-12:
            break
    return value


def extended(score: LocalScore, prices: NDArray[np.float64]) -> LocalScore:
    """Return a score minus ``prices[number of parents]``."""
    return PenalisedScore(score, prices) if prices.any() else score
