"""LiNGAM: orders and directions that non-Gaussian noise tells."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice
from typing import ClassVar, final

import numpy as np

from isthmus.errors import counted
from isthmus.graphs import PDAG, BoundKnowledge
from isthmus.graphs.names import bits, mask_of, topological, transpose
from isthmus.graphs.orientation import Mixed, compelled_parents, preferred_extension
from isthmus.graphs.possible_parents import possible_parents
from isthmus.kernels.orders import OrderDescent, Parents
from isthmus.objectives import INDEPENDENT_NOISE
from isthmus.objectives.smooth import NoiseFit, NoiseTest
from isthmus.options import require_boolean, require_instance, require_number
from isthmus.results.details import NoiseDetails
from isthmus.searches.base import Accepts, Search, SearchResult
from isthmus.searches.boss import Boss
from isthmus.watch import Watch

_RATIO = 8.0
"""The direction that is excluded must misfit at least this many times as much as the other one may.
Where effects are curved or noise grows, both misfit, by a factor of 3 to 7. If a cause may be
hidden, the factor is at least the square root of the number of rows: it then grows with them, so
that a weaker and weaker hidden cause leaves the edge open, but more slowly than that of a line. See
``benchmarks/results/lingam.md``."""
_WITH_RANKS, _DEPENDS = 0.6, 0.26
"""With rows, the factor is smaller by the first number, and the noise of the direction that is
excluded must depend on its cause more than that of the other one, in ranks: by the second number
times the square root of the number of rows. Chosen on 200 and 100 tables of 500 and 1,000 rows."""
_MOST_SETS = 1000
"""A node with more possible sets of parents is not tested: its edges stay open."""


@final
@dataclass(frozen=True)
class LiNGAM(Search[NoiseTest]):
    """Learn directions from non-Gaussian noise (linear non-Gaussian acyclic model).

    `Boss` finds a graph of a high score. Its order is then improved by the same moves of single
    variables, with a score that has a model of the noise, and the parents of each variable are
    chosen along that order. So the graph can differ from the best one of a score for normal noise.
    Finally, tests say which directions the data determine beyond the equivalence class of the
    graph. For every set of parents that a variable has in some graph of the class, it is tested
    whether the variable is linear in them with independent noise. A direction is excluded if all
    sets that contain the edge are rejected. An edge is oriented if exactly one of its directions is
    excluded, and if that one misfits at least eight times as much as the other one can misfit at
    the 95% level: where effects are curved or noise grows, both misfit, and few rows may show only
    one of them. A hidden common cause makes both misfit, too, and one of them so little that few
    rows do not show it; so the factor is at least the square root of the number of rows, or 0.6
    times that if ranks of up to 10,000 rows in memory say the same, unless ``hidden_causes=False``
    rules such causes out. Otherwise the edge stays open: if noise is near
    to normal, neither is excluded. A direction that the tests tell is wrong only if a correct set
    was rejected, with a probability of about ``alpha``, provided that the class is correct and no
    common cause is missing that has nearly the values of one of its effects. Finally, the parents
    of every variable are tested, at ``alpha`` divided by the number of variables, and a note names
    those that do not fit. With more than 100 variables, the order is that of `Boss`.

    ``solution.directions`` says what is determined, ``solution.details.p_values`` has the p-values
    of both directions of every edge that the class leaves open.

    Parameters
    ----------
    alpha
        Significance level of the tests: a set of parents is rejected if its p-value is below.
    hidden_causes
        Whether columns may have common causes that are not in the table. Without them, as
        DirectLiNGAM assumes, more directions are stated if there are few rows.
    dag_search
        Search for the graph to begin with. Its score is that of the test, such as
        ``IndependentNoise(score=GaussianBIC())``. With a fixed number of starts, the graph does not
        depend on where the data are.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import simulate
    >>> dag = ist.DAG(["a", "b", "c"], [("a", "b"), ("b", "c")])
    >>> numbers = simulate.linear(dag, 2000, noise=simulate.Exponential(), seed=1).data
    >>> solution = ist.learn(numbers, search=ist.LiNGAM())
    >>> solution.directions.determined
    (('a', 'b'), ('b', 'c'))
    """

    alpha: float = 0.01
    hidden_causes: bool = True
    dag_search: Boss = Boss(starts=4)
    accepts: ClassVar[Accepts] = (INDEPENDENT_NOISE,)

    def __post_init__(self) -> None:
        require_number(self, "alpha", above=0, below=1)
        require_boolean(self, "hidden_causes")
        require_instance(self, "dag_search", Boss, "Boss()")

    def search(
        self,
        objective: NoiseTest,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        watch: Watch,
    ) -> SearchResult:
        """Return the best graph, with the directions that the tests have told."""
        found = self.dag_search.search(objective.local_score(), knowledge, rng, watch)
        directions = _Directions(self, objective, knowledge, rng, watch, found)
        with watch.until_stopped():
            if not watch.stopped:
                directions.find()
        return directions.result()


@final
class _Directions:
    """The graph, and the directions that tests have told so far."""

    def __init__(
        self,
        options: LiNGAM,
        test: NoiseTest,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        watch: Watch,
        dag: SearchResult,
    ) -> None:
        self._alpha = options.alpha
        self._root = math.sqrt(test.rows) if options.hidden_causes else 0.0
        self._test = test
        self._knowledge = knowledge
        self._rng, self._watch = rng, watch
        self._score = test.local_score()
        self._dag = dag
        self._max_parents = options.dag_search.max_parents
        self._parents: Parents = ()
        self._graph: Mixed | None = None
        self._oriented: list[tuple[int, int]] = []
        self._known: dict[tuple[int, int], NoiseFit] = {}
        self._edges: dict[tuple[int, int], NoiseFit] = {}
        self._rejected: list[str] = []

    def find(self) -> None:
        """Improve the order, orient edges, and test the parents that follow."""
        self._parents = self._ordered(self._dag.parents)
        self._graph = _class_of(self._parents, self._knowledge)
        self._orientation(self._graph)
        level = self._alpha / len(self._test.nodes)
        for node, (own, around) in enumerate(
            zip(self._graph.parents, self._graph.neighbours, strict=True)
        ):
            if own and not around and self._fit(node, own).p_value < level:
                self._rejected.append(self._test.nodes[node])
            self._poll(self._graph)

    def _ordered(self, parents: Parents) -> Parents:
        """Improve the order of a graph by the noise, and choose parents along it."""
        noise = self._test.noise_score()
        order = topological(parents)
        if noise is None or order is None:
            return parents
        for score, refine in ((noise, True), (self._score, False)):
            run = OrderDescent(
                score.kernel,
                self._rng,
                required=self._knowledge.required,
                forbidden=self._knowledge.forbidden,
                max_parents=self._max_parents,
            )
            run.start(np.array(order), refine=refine)
            self._watch.run(run.step)
            order = tuple(run.order().tolist())
        return run.parents()

    def _orientation(self, graph: Mixed) -> None:
        """Orient edges until the tests tell no more."""
        open_edges = list(graph.undirected())
        while open_edges:
            excluded = {}
            possible: dict[tuple[int, int], NoiseFit] = {}
            for node in sorted({end for edge in open_edges for end in edge}):
                possible |= self._possible(graph, node)
                self._poll(graph)
            self._edges |= possible
            for a, b in open_edges:
                for edge, is_ab in (((a, b), True), ((b, a), False)):
                    kept, other = possible[edge], possible[edge[::-1]]
                    if self._excludes(kept, other, self._root):
                        excluded[a, b] = other.p_value, is_ab
            if not excluded:
                return
            self._orient(graph, sorted((p, *e, is_ab) for e, (p, is_ab) in excluded.items()))
            open_edges = list(graph.undirected())

    def _excludes(self, kept: NoiseFit, other: NoiseFit, root: float) -> bool:
        """Return whether one direction fits, and the other one would have to misfit much more.

        If a cause may be hidden, how much more depends on the root of the number of rows.
        """
        if not other.p_value < self._alpha <= kept.p_value:
            return False
        ranked = bool(kept.dependence and other.dependence)
        ratio = max(_RATIO, (_WITH_RANKS if ranked else 1.0) * root)
        if other.misfit < ratio * kept.possible:
            return False
        return not ranked or other.dependence[0] >= _DEPENDS * root * kept.dependence[0]

    def _orient(self, graph: Mixed, edges: Iterable[tuple[float, int, int, bool]]) -> None:
        """Orient edges, those of the smallest p-values first, and what follows by Meek's rules."""
        for _, a, b, forward in edges:
            if graph.neighbours[a] >> b & 1:
                edge = (a, b) if forward else (b, a)
                graph.orient(*edge)
                graph.close(graph.affected(*edge))
                self._oriented.append(edge)

    def _possible(self, graph: Mixed, node: int) -> dict[tuple[int, int], NoiseFit]:
        """Return for each open edge to a node the best fit of the sets that contain it."""
        around = list(bits(graph.neighbours[node]))
        nodes = self._test.nodes
        pattern = PDAG.from_masks(nodes, graph.parents, graph.neighbours)
        sets = list(islice(possible_parents(pattern, nodes[node]), _MOST_SETS + 1))
        if len(sets) > _MOST_SETS:
            return {(other, node): NoiseFit(1.0) for other in around}
        best = {(other, node): NoiseFit(0.0, math.inf) for other in around}
        for names in sets:
            parents = mask_of(pattern.index(name) for name in names)
            if parents & graph.neighbours[node]:
                fit = self._fit(node, parents)
                own = list(bits(parents))
                for other in bits(parents & graph.neighbours[node]):
                    # Only the dependence on the other end of the edge counts.
                    of_edge = fit.dependence[own.index(other) :][:1]
                    found = fit._replace(dependence=of_edge)
                    best[other, node] = max(best[other, node], found, key=_quality)
        return best

    def _fit(self, node: int, parents: int) -> NoiseFit:
        key = (node, parents)
        if key not in self._known:
            self._known[key] = self._test.fit(node, list(bits(parents)))
        return self._known[key]

    def _poll(self, graph: Mixed) -> None:
        left = counted(sum(1 for _ in graph.undirected()), "open edge")
        self._watch.poll(f"{left}, {len(self._known):,} tests", self._dag.score)

    def result(self) -> SearchResult:
        """Return the best graph so far, with the directions that the tests have told."""
        best = self._dag
        if self._graph is None:
            return best
        edges = [(a, b) for b, own in enumerate(self._parents) for a in own]
        parents = preferred_extension(self._graph.copy(), edges)
        named = {
            (self._test.nodes[a], self._test.nodes[b]): fit.p_value
            for (a, b), fit in self._edges.items()
        }
        return replace(
            best,
            parents=tuple(tuple(bits(own)) for own in parents),
            score=sum(self._score.local(i, [*bits(own)]) for i, own in enumerate(parents)),
            details=NoiseDetails(named),
            identified=tuple(self._oriented),
            notes=(*best.notes, *self._contradictions(self._graph), *self._misfits()),
            conclusion=(
                "a graph of a high score, improved by a model of the noise, and then "
                f"{len(self._known):,} tests of noise oriented "
                f"{counted(len(self._oriented), 'edge')}.{self._confounded(self._graph)}"
            ),
        )

    def _confounded(self, graph: Mixed) -> str:
        """Return a sentence on open edges that have a direction unless a cause is hidden."""
        fits = self._edges
        edges = [
            (a, b)
            for a, b in graph.undirected()
            if (a, b) in fits
            and any(self._excludes(fits[edge], fits[edge[::-1]], 0.0) for edge in ((a, b), (b, a)))
        ]
        if not edges or not self._root:
            return ""
        return (
            f" At least {counted(len(edges), 'open edge')} would have a direction if no common "
            "cause is missing; with so few rows, one could pass unnoticed. "
            "LiNGAM(hidden_causes=False) rules it out."
        )

    def _contradictions(self, graph: Mixed) -> tuple[str, ...]:
        """Return a note on edges neither direction of which fits."""
        fits = self._edges
        edges = [
            (a, b)
            for a, b in graph.undirected()
            if (a, b) in fits and max(fits[a, b].p_value, fits[b, a].p_value) < self._alpha
        ]
        if not edges:
            return ()
        nodes = self._test.nodes
        shown = ", ".join(f"{nodes[a]} - {nodes[b]}" for a, b in edges[:5])
        note = (
            f"Neither direction of {counted(len(edges), 'edge')} fits a linear model with "
            f"independent noise, so they are left open: {shown}. A common cause may be missing "
            "(BossFCI allows for that), or effects may be nonlinear."
        )
        return (note,)

    def _misfits(self) -> tuple[str, ...]:
        """Return a note on variables whose parents are determined, and do not fit."""
        if not self._rejected:
            return ()
        note = (
            f"The noise of {self._rejected[:5]} is not independent of their parents "
            f"({counted(len(self._rejected), 'variable')}): edges or directions around them may be "
            "wrong, a common cause may be missing, or effects may be nonlinear."
        )
        return (note,)


def _quality(fit: NoiseFit) -> tuple[float, float]:
    """Compare fits by their p-values, and those that are all rejected with 0 by the misfit."""
    return fit.p_value, -fit.misfit


def _class_of(parents: Iterable[tuple[int, ...]], knowledge: BoundKnowledge) -> Mixed:
    """Return the equivalence class of a graph that agrees with knowledge, closed under rules."""
    own = [mask_of(some) for some in parents]
    order = topological([tuple(bits(mask)) for mask in own])
    assert order is not None
    directed = list(compelled_parents(own, order))
    free = [mask & ~kept for mask, kept in zip(own, directed, strict=True)]
    both = [a | b for a, b in zip(free, transpose(free, len(free)), strict=True)]
    graph = Mixed(directed, both)
    for child, mask in enumerate(free):
        for parent in bits(mask):
            if knowledge.required[parent, child] or knowledge.forbidden[child, parent]:
                graph.orient(parent, child)
    graph.close()
    return graph
