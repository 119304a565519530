"""Ways to identify an effect in a graph with hidden variables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import chain, combinations, islice
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import GraphError, a_type
from isthmus.graphs.dag import DAG
from isthmus.graphs.names import bits, mask_of, reach, same_nodes, transpose
from isthmus.graphs.orientation import connected
from isthmus.graphs.pag import ARROW, CIRCLE, PAG, TAIL
from isthmus.graphs.partial import CPDAG, PDAG

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


# --- Adjustment in PAGs --------------------------------------------------------------------------
#
# Adjustment in graphs with hidden causes: which effects a PAG identifies, and by which variables.
#
# This is the generalised adjustment criterion of Perković, Textor, Kalisch and Maathuis (2018).


@final
@dataclass(frozen=True)
class Adjustment:
    """Whether an effect is identified by adjustment in a PAG.

    Attributes
    ----------
    variables
        Variables to adjust for; None if there is no valid set.
    has_path
        Whether the effect may differ from zero: a path may be directed from cause to effect.
    reason
        Why there is no valid set.
    """

    variables: tuple[str, ...] | None
    has_path: bool = True
    reason: str = ""


def find_adjustment(pag: PAG, cause: str, effect: str) -> Adjustment:
    """Return variables to adjust for that are valid in all graphs that a PAG stands for.

    If there is any valid set, one is found. Of the variables that are not needed, it has those that
    are adjacent to the effect, or to a variable between cause and effect: they reduce the variance.

    Parameters
    ----------
    pag
        The graph.
    cause, effect
        Names of two nodes.
    """
    x, y = pag.index(cause), pag.index(effect)
    size, matrix = len(pag.nodes), pag.matrix
    # Paths that may be directed have no arrowhead towards their start.
    steps = [_where((matrix[v] > 0) & (matrix[:, v] != ARROW)) for v in range(size)]
    around = [own & ~(1 << x) for own in steps]
    first = mask_of(v for v in bits(steps[x]) if reach(1 << v, around) >> y & 1)
    if not first:
        return Adjustment((), has_path=False)
    for v in bits(first):
        if matrix[v, x] != TAIL or not is_visible(pag, x, v):
            return Adjustment(None, reason=_confounded(pag, x, v))
    parents = _some_members_parents(pag, x)
    if parents is None:
        return Adjustment(
            None,
            reason="the marks of the learned graph contradict each other, so that no graph agrees "
            "with all of them",
        )
    for v in bits(first):  # what is left are the paths to block
        parents[v] &= ~(1 << x)
    children = transpose(parents, len(parents))
    forbidden = reach(first, steps) | 1 << x | 1 << y
    pool = reach(1 << x | 1 << y, transpose(steps, size)) & ~forbidden

    def blocks(given: int) -> bool:
        return not connected(parents, children, 1 << x, given) >> y & 1

    if not blocks(pool):
        return Adjustment(
            None, reason="no set of the measured variables blocks all paths that are not causal"
        )
    between = reach(first, around) & reach(1 << y, transpose(around, size))
    useful = _where(matrix[list(bits(between))].sum(axis=0))
    for v in bits(pool & ~useful):
        if blocks(pool & ~(1 << v)):
            pool &= ~(1 << v)
    return Adjustment(tuple(pag.nodes[v] for v in bits(pool)))


def is_visible(pag: PAG, a: int, b: int) -> bool:
    """Return whether an edge a --> b excludes a hidden common cause of the two.

    It does if a node that is not adjacent to b has an arrowhead at a, or is joined to a by
    colliders that are parents of b (Zhang 2008).

    Parameters
    ----------
    pag
        The graph.
    a, b
        Positions of the nodes of a directed edge.
    """
    matrix = pag.matrix
    into = [_where(matrix[:, v] == ARROW) for v in range(len(pag.nodes))]
    near_b = _where(matrix[b]) | 1 << b
    parents_of_b = _where((matrix[:, b] == ARROW) & (matrix[b] == TAIL))
    seen, waiting = 1 << a, [a]
    while waiting:
        v = waiting.pop()
        if into[v] & ~near_b & ~(1 << a):
            return True
        both = mask_of(c for c in bits(into[v]) if into[c] >> v & 1)
        for c in bits(both & parents_of_b & ~seen):
            seen |= 1 << c
            waiting.append(c)
    return False


def _some_members_parents(pag: PAG, first: int) -> list[int] | None:
    """Return the parents in a DAG that the PAG stands for, with hidden nodes at the end.

    Circles at the tails of ``o->`` become tails, and edges ``o-o`` get directions without new
    colliders, away from a node (Zhang 2008). None if that gives a cycle, or a hidden cause of a
    variable and its own cause: the marks contradict each other.
    """
    matrix, size = pag.matrix, len(pag.nodes)
    open_ends = (matrix == CIRCLE) & (matrix.T == CIRCLE)
    left, order = set(range(size)), []
    visited = np.zeros(size, int)
    visited[first] = 1  # it comes first in its component
    while left:  # maximum cardinality search
        v = max(left, key=lambda u: (visited[u], -u))
        left.remove(v)
        order.append(v)
        visited += open_ends[v]
    rank = np.argsort(order)
    arrow = matrix == ARROW
    directed = (arrow & ~arrow.T) | (open_ends & (rank[:, None] < rank[None, :]))
    parents = [_where(column) for column in directed.T]
    above = [reach(own, parents) for own in parents]
    if any(above[v] >> v & 1 for v in range(size)):
        return None
    for a, b in np.argwhere(np.triu(arrow & arrow.T)).tolist():
        if above[a] >> b & 1 or above[b] >> a & 1:
            return None
        parents[a] |= 1 << len(parents)
        parents[b] |= 1 << len(parents)
        parents.append(0)
    return parents


def _where(flags: NDArray[Any]) -> int:
    """Return the positions of nonzero values as a bitset."""
    return mask_of(np.flatnonzero(flags).tolist())


def _confounded(pag: PAG, x: int, v: int) -> str:
    a, b = pag.nodes[x], pag.nodes[v]
    kind = next(own for one, own, other in pag.edges if {one, other} == {a, b})
    if kind == "-->":
        return f"{a} --> {b} does not exclude that they also have a hidden common cause"
    shown = f"{a} {kind} {b}"
    return f"{shown} leaves open whether {a} is a cause of {b} or they have a hidden common cause"


# --- Comparison of a graph with a reference graph, edge by edge ---------------------------------

Graph: TypeAlias = DAG | CPDAG | PDAG
Pair: TypeAlias = tuple[str, str]

STATES = {
    "same": "in both graphs",
    "added": "not in the reference",
    "missing": "only in the reference",
    "reversed": "the other way round in the reference",
    "undecided": "directed in one graph only",
}
"""States of an edge in a comparison, and their meanings."""


@dataclass(frozen=True)
class Comparison:
    """How the edges of a graph differ from those of a reference.

    Attributes
    ----------
    states
        One of the keys of `STATES` for each edge of the graph, and for each missing edge.
    missing
        Edges of the reference only; True if directed.
    name
        Name of the reference.
    """

    states: Mapping[Pair, str]
    missing: Mapping[Pair, bool]
    name: str = "the reference graph"

    def count(self, state: str) -> int:
        """Return the number of edges in a state."""
        return sum(value == state for value in self.states.values())

    @property
    def distance(self) -> int:
        """The structural Hamming distance: the number of edges that differ."""
        return len(self.states) - self.count("same")


def compare(graph: Graph, reference: Graph) -> Comparison:
    """Compare the edges of a graph with those of a reference.

    An equivalence class is compared with the equivalence class of the reference, because the
    directions within a class cannot be learned.

    Parameters
    ----------
    graph
        The graph to judge.
    reference
        A graph over the same nodes, in any order.
    """
    if not isinstance(reference, DAG | CPDAG | PDAG):
        raise GraphError(
            f"reference must be a DAG, a CPDAG or a PDAG; {a_type(reference)} was given."
        )
    same_nodes(graph.nodes, reference.nodes, "A comparison")
    if isinstance(reference, DAG) and not isinstance(graph, DAG):
        reference = reference.cpdag()
    own, other = _edges(graph), _edges(reference)
    states: dict[Pair, str] = {}
    for (a, b), directed in own.items():
        states[a, b] = _state((a, b), directed, other)
    missing = {
        pair: directed
        for pair, directed in other.items()
        if pair not in own and pair[::-1] not in own
    }
    return Comparison(states | dict.fromkeys(missing, "missing"), missing)


def _edges(graph: Graph) -> dict[Pair, bool]:
    if isinstance(graph, DAG):
        return dict.fromkeys(graph.edges, True)
    return dict.fromkeys(graph.directed, True) | dict.fromkeys(graph.undirected, False)


def _state(pair: Pair, directed: bool, other: Mapping[Pair, bool]) -> str:  # noqa: FBT001
    if pair in other:
        return "same" if other[pair] == directed else "undecided"
    if pair[::-1] not in other:
        return "added"
    if directed and other[pair[::-1]]:
        return "reversed"
    return "same" if directed == other[pair[::-1]] else "undecided"
