"""Best order score search for very many variables, where each has few candidates.

Candidates are found from the data, by correlations and by correlations of residuals, or by what a
variable adds to the score of another; see `ScreenedBoss`. Nothing here has the size of the number
of variables squared.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from isthmus.arrays import Integers
from isthmus.graphs import BoundKnowledge
from isthmus.graphs.names import topological
from isthmus.kernels import _native
from isthmus.objectives import LOCAL_SCORES, LocalScore
from isthmus.objectives.correlations import CORRELATIONS, LinearGraph, Pairs
from isthmus.options import require_integer
from isthmus.results.details import ScreeningDetails
from isthmus.searches.base import Accepts, Search, SearchResult
from isthmus.searches.boss import Boss
from isthmus.watch import Watch

_MOST_PASSES = 6
"""Maximum number of passes over all pairs; four are usual, see ``benchmarks/large.py``."""
_MANY_EDGES = 64
"""Edges of a variable from which on its neighbours are not candidates of each other."""
_PER_STEP = 64
"""Variables whose candidates are set between two looks at the clock."""
_SECONDS = 0.05
_DENSE, _FEW = 3.0, 2_000
"""Edges per variable of the first graph from which on, with at most so many variables, all pairs
are candidates: screens of a dense graph find nearly all pairs, over and over. Of 200 variables
with 8 neighbours, 36 s and 92 errors became the 6 s and no error of `Boss`; with 4 neighbours both
find as much, and screens take half the time (``benchmarks/speed.py``)."""
_LEAST_GAIN = 1e-12
"""Share of the score below which a change is rounding."""


@final
@dataclass(frozen=True)
class ScreenedBoss(Search[LocalScore]):
    """Best order score search among candidates, for thousands of variables and more.

    1. *Screen*: find the strongest correlations of each variable, one pass over all pairs.
    2. *Search*: move variables in the order as `Boss` does, where only candidates can be parents.
    3. *Screen residuals*: variables whose residuals are correlated become candidates of each
       other. If there are none, the graph explains all correlations, and the search ends.
    4. *Search near the graph*: candidates are the variables at most two edges away; repeat until
       the score stays the same, then go on with step 3.

    If the first graph has more than three edges per variable, and there are at most 2,000
    variables, the other steps are left out, and `Boss` searches among all variables from one start.

    For continuous variables, a pass over all pairs multiplies blocks of columns: the cost is that
    of a matrix product per pass, and the memory is that of the columns. With other scores, a pass
    scores each variable with its parents and every other variable: partners are those that raise
    the score most, at first alone and then together with the parents. For discrete variables that
    is counting with bit sets. The search itself grows with the number of edges.

    Parameters
    ----------
    partners
        Number of strongest partners per variable in step 1.
    max_parents
        Maximum number of parents of a node; None for no limit.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import simulate
    >>> dag = simulate.erdos_renyi(50, 60, seed=1)
    >>> numbers = simulate.linear(dag, 2000, seed=1).data
    >>> solution = ist.learn(numbers, search=ist.ScreenedBoss())
    >>> ist.shd(solution.cpdag, dag.cpdag())
    0
    """

    partners: int = 20
    max_parents: int | None = None
    accepts: ClassVar[Accepts] = (CORRELATIONS, LOCAL_SCORES)

    def __post_init__(self) -> None:
        require_integer(self, "partners", least=1)
        require_integer(self, "max_parents", least=0, optional=True)

    def search(
        self,
        objective: LocalScore,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        watch: Watch,
    ) -> SearchResult:
        """Return the best graph; only dense ones need random numbers."""
        screened = _Screened(self, objective, knowledge, watch)
        with watch.until_stopped():
            screened.search()
        found = screened.result()
        if not screened.dense:
            return found
        boss = Boss(starts=1, max_parents=self.max_parents)
        return max(boss.search(objective, knowledge, rng, watch), found, key=lambda r: r.score)


@final
class _Screened:
    """The candidates and the graph.

    Variables are numbered by their partners, so that columns may have any order.
    """

    def __init__(
        self,
        options: ScreenedBoss,
        objective: LocalScore,
        knowledge: BoundKnowledge,
        watch: Watch,
    ) -> None:
        self._options = options
        self._objective = objective
        self._linear = CORRELATIONS.of(objective)
        self._knowledge, self._watch = knowledge, watch
        self._size = len(objective.nodes)
        self._number = np.arange(self._size)  # the variable of each number
        self._required: list[tuple[int, int]] = []
        self._candidates = np.empty(0, np.int64)  # pairs, as first * size + second
        self._kept = np.empty(0, np.int64)  # candidates that later passes found
        self._passes = 0
        self._started = False
        self.dense = False
        self._stage = "screening pairs"

    def search(self) -> None:
        """Screen and search until nothing new is found."""
        self._start(self._screen(LinearGraph.empty(self._size), None))
        graph = self._graph()
        few = self._size <= _FEW and LOCAL_SCORES.of(self._objective) is not None
        self.dense = few and len(graph.parents) > _DENSE * self._size
        if self.dense:
            return
        found = self._keys(self._screen(graph, None))
        self._set_candidates(np.union1d(self._candidates, found))
        self._climb()
        while self._passes < _MOST_PASSES:
            self._climb_near()
            before, graph = graph, self._graph()
            found = self._keys(self._screen(graph, graph.differs(before)))
            new = np.setdiff1d(found, self._candidates)
            if not len(new):
                return
            self._kept = np.union1d(self._kept, new)
            self._set_candidates(np.union1d(self._candidates, new))
            self._climb()

    def _screen(self, graph: LinearGraph, changed: Integers | None) -> Pairs:
        """Find pairs of variables whose residuals are correlated, or that raise each other's score.

        Pairs of variables whose parents are those of the last pass were looked at then.
        """
        self._passes += 1
        self._stage = f"pass {self._passes} over all pairs"
        if changed is not None and 2 * len(changed) > self._size:
            changed = None
        if self._linear is None:
            return self._raising_pairs(graph, changed)
        work = self._linear.correlations.strong_pairs(
            graph, self._linear.least_correlation(), self._options.partners, changed
        )
        return self._watch.complete(work, self._say)

    def _raising_pairs(self, graph: LinearGraph, changed: Integers | None) -> Pairs:
        """Find pairs in which one raises the score of the other, given its parents."""
        most, everything = self._options.partners, np.arange(self._size)
        # Without parents, both raise the score of the other by the same, if it is equivalent.
        twice = len(graph.parents) > 0 or not self._objective.equivalent
        found = [Pairs.none()]
        for i, v in enumerate((everything if changed is None else changed).tolist()):
            parents = graph.parents[graph.starts[v] : graph.starts[v + 1]]
            others = np.delete(everything, [v, *parents]) if twice else everything[v + 1 :]
            scores = self._objective.kernel.extensions(v, parents, others)
            gain = scores[1:] - scores[0]
            raising = np.flatnonzero(gain > 0)
            if twice and len(raising) > most:
                raising = raising[np.argsort(-gain[raising], kind="stable")[:most]]
            found.append(Pairs(np.full(len(raising), v), others[raising], gain[raising]))
            if i % _PER_STEP == 0:
                found = [Pairs.strongest(found, most)]
                self._watch.poll(*self._say())
        return Pairs.strongest(found, most)

    def _graph(self) -> LinearGraph:
        """The current graph, in the order of the columns."""
        starts, parents = self._search.parents()
        weights = np.zeros(len(parents))
        if self._linear is not None:
            weights = self._search.coefficients()[1]
        counts = np.diff(starts)
        owner = np.repeat(self._number, counts)
        order = np.argsort(owner, kind="stable")
        begin = np.zeros(self._size + 1, np.int64)
        np.cumsum(np.bincount(owner, minlength=self._size), out=begin[1:])
        return LinearGraph(begin, self._number[parents[order]], weights[order])

    def _start(self, found: Pairs) -> None:
        total = np.zeros(self._size)
        for end in (found.first, found.second):
            np.add.at(total, end, found.size if self._linear is None else found.size**2)
        # Effects, which are correlated with all their causes, come last.
        self._number = np.argsort(total, kind="stable")
        self._search = self._begin_search()
        place = np.empty_like(self._number)
        place[self._number] = np.arange(self._size)
        self._place = place
        self._required = [(int(place[a]), int(place[b])) for a, b in self._knowledge.required_edges]
        self._set_candidates(np.union1d(self._keys(found), self._required_keys()))
        parents: list[list[int]] = [[] for _ in range(self._size)]
        for a, b in self._required:
            parents[b].append(a)
        order = topological(parents)
        assert order is not None
        self._search.start(np.array(order, np.int64))
        self._started = True
        self._climb()

    def _begin_search(self) -> _native.ScreenedOrder:
        most = self._options.max_parents
        if self._linear is None:
            return _native.ScreenedOrder(
                self._objective.kernel, names=self._number, max_parents=most
            )
        return _native.ScreenedOrder(
            self._size,
            constant=np.ascontiguousarray(self._linear.constant),
            factor=self._linear.factor,
            tolerance=self._linear.tolerance,
            max_parents=most,
        )

    def _keys(self, pairs: Pairs) -> Integers:
        """Return pairs of variables as sorted pairs of numbers."""
        a, b = self._place[pairs.first], self._place[pairs.second]
        return np.unique(np.minimum(a, b) * self._size + np.maximum(a, b))

    def _set_candidates(self, keys: Integers) -> None:
        """Give each variable its candidates; only those that changed cost anything."""
        old, self._candidates = self._candidates, keys
        differ = np.setxor1d(old, keys, assume_unique=True)
        changed = np.unique(np.concatenate(np.divmod(differ, self._size)))
        a, b = np.divmod(keys, self._size)
        ends, others = np.concatenate([a, b]), np.concatenate([b, a])
        order = np.lexsort((others, ends))
        others = others[order]
        starts = np.searchsorted(ends[order], np.arange(self._size + 1))
        for i, v in enumerate(changed.tolist()):
            self._give(v, others[starts[v] : starts[v + 1]])
            if i % _PER_STEP == 0:
                self._watch.poll(*self._say())
        if self._started:
            self._search.settle(changed)

    def _give(self, v: int, partners: Integers) -> None:
        child = int(self._number[v])
        variables = self._number[partners]
        correlation = None
        if self._linear is not None:
            among = self._linear.correlations.among(np.append(variables, child))
            correlation = np.ascontiguousarray(among)
        allowed = self._knowledge.permitted(child, variables)
        required = [a for a, b in self._required if b == v] if self._required else []
        self._search.set_partners(
            v,
            partners.astype(np.uint32),
            correlation,
            allowed,
            np.searchsorted(partners, sorted(required)).astype(np.uint16),
        )

    def _climb(self) -> None:
        self._stage = f"search after pass {self._passes}"
        self._watch.run(lambda: self._search.step(_SECONDS), self._say)

    def _climb_near(self) -> None:
        """Search among variables at most two edges away until that changes nothing."""
        while True:
            before = self._search.score
            self._set_candidates(self._near())
            self._climb()
            if self._search.score <= before + _LEAST_GAIN * max(1.0, abs(before)):
                return

    def _near(self) -> Integers:
        """Return the pairs of variables at most two edges apart.

        Two edges do not count if one of the three variables has very many edges.
        """
        from scipy.sparse import csr_array, dia_array, triu

        starts, parents = self._search.parents()
        size = self._size
        directed = csr_array((np.ones(len(parents), np.int32), parents, starts), (size, size))
        adjacent: Any = ((directed + directed.T) > 0).astype(np.int32)
        few = (adjacent.sum(axis=1) <= _MANY_EDGES).astype(np.int32)
        passable = dia_array((few[None, :], [0]), (size, size)).tocsr()
        two = passable @ adjacent @ passable
        pairs = triu(two @ two + adjacent, 1).tocoo()
        keys = pairs.coords[0].astype(np.int64) * size + pairs.coords[1]
        return np.union1d(np.union1d(keys, self._kept), self._required_keys())

    def _required_keys(self) -> Integers:
        return np.array([min(e) * self._size + max(e) for e in self._required], np.int64)

    def result(self) -> SearchResult:
        """Return the graph of the current order; that of the required edges before the first."""
        details = ScreeningDetails(self._passes, 2 * len(self._candidates) / max(self._size, 1))
        if not self._started:
            return self._required_graph(details)
        graph = self._graph()
        groups = np.split(graph.parents, graph.starts[1:-1])
        parents = tuple(tuple(sorted(group.tolist())) for group in groups)
        return SearchResult(parents, self._score(), details, conclusion=self._conclusion())

    def _score(self) -> float:
        score = self._search.score
        return score if self._linear is None else self._linear.in_units(score)

    def _required_graph(self, details: ScreeningDetails) -> SearchResult:
        parents: dict[int, list[int]] = {}
        for a, b in self._knowledge.required_edges:
            parents.setdefault(b, []).append(a)
        families = tuple(tuple(sorted(parents.get(v, ()))) for v in range(self._size))
        score = sum(self._objective.local(v, own) for v, own in enumerate(families))
        return SearchResult(families, score, details)

    def _say(self) -> tuple[str, float, float | None]:
        if not self._started:
            return self._stage, math.nan, None
        return self._stage, self._score(), None

    def _conclusion(self) -> str:
        if self._passes >= _MOST_PASSES:
            reason = f"{_MOST_PASSES} passes over all pairs were made"
        elif self._linear is None:
            reason = "no other variable raises the score of a variable with its parents any more"
        else:
            reason = "no residuals of two variables are correlated any more"
        return (
            "this is a local optimum; no move of a variable in the order improves the score among "
            f"its candidates, and {reason}."
        )
