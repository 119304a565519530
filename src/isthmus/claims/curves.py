"""Challenge of a graph by curves: which edges they explain away, and which need them.

A line is the smaller model of an effect, a curve the larger one. An edge that lines have found may
only stand for the curves of others: of five columns with one common cause, the lines leave a rest
that joins each two of them. And in a graph of lines, a curved relation is missing or misdirected.

A curve is not always evidence against a line. If noise is skewed, the regression of a cause on its
straight effect is curved. So an edge needs a curve only if it does in every direction that the
class of the graph admits, and directions that curves alone suggest are not concluded from here.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from isthmus.graphs import DAG, Knowledge
from isthmus.objectives.additive import CurvedScore

_LEAST = 3.0
"""Gain in nats, beyond its penalty, of a relation that lines miss; see
``benchmarks/curves/straight.py``: with 0, a table in a hundred of straight effects had one."""

Pair = tuple[int, int]


@final
@dataclass(frozen=True)
class CurvedEdges:
    """What curves say of a graph.

    Attributes
    ----------
    dag
        The graph without the edges that curves explain.
    explained
        Edges that are explained by curves of other neighbours of one end.
    bent
        Edges that need a curve in every direction that they may have.
    missing
        Pairs that are not adjacent, the first of which has a curved effect on the second.
    curves
        Ordered pairs of variables whose effect must be allowed to be curved because of the above.
    """

    dag: DAG
    explained: tuple[tuple[str, str], ...]
    bent: tuple[tuple[str, str], ...]
    missing: tuple[tuple[str, str], ...]
    curves: frozenset[tuple[str, str]]

    @property
    def survives(self) -> bool:
        """Whether a graph of lines says all that curves would say."""
        return not (self.explained or self.bent or self.missing)


def challenge_by_curves(
    score: CurvedScore, dag: DAG, knowledge: Knowledge, *, other_scale: bool = False
) -> CurvedEdges:
    """Compare each edge, and each pair without one, in the model with curves.

    Parameters
    ----------
    score
        A score in which all effects may be curved.
    dag
        The graph to challenge; its equivalence class decides which directions are admissible.
    knowledge
        Required edges are kept, and forbidden ones are not missing.
    other_scale
        Whether the graph was learned on another scale of the columns: edges without curves of
        other neighbours must pay on this one, too.
    """
    names = score.nodes
    place = {name: i for i, name in enumerate(names)}
    required = {(place[a], place[b]) for a, b in knowledge.required if {a, b} <= place.keys()}
    dag, explained = _without_explained(score, dag, knowledge, required, other_scale=other_scale)
    graph = _Class.of(dag, knowledge, place)
    bent = [pair for pair in graph.edges if _bends_both_ways(score, graph, pair)]
    missing = _missing(score, dag, knowledge)
    curves = {pair for a, b in bent for pair in ((a, b), (b, a))} | set(missing)
    for pair in explained:
        curves |= _that_explain(score, graph, pair)

    def named(pairs: Collection[Pair]) -> tuple[tuple[str, str], ...]:
        return tuple((names[a], names[b]) for a, b in pairs)

    allowed = frozenset(named([(a, b) for a, b in curves if score.bends[a]]))
    return CurvedEdges(dag, named(explained), named(bent), named(missing), allowed)


def doubts_of_other_scale(
    score: CurvedScore, other: CurvedScore, dag: DAG
) -> tuple[tuple[str, str, float], ...]:
    """Return pairs without an edge that gain less on another scale of the columns, and how much.

    Parameters
    ----------
    score, other
        Scores on the scale of the graph, and on the other one, in which effects may be curved.
    dag
        The graph, whose edges hold on both scales.
    """
    names = score.nodes
    place = {name: i for i, name in enumerate(names)}
    least = np.zeros((len(names), len(names)))
    for child, name in enumerate(names):
        parents = sorted(place[p] for p in dag.parents(name))
        out = {child, *parents, *(place[c] for c in dag.children(name))}
        candidates = [i for i in range(len(names)) if i not in out]
        here, there = (each.extensions(child, parents, candidates) for each in (score, other))
        gains, others = here[1:] - here[0], there[1:] - there[0]
        least[child, candidates] = np.where(gains > 0.0, np.minimum(others - gains, 0.0), 0.0)
    pairs = np.argwhere(np.triu(np.minimum(least, least.T)) < 0.0).tolist()
    return tuple((names[a], names[b], float(min(least[a, b], least[b, a]))) for a, b in pairs)


@final
@dataclass(frozen=True)
class _Class:
    """The equivalence class of a graph, by positions."""

    edges: tuple[Pair, ...]
    parents: dict[int, set[int]]
    open: dict[int, set[int]]

    @classmethod
    def of(cls, dag: DAG, knowledge: Knowledge, place: dict[str, int]) -> _Class:
        parents = {place[v]: {place[p] for p in dag.parents(v)} for v in dag.nodes}
        free: dict[int, set[int]] = {i: set() for i in parents}
        for a, b in dag.cpdag(knowledge).undirected:
            free[place[a]].add(place[b])
            free[place[b]].add(place[a])
        return cls(tuple((place[a], place[b]) for a, b in dag.edges), parents, free)

    def other_parents(self, parent: int, child: int) -> Iterator[list[int]]:
        """Yield sets of parents that the child can have besides one parent.

        If the direction is open, further parents must be neighbours of both.
        """
        if parent not in self.open[child]:
            yield sorted(self.parents[child] - {parent})
            return
        fixed = self.parents[child] - self.open[child] - {parent}
        yield sorted(fixed)
        common = self.open[child] & self.open[parent]
        if common - fixed:
            yield sorted(fixed | common)


def _without_explained(
    score: CurvedScore,
    dag: DAG,
    knowledge: Knowledge,
    required: set[Pair],
    *,
    other_scale: bool,
) -> tuple[DAG, list[Pair]]:
    """Remove edges, the weakest first, until none is explained by curves of other neighbours."""
    names = score.nodes
    place = {name: i for i, name in enumerate(names)}
    odds = knowledge.log_odds(names)
    explained: list[Pair] = []
    gains: dict[tuple[int, int, tuple[int, ...]], float] = {}

    def gain(child: int, others: list[int], parent: int) -> float:
        key = (child, parent, tuple(others))
        if key not in gains:
            # Without curves of others, the score that chose the edge has the last word.
            curved = other_scale or score.degrees(child, others).any()
            found = score.gain(child, others, parent) + odds[parent, child]
            gains[key] = found if curved else math.inf
        return gains[key]

    while True:
        graph = _Class.of(dag, knowledge, place)
        weakest, least = None, 0.0
        for a, b in graph.edges:
            if (a, b) in required:
                continue
            ends = [(a, b), (b, a)] if b in graph.open[a] else [(a, b)]
            gained = [
                (gain(child, [*graph.other_parents(parent, child)][-1], parent), parent, child)
                for parent, child in ends
            ]
            # The mean of a cause does not depend on an effect that rises and falls with it, so in
            # that direction there is nothing that others could explain.
            telling = [
                value
                for value, parent, child in gained
                if value >= 0.0 or score.gain(child, [], parent) > 0.0
            ]
            found = min(telling) if telling else max(value for value, *_ in gained)
            if found < least:
                weakest, least = (a, b), found
        if weakest is None:
            return dag, explained
        explained.append(weakest)
        gone = (names[weakest[0]], names[weakest[1]])
        dag = DAG(dag.nodes, [edge for edge in dag.edges if edge != gone])


def _bends_both_ways(score: CurvedScore, graph: _Class, edge: Pair) -> bool:
    """Whether an edge needs a curve, whichever of its ends is the cause.

    A discrete cause has a mean for each level, so its effect is never curved.
    """
    a, b = edge
    return all(
        score.bends[parent] and score.bend(child, others, parent) > 0.0
        for parent, child in ((a, b), (b, a))
        for others in graph.other_parents(parent, child)
    )


def _missing(score: CurvedScore, dag: DAG, knowledge: Knowledge) -> list[Pair]:
    """Find variables on which one that comes before them has a curved effect, beyond their parents.

    A straight effect that is missing says something about the search, and nothing about lines.
    """
    names = score.nodes
    forbidden, odds = knowledge.bind(names).forbidden, knowledge.log_odds(names)
    place = {name: i for i, name in enumerate(names)}
    below: dict[str, set[str]] = {}
    for name in reversed(dag.topological_order()):
        below[name] = {name}.union(*(below[child] for child in dag.children(name)))
    found = []
    for name in names:
        j, parents = place[name], [place[p] for p in dag.parents(name)]
        out = {*parents, *(place[c] for c in below[name])}
        candidates = [i for i in range(len(names)) if i not in out and not forbidden[i, j]]
        values = score.extensions(j, sorted(parents), candidates)
        gains = values[1:] - values[0] + odds[candidates, j]
        found += [
            (i, j)
            for i, gain in zip(candidates, gains, strict=True)
            if gain > _LEAST and score.bend(j, sorted(parents), i) > 0.0
        ]
    return found


def _that_explain(score: CurvedScore, graph: _Class, edge: Pair) -> set[Pair]:
    """Return the curved effects of neighbours on the ends of an edge that they explain."""
    return {
        (neighbour, end)
        for end in edge
        for neighbour in {p for pair in graph.edges if end in pair for p in pair} - {end}
        if score.bends[neighbour] and score.bend(end, [], neighbour) > 0.0
    }


def looks_normal(moments: tuple[float, float, float, float], rows: int) -> bool:
    """Whether a column has the skewness and kurtosis of a normal distribution.

    Parameters
    ----------
    moments
        Means of the first four powers of the column, clipped at three standard deviations.
    rows
        Number of rows.
    """
    first, second, third, fourth = moments
    variance = second - first**2
    if not variance > 0.0:
        return False
    skewness = (third - 3.0 * first * second + 2.0 * first**3) / variance**1.5
    kurtosis = (
        fourth - 4.0 * first * third + 6.0 * first**2 * second - 3.0 * first**4
    ) / variance**2
    statistic = rows / 6.0 * (skewness**2 + (kurtosis - _CLIPPED_KURTOSIS) ** 2 / 4.0)
    return bool(statistic < _NORMAL)


_NORMAL = 13.8
"""Quantile of the test of Jarque and Bera at a level of 0.1%."""
_CLIPPED_KURTOSIS = 2.92
"""Kurtosis of a standard normal variable that is clipped at three."""
