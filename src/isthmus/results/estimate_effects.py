"""Estimate total effects in equivalence classes and PAGs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from isthmus.graphs import CPDAG, PAG, PDAG, Knowledge
from isthmus.graphs.adjustment import find_adjustment
from isthmus.graphs.possible_parents import (
    is_identified,
    outcome_parents,
    possible_descendants,
    possible_parents,
)
from isthmus.results.effects import (
    MAX_PARENT_SETS,
    EffectComparison,
    EffectEstimate,
    PossibleEffect,
    ZeroEffect,
)

if TYPE_CHECKING:
    from isthmus.results.solution import Solution

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
    graph
        The equivalence class.
    knowledge
        What was known about the edges beforehand.
    cause, effect
        Names of two variables.
    adjusted
        Computes an adjusted effect.
    comparison
        What it is the difference of.
    """
    if knowledge is not None and knowledge.excludes_path(graph.nodes, cause, effect):
        nothing = PossibleEffect(graph.parents(cause), (), 0.0, 0.0, 0)
        return EffectEstimate(
            cause,
            effect,
            identified=True,
            alternatives=(nothing,),
            has_path=False,
            zero=ZeroEffect.KNOWLEDGE,
            comparison=comparison,
        )
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
        zero = ZeroEffect.DIRECTION if effect in own.parents else None
        has_path = effect in possible_descendants(graph, cause)
        return EffectEstimate(
            cause,
            effect,
            identified=True,
            alternatives=(own,),
            has_path=has_path,
            zero=zero,
            comparison=comparison,
        )
    families = list(islice(possible_parents(graph, cause), MAX_PARENT_SETS + 1))
    computed = len(families) <= MAX_PARENT_SETS
    alternatives = tuple(estimate(own) for own in families) if computed else ()
    return EffectEstimate(
        cause, effect, identified=False, alternatives=alternatives, comparison=comparison
    )


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
    solution
        The solution.
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
    pag
        The graph.
    knowledge
        What was known about the edges beforehand.
    cause, effect
        Names of two variables.
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
