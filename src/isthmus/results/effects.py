"""Estimates of total effects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache, partial
from itertools import islice
from math import inf, nan, sqrt
from typing import TYPE_CHECKING, Any, TypeAlias, final

from isthmus.errors import counted, rounded
from isthmus.graphs import CPDAG, PAG, PDAG, Knowledge
from isthmus.graphs.identification import Identification, find_adjustment
from isthmus.graphs.possible_parents import (
    is_identified,
    outcome_parents,
    possible_descendants,
    possible_parents,
)
from isthmus.networks import Level
from isthmus.options import check_level

if TYPE_CHECKING:
    from isthmus.results.solution import Solution

MAX_PARENT_SETS = 2**16
"""Maximum number of possible parent sets of a cause: all subsets of 16 neighbours, about 10 s from
moments, and from rows about a minute per 1,000 of them."""

_GIVEN = (
    " Directions of edges at {} or {} were learned from the same rows and are taken as given: in "
    "simulated tables, 87 to 96% of such 95% intervals contained the effect."
)
"""The rate is that of `benchmarks/results/effects-coverage.md`."""

_WEAK = 10.0
"""F statistic of the first stage below which instruments are weak (Staiger and Stock 1997)."""


@final
@dataclass(frozen=True)
class EffectComparison:
    """What an effect compares.

    Attributes
    ----------
    change
        The levels of a discrete cause, from and to; None for one unit of a continuous cause.
    outcome
        The level of a discrete effect whose probability changes; None for a continuous effect.
    scored
        Which of cause and effect were learned as normal scores, so that their units are scores.
    """

    change: tuple[Level, Level] | None = None
    outcome: Level | None = None
    scored: tuple[str, ...] = ()


class ZeroEffect(Enum):
    """Why an effect is zero without an estimate."""

    GRAPH = "the given graph has no directed path"
    KNOWLEDGE = "background knowledge excludes every directed path"
    DIRECTION = "the learned graph has the opposite edge"
    NO_PATH = "no path of the learned PAG can be directed from cause to effect"


_LEARNED_ZEROS = (ZeroEffect.DIRECTION, ZeroEffect.NO_PATH)
"""Zeros that are right or wrong, without a standard error."""


@final
@dataclass(frozen=True)
class PossibleEffect:
    """The estimate of an effect for one possible set of parents of the cause.

    Attributes
    ----------
    parents
        The parents of the cause; none in a PAG.
    adjustment
        The variables that were adjusted for: the parents, and parents of the effect and of
        variables before it. Empty if the effect is a parent, since it is zero then.
    value, standard_error
        The regression coefficient and its standard error; both are zero if the effect is a parent.
    degrees
        Degrees of freedom of the standard error.
    robust
        Whether the standard error is also valid if the variance of the noise depends on other
        variables (heteroscedasticity). It is if the rows were in memory; otherwise it assumes
        noise of constant variance.
    averages
        Of a discrete cause, the averages of the effect (means or probabilities) under both levels.
    partial_correlation
        Of a continuous cause, its correlation with the effect given the adjustment variables.
    first_stage
        Of instruments, the F statistic of their effect on the cause.
    largest
        The largest absolute value that the effect can have: 1 for a probability, else infinite.
    without_overlap
        Of a discrete cause, the share of rows with little or no overlap (positivity): less than 2%
        of the rows with the same discrete variables to adjust for have one of the compared levels,
        or by a regression its probability is below 1%.
    extrapolated
        Whether more than 5% of rows are without overlap and their part of the estimate is
        extrapolated by a regression. With fewer, combinations without one of the levels are left
        out.
    terms
        Curves and interactions of the regression that paid for themselves, such as ``z²``.
    averaged
        Whether the slope by a continuous cause differs between rows, so that the value is its
        average over all rows.
    challenged
        Whether straight lines were challenged by curves and interactions, which needs rows.
    clusters
        Number of clusters of dependent rows that the standard error is for; 0 if it is for
        independent rows.
    complete_rows
        If values are missing and were estimated, the number of complete rows on which lines were
        challenged; with `terms`, these rows alone give the value. 0 if no values are missing.
    method
        How the effect was identified.
    through
        The mediators of the front-door criterion, or the instruments.
    """

    parents: tuple[str, ...]
    adjustment: tuple[str, ...]
    value: float
    standard_error: float
    degrees: float
    robust: bool = False
    averages: tuple[float, float] | None = None
    partial_correlation: float = nan
    first_stage: float = nan
    largest: float = inf
    without_overlap: float = 0.0
    extrapolated: bool = False
    terms: tuple[str, ...] = ()
    averaged: bool = False
    challenged: bool = True
    clusters: int = 0
    complete_rows: int = 0
    method: Identification = Identification.ADJUSTMENT
    through: tuple[str, ...] = ()

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return a confidence interval by the t distribution.

        Parameters
        ----------
        level
            Its coverage, between 0 and 1 (0.95, not 95).
        """
        check_level(level)
        half = _quantile(level, max(self.degrees, 1.0)) * self.standard_error
        return max(self.value - half, -self.largest), min(self.value + half, self.largest)


@final
@dataclass(frozen=True)
class EffectEstimate:
    """Estimated total effect of an intervention on one variable on another.

    Attributes
    ----------
    cause, effect
        The two variables.
    identified
        Whether all members of the equivalence class imply the same effect. The graph decides this:
        the effect is not identified if a possibly directed path to it leaves the cause by an edge
        that can point either way. In a PAG: whether the effect is zero, or adjustment for measured
        variables gives it in all graphs that the PAG stands for.
    alternatives
        One estimate for each possible set of parents of the cause in the class; a single one if
        the effect is identified. Empty if there are too many sets: the range was not computed.
    has_path
        Whether the learned graph has a directed path from cause to effect, or may have one. If not,
        the graph implies an effect of zero, and the estimate shows how large an effect the search
        may have missed.
    zero
        Why the effect is zero without an estimate, or None if it was estimated.
    comparison
        What the effect is the difference of: one unit of the cause, or two of its levels.
    reason
        Why the effect is not identified, if not for the directions of edges.
    learned_directions
        Whether directions of edges at cause or effect come from the data, not from knowledge.
        Standard errors and intervals of an identified effect take them as given.
    notes
        What the rows of these columns say against the standard error; printed with it.
    """

    cause: str
    effect: str
    identified: bool
    alternatives: tuple[PossibleEffect, ...]
    has_path: bool = True
    zero: ZeroEffect | None = None
    comparison: EffectComparison = EffectComparison()
    reason: str = ""
    learned_directions: bool = False
    notes: tuple[str, ...] = ()

    @property
    def value(self) -> float:
        """The estimate; not a number if the effect is not identified, see `possible`.

        `standard_error` and `interval` give its uncertainty.
        """
        return self.alternatives[0].value if self.identified else nan

    @property
    def standard_error(self) -> float:
        """Its standard error given the graph; not a number if there is none.

        It is zero if background knowledge makes the effect zero. It is not a number if the effect
        is not identified, or zero because of a learned direction, whose uncertainty
        `Posterior.effects` includes.
        """
        if not self.identified or self.zero in _LEARNED_ZEROS:
            return nan
        return self.alternatives[0].standard_error

    @property
    def adjustment(self) -> tuple[str, ...]:
        """The variables that were adjusted for; empty if the effect is not identified."""
        return self.alternatives[0].adjustment if self.identified else ()

    @property
    def degrees(self) -> float:
        """Degrees of freedom of the standard error; 0 if there is none."""
        return min((each.degrees for each in self.alternatives if each.standard_error), default=0)

    @property
    def robust(self) -> bool:
        """Whether all standard errors are valid under heteroscedasticity; see `PossibleEffect`."""
        return all(each.robust for each in self.alternatives if each.standard_error)

    @property
    def possible(self) -> tuple[float, ...]:
        """The distinct values of `alternatives`, in ascending order.

        The first and the last one are the range of the effect. Empty if it was not computed.
        """
        return distinct_values([each.value for each in self.alternatives])

    @property
    def robustness_value(self) -> float:
        """How strong a hidden common cause must be to explain all of a linear effect away.

        It is a share of variance between 0 and 1 (Cinelli and Hazlett 2020): a hidden variable that
        explains less than this share of what is left of both cause and effect cannot reduce the
        estimate to zero. Its sampling error is not included: see `interval`. Not a number if the
        effect is not identified, is zero by the graph, or is not a regression coefficient.
        """
        if not self.identified or self.zero is not None:
            return nan
        share = self.alternatives[0].partial_correlation ** 2
        if not share < 1.0:
            return share
        f = share / (1.0 - share)
        return 0.5 * (sqrt(f * f + 4.0 * f) - f)

    def e_value(self, level: float | None = None) -> float:
        """Return how strong a hidden common cause must be to explain a change of probability away.

        It is a ratio of at least 1 (VanderWeele and Ding 2017): a hidden variable that is related
        to both cause and effect by risk ratios below it cannot reduce the effect to zero. Infinite
        if one of the two estimated probabilities is zero: no risk ratio explains that away. The
        limit of an interval has none then. Not a number if the effect is not identified, or is not
        a change of a probability.

        Parameters
        ----------
        level
            By default, for the estimate. Otherwise for the limit of the confidence interval with
            this coverage that is closer to zero; 1 if the interval contains zero.
        """
        averages = self.alternatives[0].averages if self.identified else None
        if averages is None or self.comparison.outcome is None:
            return nan
        change = self.value
        if level is not None:
            low, high = self.interval(level)
            change = 0.0 if low <= 0.0 <= high else min(low, high, key=abs)
        if change == 0.0:
            return 1.0
        small, large = sorted((averages[0], averages[0] + change))
        if small <= 0.0:
            return inf if level is None else nan
        ratio = large / small
        return ratio + sqrt(ratio * (ratio - 1.0))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return a confidence interval by the t distribution, given the equivalence class.

        If directions were learned from the same rows (`learned_directions`), an interval of 95%
        contains the effect less often: in 87 to 96% of simulated tables.

        If the effect is not identified, it contains the intervals for all possible sets of parents,
        so that it covers the effect whichever member of the class is true. It is infinite if the
        range was not computed, and not a number if the effect is zero because of a learned
        direction: that is right or wrong, and no interval says how likely.

        Parameters
        ----------
        level
            Its coverage, between 0 and 1 (0.95, not 95).
        """
        check_level(level)
        if not self.alternatives:
            return -inf, inf
        if self.zero in _LEARNED_ZEROS:
            return nan, nan
        bounds = [each.interval(level) for each in self.alternatives]
        return min(low for low, _ in bounds), max(high for _, high in bounds)

    def __str__(self) -> str:
        change, outcome = self.comparison.change, self.comparison.outcome
        cause = self.cause if change is None else f"{self.cause} ({change[0]} → {change[1]})"
        effect = self.effect if outcome is None else f"P({self.effect} = {outcome})"
        pair = f"{cause} → {effect}"
        if self.comparison.scored:
            own = [v for v in (self.effect, self.cause) if v in self.comparison.scored]
            pair += f" (in normal scores of {' per normal score of '.join(own)})"
        if not self.identified:
            return self._unidentified(pair)
        if self.zero is ZeroEffect.GRAPH:
            return (
                f"{pair}: 0, because the given graph has no directed path from {self.cause} to "
                f"{self.effect}."
            )
        if self.zero is ZeroEffect.KNOWLEDGE:
            return f"{pair}: 0 by background knowledge, which excludes a directed path."
        if self.zero is ZeroEffect.DIRECTION:
            return (
                f"{pair}: 0, because the learned graph has {self.effect} → {self.cause}. A learned "
                "direction has no standard error or interval; Posterior.effects includes its "
                "uncertainty."
            )
        if self.zero is ZeroEffect.NO_PATH:
            return (
                f"{pair}: 0, because no path of the learned PAG can be directed. Learned marks "
                "have no standard error or interval."
            )
        adjusted = self._way()
        error = f"standard error {rounded(self.standard_error)}{self._assumed()}"
        first = self.alternatives[0].extrapolated
        lead = "rests on extrapolation of the regression, " if first else ""
        mean = ", the average slope over the rows" if self.alternatives[0].averaged else ""
        text = f"{pair}: {lead}{rounded(self.value, 4)}{mean} ({error}){adjusted}"
        more = self._overlap()
        if not self.has_path:
            low, high = self.interval()
            more += (
                " The learned graph has no directed path, which implies 0; the data are compatible "
                f"with {rounded(low)} to {rounded(high)} (95% interval)."
            )
        if self.learned_directions:
            more += _GIVEN.format(self.cause, self.effect)
        more += "".join(f" {note}" for note in self.notes)
        return f"{text}.{more}" if more else text

    __repr__ = __str__

    def _way(self) -> str:
        """Say how an identified effect was estimated."""
        own = self.alternatives[0]
        adjusted = f", adjusted for {', '.join(own.adjustment)}" if own.adjustment else ""
        if own.terms:
            *first, last = own.terms
            adjusted += f", with {', '.join(first)} and {last}" if first else f", with {last}"
        through = ", ".join(own.through)
        if own.method is Identification.FRONT_DOOR:
            return f", by the front-door criterion through {through}"
        if own.method is not Identification.INSTRUMENT:
            return adjusted
        word = "an instrument" if len(own.through) == 1 else "instruments"
        weak = (
            f". The F statistic of the first stage is {rounded(own.first_stage)}: below "
            f"{_WEAK:.0f}, instruments are weak, and intervals are too narrow"
            if own.first_stage < _WEAK
            else ""
        )
        return f", by {through} as {word}{adjusted}{weak}"

    def _overlap(self) -> str:
        """Say for how many rows the data do not show the effect of a discrete cause."""
        share = max((each.without_overlap for each in self.alternatives), default=0.0)
        if not share:
            return ""
        text = f" {max(share, 0.001):.1%} of rows have little or no overlap (positivity)"
        if not any(each.extrapolated for each in self.alternatives):
            return f"{text}."
        return f"{text}: their part of the effect rests on extrapolation of the regression."

    def _unidentified(self, pair: str) -> str:
        if self.reason:
            return f"{pair}: not identified; {self.reason}"
        text = (
            f"{pair}: not identified; the data do not determine the directions of all edges at "
            f"{self.cause}."
        )
        if not self.alternatives:
            return (
                f"{text} The range was not computed: {self.cause} has more than "
                f"{MAX_PARENT_SETS:,} possible sets of parents. Add background knowledge."
            )
        ends = (self.possible[0], self.possible[-1], *self.interval())
        least, most, low, high = (rounded(value, 4) for value in ends)
        return (
            f"{text} The effect is between {least} and {most} "
            f"over {len(self.alternatives)} possible sets of parents (95% interval from "
            f"{low} to {high}{self._assumed()}).{self._overlap()}"
            + "".join(f" {note}" for note in self.notes)
        )

    def _assumed(self) -> str:
        """Say what a standard error rests on."""
        own = [each for each in self.alternatives if each.standard_error]
        text = "" if self.robust else ", for noise of constant variance"
        clusters = min((each.clusters for each in own), default=0)
        text += f", by {clusters} clusters" if clusters else ""
        if any(not each.challenged for each in own):
            return f"{text}; straight lines, not challenged"
        complete = min((each.complete_rows for each in own), default=0)
        if not complete:
            return text
        if any(each.terms for each in own):
            return (
                f"{text}; from the {counted(complete, 'complete row')}, assuming that no value is "
                f"missing because of {self.effect}"
            )
        return f"{text}; lines challenged on the {counted(complete, 'complete row')}"


@lru_cache(maxsize=256)
def _quantile(level: float, degrees: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 0.5 + level / 2))


def distinct_values(values: list[float]) -> tuple[float, ...]:
    """Return values in ascending order, without those that differ by rounding only."""
    distinct: list[float] = []
    for value in sorted(values):
        if not distinct or value - distinct[-1] > 1e-9 * max(abs(value), abs(distinct[-1])):
            distinct.append(value)
    return tuple(distinct)


# --- Estimate total effects in equivalence classes and PAGs -------------------------------------

Adjusted: TypeAlias = Callable[[str, str, tuple[str, ...]], tuple[Any, ...]]
"""Effect of a cause, adjusted for further variables, with its standard error, its degrees of
freedom, whether the standard error is robust, and for a discrete cause the two averages."""


def estimate_effect(
    graph: CPDAG | PDAG,
    knowledge: Knowledge | None,
    cause: str,
    effect: str,
    adjusted: Adjusted,
    comparison: EffectComparison = EffectComparison(),
) -> EffectEstimate:
    """Estimate a total effect for each possible set of parents of the cause (IDA).

    Adjusting for the parents of the cause also gives an honest interval if there is no path in the
    graph, since the search may have missed an edge. The parents of the effect are added because
    it may also have missed a common cause's edge to the cause, or the knowledge may have excluded
    it.

    Parameters
    ----------
    knowledge
        What was known about the edges beforehand.
    adjusted
        Computes an adjusted effect.
    comparison
        What it is the difference of.
    """
    answer = partial(EffectEstimate, cause, effect, comparison=comparison)
    if knowledge is not None and knowledge.excludes_path(graph.nodes, cause, effect):
        nothing = PossibleEffect(graph.parents(cause), (), 0.0, 0.0, 0)
        zero = ZeroEffect.KNOWLEDGE
        return answer(identified=True, alternatives=(nothing,), has_path=False, zero=zero)
    more = outcome_parents(graph, cause, effect, knowledge)

    def estimate(parents: tuple[str, ...]) -> PossibleEffect:
        given = {*parents, *more}
        if effect in parents:
            return PossibleEffect(parents, (), 0.0, 0.0, 0)
        adjustment = tuple(name for name in graph.nodes if name in given)
        return PossibleEffect(parents, adjustment, *adjusted(cause, effect, adjustment))

    if is_identified(graph, [cause], [effect]):
        # All possible sets of parents are valid, and the first one is the smallest.
        own = estimate(graph.parents(cause))
        direction = ZeroEffect.DIRECTION if effect in own.parents else None
        has_path = effect in possible_descendants(graph, cause)
        return answer(identified=True, alternatives=(own,), has_path=has_path, zero=direction)
    families = list(islice(possible_parents(graph, cause), MAX_PARENT_SETS + 1))
    computed = len(families) <= MAX_PARENT_SETS
    alternatives = tuple(estimate(own) for own in families) if computed else ()
    return answer(identified=False, alternatives=alternatives)


def effect_class(solution: Solution) -> CPDAG | PDAG:
    """Return the class of graphs for which effects of a solution are estimated."""
    dag = solution.dag
    return solution.cpdag if solution.equivalent else PDAG(dag.nodes, dag.edges)


def estimate_in_solution(
    solution: Solution, cause: str, effect: str, adjusted: Adjusted, comparison: EffectComparison
) -> EffectEstimate:
    """Estimate a total effect in the class of a solution, given its knowledge.

    Parameters
    ----------
    cause, effect, adjusted, comparison
        As for `estimate_effect`.
    """
    graph, known = effect_class(solution), solution.knowledge
    estimate = estimate_effect(graph, known, cause, effect, adjusted, comparison)
    forbidden = (known or Knowledge()).bind(graph.nodes).forbidden
    # Knowledge that forbids the opposite direction is what an interval may take as given.
    learned = any(
        not forbidden[graph.index(b), graph.index(a)]
        for a, b in graph.directed
        if {a, b} & {cause, effect}
    )
    return replace(estimate, learned_directions=learned)


def estimate_pag_effect(
    pag: PAG,
    knowledge: Knowledge | None,
    cause: str,
    effect: str,
    adjusted: Adjusted,
    comparison: EffectComparison = EffectComparison(),
) -> EffectEstimate:
    """Estimate a total effect that a PAG identifies by adjustment, or say why it does not.

    Parameters
    ----------
    knowledge
        What was known about the edges beforehand.
    adjusted
        Computes an adjusted effect.
    comparison
        What it is the difference of.
    """
    found = find_adjustment(pag, cause, effect)
    zero = None if found.has_path else ZeroEffect.NO_PATH
    if knowledge is not None and knowledge.excludes_path(pag.nodes, cause, effect):
        zero = ZeroEffect.KNOWLEDGE
    own = PossibleEffect((), (), 0.0, 0.0, 0)
    if zero is None and found.variables is not None:
        own = PossibleEffect((), found.variables, *adjusted(cause, effect, found.variables))
    identified = zero is not None or found.variables is not None
    return EffectEstimate(
        cause,
        effect,
        identified=identified,
        alternatives=(own,) if identified else (),
        has_path=zero is None,
        zero=zero,
        comparison=comparison,
        reason="" if identified else f"no adjustment gives it: {found.reason}.",
    )
