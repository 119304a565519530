"""Ways to identify an effect in a graph with hidden variables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from enum import Enum
from itertools import chain, combinations, islice
from typing import NamedTuple, final

from isthmus.graphs.dag import DAG

_MAX_SETS = 10_000
"""Maximum number of sets of mediators that are tried."""


class Identification(Enum):
    """How an effect follows from the distribution of the observed variables."""

    ADJUSTMENT = "adjustment"
    FRONT_DOOR = "front-door criterion"
    INSTRUMENT = "instrumental variables"


@final
class Route(NamedTuple):
    """A way to identify an effect.

    Attributes
    ----------
    method
        The criterion.
    adjustment
        Variables to adjust for.
    through
        The mediators of the front-door criterion, or the instruments.
    """

    method: Identification
    adjustment: tuple[str, ...]
    through: tuple[str, ...] = ()


def identify(dag: DAG, cause: str, effect: str, observed: Collection[str]) -> Route | None:
    """Return the first of three ways to identify a total effect; None if there is none of them.

    These are adjustment (back-door), mediators (front-door), and instruments of linear models. An
    effect without any of them may still be identified by other means.

    Parameters
    ----------
    dag
        The causal graph.
    cause, effect
        Names of two observed nodes.
    observed
        Names of the nodes that are observed.
    """
    adjustment = _adjustment(dag, cause, effect, observed)
    if adjustment is not None:
        return Route(Identification.ADJUSTMENT, adjustment)
    mediators = _mediators(dag, cause, effect, observed)
    if mediators is not None:
        return Route(Identification.FRONT_DOOR, (), mediators)
    return _instruments(dag, cause, effect, observed)


def _adjustment(
    dag: DAG, cause: str, effect: str, observed: Collection[str]
) -> tuple[str, ...] | None:
    """Return observed nodes that block all paths that are not directed, if there are such nodes."""
    best = dag.adjustment_set(cause, effect)
    if set(best) <= set(observed):
        return best
    # If any set of observed ancestors is valid, the one of all that are not forbidden is (van der
    # Zander et al. 2019).
    between = {*dag.descendants(cause)} & {*dag.ancestors(effect), effect}
    forbidden = {cause, *between}.union(*(dag.descendants(v) for v in between))
    above = {*dag.ancestors(cause), *dag.ancestors(effect)} & set(observed)
    given = above - forbidden
    if not dag.is_adjustment_set(cause, effect, given):
        return None
    return _reduced(dag, given, lambda rest: dag.is_adjustment_set(cause, effect, rest))


def _reduced(dag: DAG, given: Iterable[str], valid: Callable[[set[str]], bool]) -> tuple[str, ...]:
    """Leave out nodes that are not needed, early causes first."""
    kept = set(given)
    for name in dag.topological_order():
        if name in kept and valid(kept - {name}):
            kept.discard(name)
    return tuple(v for v in dag.nodes if v in kept)


def _mediators(
    dag: DAG, cause: str, effect: str, observed: Collection[str]
) -> tuple[str, ...] | None:
    """Return a smallest set of mediators that meets the front-door criterion (Pearl 1995)."""
    between = {*dag.descendants(cause)} & {*dag.ancestors(effect)}
    candidates = [v for v in dag.nodes if v in between and v in observed]
    without_effects = _without_edges_from(dag, {cause})
    # Those with a back-door path from the cause are in no set.
    candidates = [v for v in candidates if without_effects.d_separated(cause, v)]
    sizes = range(1, len(candidates) + 1)
    sets = chain.from_iterable(combinations(candidates, size) for size in sizes)
    for chosen in islice(sets, _MAX_SETS):
        own = set(chosen)
        cut = DAG(dag.nodes, [(a, b) for a, b in dag.edges if not {a, b} & own])
        if (
            effect not in cut.descendants(cause)
            and without_effects.d_separated(cause, chosen)
            and _without_edges_from(dag, own).d_separated(chosen, effect, cause)
        ):
            return chosen
    return None


def _instruments(dag: DAG, cause: str, effect: str, observed: Collection[str]) -> Route | None:
    """Return instruments that share a smallest set of variables to adjust for.

    In the graph without the edges from the cause, in which the effect is what is left of it after
    subtracting that of the cause, an instrument must be independent of the effect given variables
    that the cause does not influence, and not independent of the cause.
    """
    cut = _without_edges_from(dag, {cause})
    free = set(observed) - {cause, effect, *dag.descendants(cause)}
    found: dict[tuple[str, ...], list[str]] = {}
    for name in (v for v in dag.topological_order() if v in free):
        for given in _separators(cut, name, effect, free - {name}):
            if not cut.d_separated(name, cause, given):
                found.setdefault(given, []).append(name)
                break
    if not found:
        return None
    given = min(found, key=len)
    return Route(Identification.INSTRUMENT, given, tuple(found[given]))


def _separators(dag: DAG, one: str, other: str, free: Collection[str]) -> Iterator[tuple[str, ...]]:
    """Yield sets of free nodes that separate two nodes, small ones first."""
    if dag.d_separated(one, other):
        yield ()
        return
    given = {*dag.ancestors(one), *dag.ancestors(other)} & set(free)
    if dag.d_separated(one, other, given):
        small = _reduced(dag, given, lambda rest: dag.d_separated(one, other, rest))
        yield small
        yield tuple(v for v in dag.nodes if v in given)


def _without_edges_from(dag: DAG, names: Collection[str]) -> DAG:
    return DAG(dag.nodes, [(a, b) for a, b in dag.edges if a not in names])
