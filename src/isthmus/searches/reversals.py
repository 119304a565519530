"""By how much the best graph with an edge the other way round scores less than a graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import inf, nan
from typing import TypeAlias, final

import numpy as np

from isthmus.arrays import Floats
from isthmus.graphs import DAG, BoundKnowledge, Knowledge
from isthmus.graphs.knowledge import without_others
from isthmus.kernels.greedy import begin_hill_climb
from isthmus.objectives import LocalScore
from isthmus.results.directions import DECIDED
from isthmus.searches.boss import Boss
from isthmus.watch import Watch

Edge: TypeAlias = tuple[int, int]
Parents: TypeAlias = tuple[tuple[int, ...], ...]

_EXACT_VARIABLES, _EXACT_SECONDS = 10, 0.1
"""Margins are exact for so many variables, if scoring every family takes less time than this."""
_UNCLEAR, _NEAR = 5 * DECIDED, DECIDED
"""Margins below the first are searched for again, also from graphs that lose less than the second.
"""
_FEW = 30
"""With more variables, a second search stays near the edge."""
_EFFORTS = {True: ((5, 10, 20), 8), False: ((1, 0, 3), 12)}
"""For few variables and for many: climbs without a better graph that end each further search, and
from how many graphs it starts. See ``benchmarks/margins.py``, also for the other numbers."""
_CLIMBS = 90_000
"""Climbs of all further searches, times the number of variables. Simulated normal data need less
than a tenth; 30 measures of breast cancers took 14 s without an end, and 64 pixels 36 s."""
_SEARCHES = 2
"""With many variables, so many whole searches follow if the first further one finds that the data
do not decide some direction. On tables of simulated normal data, it finds none."""
_ROWS, _PER_PAIR = 12, 1e-7
"""Children whose parent sets are scored for an edge, on average, and seconds per pair of variables
that changes of the graph take; measured as the options above."""


def reversal_seconds(local: LocalScore, edges: int) -> float:
    """Estimate how long `reversal_margins` takes; it depends on sizes alone."""
    d = len(local.nodes)
    return (d + _ROWS * edges) * d * local.seconds(2) + edges * d**2 * _PER_PAIR


def reversal_margins(
    local: LocalScore,
    dag: DAG,
    edges: Iterable[tuple[str, str]],
    knowledge: Knowledge,
    max_parents: int | None = None,
    *,
    patient: bool = False,
) -> dict[tuple[str, str], float]:
    """Return for each edge how much less the best graph scores that has it the other way round.

    The best graph is searched for by hill climbing from the graph with the edge reversed. Each
    graph that is found counts for all edges that it has reversed, and so do the members of its
    equivalence class if the score does not distinguish them. A margin is therefore an upper bound;
    it is 0 if a graph scores more than the given one, and infinite if knowledge admits no graph
    with the reverse edge. An edge has none if it is not clear when the work is used up, as in dense
    graphs of which many have nearly the same score.

    Parameters
    ----------
    local
        The score.
    dag
        A graph that agrees with the knowledge.
    edges
        Some of its edges.
    knowledge
        Knowledge that a graph with the reverse edge agrees with, too.
    max_parents
        Maximum number of parents of a node; None for no limit.
    patient
        Whether work has no end before all edges are clear.
    """
    place = {name: i for i, name in enumerate(local.nodes)}
    edges = tuple(edges)
    asked = [(place[a], place[b]) for a, b in edges]
    parents = dag.reorder(local.nodes).parent_indices()
    if len(parents) <= _EXACT_VARIABLES and local.seconds_for_all() < _EXACT_SECONDS:
        best = _ExactReversals(local, knowledge.bind(local.nodes), max_parents).best
        total = sum(local.local(v, own) for v, own in enumerate(parents))
        margins = [total - best(edge) for edge in asked]
    else:
        search = _Reversals(local, parents, asked, knowledge, max_parents, patient=patient)
        search.run()
        margins = [nan if edge in search.unclear else search.margins[edge] for edge in asked]
    return {
        e: max(margin, 0.0) for e, margin in zip(edges, margins, strict=True) if margin == margin
    }


def margins_on_same_pairs(
    local: LocalScore,
    dag: DAG,
    edges: Iterable[tuple[str, str]],
    knowledge: Knowledge,
    max_parents: int | None = None,
    *,
    patient: bool = False,
) -> dict[tuple[str, str], float]:
    """Return the margins that edges of a graph have by another score, which the graph is not of.

    The best graph by that score is searched for among those that join no other pairs than the given
    one. An edge has the margin that it has there, and 0 if the best graph leaves it out, leaves its
    direction open, or has it the other way round. It has none if it is not clear there.

    Parameters
    ----------
    local
        The other score.
    dag
        The graph.
    edges, knowledge, max_parents, patient
        As for `reversal_margins`.
    """
    best, known = best_on_same_pairs(local, dag, knowledge, max_parents)
    return _margins_in(best, local, edges, known, max_parents, patient=patient, apart=0.0)


def margins_on_all_pairs(
    local: LocalScore,
    edges: Iterable[tuple[str, str]],
    knowledge: Knowledge,
    max_parents: int | None = None,
    *,
    patient: bool = False,
) -> dict[tuple[str, str], float]:
    """Return the margins that edges have in the best graph of all by another score.

    As `margins_on_same_pairs`, but an edge between two variables that the best graph does not join
    has an infinite margin: this graph says nothing of its direction.
    """
    best = _best(local, knowledge, max_parents)
    return _margins_in(best, local, edges, knowledge, max_parents, patient=patient, apart=inf)


def _margins_in(
    best: DAG,
    local: LocalScore,
    edges: Iterable[tuple[str, str]],
    knowledge: Knowledge,
    max_parents: int | None,
    *,
    patient: bool,
    apart: float,
) -> dict[tuple[str, str], float]:
    """Return the margins of edges in the best graph by a score, and `apart` if it has no such pair.

    A graph that is found for one edge counts for the others, so all of its edges are asked for.
    """
    told = best.cpdag(knowledge).directed if local.equivalent else best.edges
    margins = reversal_margins(local, best, told, knowledge, max_parents, patient=patient)
    unclear = set(told).difference(margins)
    joined = {frozenset(edge) for edge in best.edges}
    return {
        edge: margins.get(edge, 0.0 if frozenset(edge) in joined else apart)
        for edge in edges
        if edge not in unclear
    }


def best_on_same_pairs(
    local: LocalScore, dag: DAG, knowledge: Knowledge, max_parents: int | None = None
) -> tuple[DAG, Knowledge]:
    """Return the best graph among those that join no other pairs, and the knowledge of that."""
    known = without_others(knowledge, dag)
    return _best(local, known, max_parents), known


def _best(local: LocalScore, knowledge: Knowledge, max_parents: int | None) -> DAG:
    watch, search = Watch(), Boss(max_parents=max_parents)
    found = search.search(local, knowledge.bind(local.nodes), np.random.default_rng(0), watch)
    watch.reraise()
    return DAG.from_parents(local.nodes, found.parents)


@final
class _ExactReversals:
    """Best graphs with a given edge, by dynamic programming over sets of variables."""

    def __init__(
        self, local: LocalScore, knowledge: BoundKnowledge, max_parents: int | None
    ) -> None:
        d = len(local.nodes)
        self._sets = np.arange(1 << d)
        self._families = np.full((d, 1 << d), -inf)
        for child, scores in enumerate(self._families):
            self._score(local, child, scores, d if max_parents is None else max_parents)
            required = sum(1 << p for p in np.flatnonzero(knowledge.required[:, child]).tolist())
            barred = sum(1 << p for p in np.flatnonzero(knowledge.forbidden[:, child]).tolist())
            scores[(self._sets & required != required) | (self._sets & barred != 0)] = -inf
        best = np.stack([_best_subsets(scores) for scores in self._families])
        # The best graphs of each set of variables on its own, and of the others given the set.
        self._before, self._after = np.full((2, 1 << d), -inf)
        self._before[0] = self._after[-1] = 0.0
        for variables in range(1, 1 << d):
            own = [v for v in range(d) if variables >> v & 1]
            rest = [variables ^ 1 << v for v in own]
            self._before[variables] = (self._before[rest] + best[own, rest]).max()
        for variables in reversed(range((1 << d) - 1)):
            own = [v for v in range(d) if not variables >> v & 1]
            more = [variables | 1 << v for v in own]
            self._after[variables] = (self._after[more] + best[own, variables]).max()

    @staticmethod
    def _score(local: LocalScore, child: int, scores: Floats, most: int) -> None:
        """Score all sets of up to so many parents, of which one call extends by one."""
        others = [v for v in range(len(local.nodes)) if v != child]
        for size in range(0, min(most, len(others)) + 1, 2):
            for parents in combinations(others, size):
                more = [v for v in others if v not in parents] if size < most else []
                own = sum(1 << p for p in parents)
                scores[[own, *(own | 1 << v for v in more)]] = local.extensions(
                    child, parents, more
                )

    def best(self, reversed_edge: Edge) -> float:
        """Return the score of the best graph that has an edge the other way round."""
        child, parent = reversed_edge
        scores = np.where(self._sets >> parent & 1, self._families[child], -inf)
        without = self._sets[self._sets >> child & 1 == 0]
        given = _best_subsets(scores)[without]
        return float((self._before[without] + given + self._after[without | 1 << child]).max())


def _best_subsets(scores: Floats) -> Floats:
    """Return the best score of the subsets of each set."""
    best = scores.copy()
    for i in range(len(best).bit_length() - 1):
        halves = best.reshape(-1, 2, 1 << i)
        np.maximum(halves[:, 1], halves[:, 0], out=halves[:, 1])
    return best


@final
@dataclass(eq=False)
class _Graph:
    """A graph that was found, with its score."""

    parents: Parents
    score: float

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The variables, parents before children."""
        names = tuple(map(str, range(len(self.parents))))
        return tuple(map(int, DAG.from_parents(names, self.parents).topological_order()))


@final
class _Reversals:
    def __init__(
        self,
        local: LocalScore,
        parents: Parents,
        edges: Sequence[Edge],
        knowledge: Knowledge,
        max_parents: int | None,
        *,
        patient: bool,
    ) -> None:
        bound = knowledge.bind(local.nodes)
        self._local = local
        self._bound = bound
        self._knowledge = knowledge
        self._required = [tuple(np.flatnonzero(c).tolist()) for c in bound.required.T]
        self._forbidden = bound.forbidden
        self._max_parents = max_parents
        self._run = begin_hill_climb(
            local.kernel,
            seed=0,
            required=bound.required,
            forbidden=bound.forbidden,
            max_parents=max_parents,
        )
        total = sum(local.local(v, own) for v, own in enumerate(parents))
        self._first = _Graph(parents, total)
        self._few = len(parents) <= _FEW
        self._graphs: dict[Parents, _Graph] = {}
        self._climbs = inf if patient else _CLIMBS / max(len(parents), 1)
        self.margins = dict.fromkeys(edges, inf)
        self.unclear: tuple[Edge, ...] = ()

    def run(self) -> None:
        for edge in self.margins:
            if self.margins[edge] >= DECIDED:
                self._search(self._first, edge, restarts=0)
        efforts, most = _EFFORTS[self._few]
        for number, restarts in enumerate(efforts):
            if number == 1 and not self._few:
                self._search_anew()
            before = sum(margin < DECIDED for margin in self.margins.values())
            near = [g for g in self._graphs.values() if g.score > self._first.score - _NEAR]
            near.sort(key=lambda graph: -graph.score)
            for edge in self.margins:
                for graph in (self._first, *self._nearby(near, edge)[:most]):
                    if self._climbs > 0 and self._is_unclear(edge):
                        self._search(graph, edge, restarts=restarts)
                        self._climbs -= 1 + restarts
            if self._climbs <= 0:
                self.unclear = tuple(filter(self._is_unclear, self.margins))
                return
            if before == sum(margin < DECIDED for margin in self.margins.values()):
                return

    def _is_unclear(self, edge: Edge) -> bool:
        return DECIDED <= self.margins[edge] < _UNCLEAR

    def _search_anew(self) -> None:
        """Find the graphs of whole searches, in which large parts may point the other way."""
        for seed in range(1, _SEARCHES + 1):
            rng = np.random.default_rng(seed)
            watch = Watch()
            boss = Boss(max_parents=self._max_parents)
            best = boss.search(self._local, self._bound, rng, watch)
            watch.reraise()
            self._keep(_Graph(best.parents, best.score))

    def _nearby(self, graphs: list[_Graph], edge: Edge) -> list[_Graph]:
        """Return the graphs that differ from the first one near an edge; all for few variables."""
        if self._few:
            return graphs
        a, b = edge
        first = self._first.parents
        close = {a, b, *first[a], *first[b]}
        close.update(v for v, own in enumerate(first) if a in own or b in own)
        return [g for g in graphs if any(g.parents[v] != first[v] for v in close)]

    def _search(self, graph: _Graph, edge: Edge, *, restarts: int) -> None:
        """Climb from a graph with an edge reversed, if a better one than known can be near it."""
        a, b = edge
        loss = self._first.score - graph.score
        if a not in graph.parents[b] or loss >= self.margins[edge] or self._forbidden[b, a]:
            return
        for parents in self._reversed(graph, a, b):
            self._run.start(parents, parent=b, child=a, restarts=restarts, nearby=not self._few)
            while not self._run.step():
                pass
            best, score = self._run.best()
            self._keep(_Graph(tuple(map(tuple, best)), score))

    def _reversed(self, graph: _Graph, a: int, b: int) -> list[list[list[int]]]:
        """Return a graph with the edge from a to b reversed, in each of two ways.

        Variables on other ways from a to b come after both or before both, as far as required edges
        permit.
        """
        parents, order = graph.parents, graph.order
        first, last = order.index(a), order.index(b)
        between = order[first + 1 : last]
        below, must_below = {a}, {a}
        for v in between:
            if below.intersection(parents[v]):
                below.add(v)
            if must_below.intersection(self._required[v]):
                must_below.add(v)
        if must_below.intersection(self._required[b]):
            return []
        above, must_above = {b}, {b}
        for v in reversed((*between, b)):
            if v in above:
                above.update(parents[v])
            if v in must_above:
                must_above.update(self._required[v])
        on_the_way = {v for v in between if v in below and v in above}
        starts = []
        for late in (on_the_way - must_above, on_the_way & must_below):
            # Edges into b and into what comes before it, from a and from what comes after, go.
            gone, early = {a} | late, {b} | (on_the_way - late)
            start = [
                [p for p in own if p not in gone] if v in early else list(own)
                for v, own in enumerate(parents)
            ]
            start[a] = sorted((*self._room(start[a], a), b))
            if start not in starts:
                starts.append(start)
        return starts

    def _room(self, parents: list[int], child: int) -> list[int]:
        """Return the parents, without the least useful one if there is room for no other."""
        if self._max_parents is None or len(parents) < self._max_parents:
            return parents
        rest = [
            [p for p in parents if p != own] for own in parents if own not in self._required[child]
        ]
        return max(rest, key=lambda own: self._local.local(child, own), default=parents)

    def _keep(self, graph: _Graph) -> None:
        loss = self._first.score - graph.score
        if graph.parents in self._graphs:
            return
        self._graphs[graph.parents] = graph
        for edge in self._turned(graph, loss):
            self.margins[edge] = min(self.margins[edge], loss)

    def _turned(self, graph: _Graph, loss: float) -> list[Edge]:
        """Return the edges that a graph, or a member of its class, has the other way round."""
        open_edges = [e for e, margin in self.margins.items() if loss < margin]
        turned = [(a, b) for a, b in open_edges if b in graph.parents[a]]
        rest = [(a, b) for a, b in open_edges if a in graph.parents[b]]
        if not rest or loss >= _UNCLEAR or not self._local.equivalent:
            return turned
        nodes = self._local.nodes
        member = DAG.from_parents(nodes, graph.parents)
        directed = set(member.cpdag(self._knowledge).directed)
        return turned + [(a, b) for a, b in rest if (nodes[a], nodes[b]) not in directed]
