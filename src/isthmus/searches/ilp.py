"""Exact search by integer linear programming, on SCIP."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from isthmus.arrays import Floats, Integers
from isthmus.errors import MissingExtraError
from isthmus.graphs import BoundKnowledge
from isthmus.graphs.names import bits
from isthmus.kernels import _native
from isthmus.objectives import LOCAL_SCORES, PARENT_SETS, LocalScore, ScoreTable
from isthmus.objectives.table import pack_set, unpack
from isthmus.searches.base import Accepts, Search, SearchResult
from isthmus.searches.near_best import (
    MARGIN,
    Choice,
    Component,
    PartSearch,
    Ranking,
    graphs_around,
    masks_of,
)
from isthmus.searches.solver import ExactSolver, check_exact_options
from isthmus.watch import Say, Watch

_SLICE = 0.3
"""Seconds of CPU time that SCIP runs in one step: it repeats some work after each pause."""
_CHUNK = 2_000
"""Columns that are added in one step."""
_CUTS_A_ROUND = 40
_VIOLATED = 1.0 - 1e-4


@final
@dataclass(frozen=True)
class ILP(Search[LocalScore]):
    """Exact search by integer linear programming with cluster cuts (Bartlett and Cussens 2017).

    Finds a provably optimal graph. The program has one binary variable per node and parent set, and
    each node takes one parent set. Cluster constraints, by which every set of nodes has a member
    without parents in the set, are added when they are violated. Strongly connected components of
    the graph of possible parents are solved separately. To list several graphs, each is excluded
    once it is found, within one branch-and-bound tree. Needs the extra ``[ilp]``.

    Parameters
    ----------
    max_parents
        Maximum number of parents of a node; None for no limit.
    n_best
        Number of best graphs to list in ``details.networks``: pairs of a graph and its score, best
        first, each proven to be the next best. No other graph scores more than
        ``details.networks_bound``.
    bayes_factor
        List only graphs that are at most this many times less probable than the best one. This is
        the Bayes factor if the score is a marginal likelihood.

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=1000, seed=1)
    >>> print(ist.learn(data, score=ist.BIC(), search=ist.ILP()).status)
    optimal: no graph scores higher.
    """

    max_parents: int | None = None
    n_best: int = 1
    bayes_factor: float | None = None
    accepts: ClassVar[Accepts] = (LOCAL_SCORES, PARENT_SETS)

    def __post_init__(self) -> None:
        check_exact_options(self)

    def search(
        self,
        objective: LocalScore | ScoreTable,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        watch: Watch,
    ) -> SearchResult:
        try:
            import pyscipopt  # noqa: F401
        except ImportError:
            raise MissingExtraError(
                "pyscipopt", "ilp", "Exact search by integer programming"
            ) from None
        return ExactSolver(self, objective, knowledge, rng, watch, self._open).solve()

    def _open(
        self, part: Component, lines: list[int], known_score: float, slack: float | None
    ) -> PartSearch:
        return Program(part, lines, known_score, n_best=self.n_best, slack=slack)


@final
class Program(PartSearch):
    """A running integer program for one component.

    SCIP itself finds one optimal graph. To list several, every graph that it encounters is ranked
    and then excluded, and the score of the last graph in the ranking is SCIP's objective limit, so
    one branch-and-bound tree gives all of them.

    Parameters
    ----------
    part
        The nodes and their parent sets.
    lines
        Line of each node in a known graph.
    known
        Score of that graph.
    n_best
        Number of best graphs to list.
    slack
        None to find one optimal graph; otherwise list graphs that score at most this much less.
    """

    def __init__(
        self,
        part: Component,
        lines: list[int],
        known: float,
        *,
        n_best: int,
        slack: float | None,
    ) -> None:
        from pyscipopt import Model
        from pyscipopt.scip import PY_SCIP_PARAMSETTING

        self._part = part
        self._model = Model()
        model = self._model
        model.hideOutput()
        # The known graph is good and cuts are cheap, so SCIP's heuristics, conflict analysis and
        # restarts cost more than they gain.
        model.setHeuristics(PY_SCIP_PARAMSETTING.OFF)
        model.setParams(
            {
                "misc/catchctrlc": False,
                "timing/clocktype": 1,  # CPU time
                # SCIP does not check the cluster constraints for symmetries.
                "misc/usesymmetry": 0,
                "presolving/maxrestarts": 0,
                "conflict/enable": False,
                "separating/maxstallrounds": -1,
                "separating/maxstallroundsroot": -1,
                "separating/maxcuts": 10_000,
                "separating/maxcutsroot": 10_000,
                "separating/poolfreq": 1,
            }
        )
        model.setMaximize()
        self._seconds = 0.0
        self._known = known
        self._ranking = None if slack is None else Ranking(part, n_best, slack)
        self._finished = False
        self._dual = 0.0
        self._columns: list[Any] = []
        self._clusters = ClusterConstraints(part)
        self._handler: Any = None
        self._running = False
        self._lines, self._networks = lines, n_best

    def run(self, watch: Watch, say: Say) -> None:
        """Build the program, and run SCIP until the graphs are proven."""
        self._build(watch)
        self._start(watch)
        watch.run(self._optimise, say)

    def _build(self, watch: Watch) -> None:
        """Add a column per parent set, a row per node, and the cluster constraints."""
        from pyscipopt import quicksum

        model, part = self._model, self._part
        # Scores relative to the best of each node: smaller numbers lose fewer digits.
        relative = (part.scores - np.repeat(part.tops, np.diff(part.starts))).tolist()
        for first in range(0, len(relative), _CHUNK):
            self._columns += [
                model.addVar(vtype="B", obj=score) for score in relative[first : first + _CHUNK]
            ]
            watch.poll()
        for i in range(len(part)):
            model.addCons(quicksum(self._columns[part.span(i)]) == 1)
            if i % 50 == 0:
                watch.poll()
        top = float(part.tops.sum())
        self._handler = _handler(self._clusters, self._columns, self._ranking, top)
        model.includeConshdlr(
            self._handler,
            "clusters",
            "every set of nodes has a member without parents in the set",
            sepapriority=100,
            enfopriority=-10,
            chckpriority=-10,
            sepafreq=1,
            eagerfreq=-1,
            needscons=False,
        )

    def _start(self, watch: Watch) -> None:
        """Pass the known graph to SCIP, or the graphs around it to the ranking."""
        from pyscipopt.scip import PY_SCIP_PARAMSETTING

        model, start = self._model, self._places(self._lines)
        if self._ranking is not None:
            # Presolving may exclude graphs if another one is as good.
            model.setPresolve(PY_SCIP_PARAMSETTING.OFF)
            model.setParams({"misc/allowstrongdualreds": False, "misc/allowweakdualreds": False})
            around = graphs_around(self._part, start, self._networks, watch) if start else []
            for graph in around:
                self._ranking.add(graph)
            self._handler.tighten()
        elif start:
            solution = model.createSol()
            for first, place in zip(self._part.starts.tolist(), start, strict=False):
                model.setSolVal(solution, self._columns[first + place], 1.0)
            model.addSol(solution)

    def _places(self, lines: list[int]) -> tuple[int, ...]:
        """Return the positions of the known graph in the lists; empty if a node has none."""
        positions: list[int] = []
        for i, line in enumerate(lines):
            span = self._part.span(i)
            # A line may have been merged with one that differs only in nodes outside.
            same = np.flatnonzero(self._part.lines[span] == line)
            empty = np.flatnonzero(~self._part.sets[span].any(axis=1))
            positions += np.concatenate([same, empty])[:1].tolist()
        return tuple(positions) if len(positions) == len(lines) else ()

    def _optimise(self) -> bool:
        """Run SCIP for a while; return whether the graphs are proven."""
        self._seconds += _SLICE
        self._model.setParam("limits/time", self._seconds)
        self._running = True
        self._model.optimize()
        if self._handler.failure is not None:
            failure, self._handler.failure = self._handler.failure, None
            raise failure
        # Stored here, because SCIP does not report it after a failure.
        self._dual = min(0.0, float(self._model.getDualbound()))
        # If every ranked graph is excluded, the problem is infeasible in the end.
        self._finished = self._model.getStatus() in ("optimal", "infeasible")
        return self._finished

    @property
    def _bound(self) -> float:
        """Upper bound on the score of graphs that SCIP has not encountered."""
        return self._top + self._dual

    @property
    def _top(self) -> float:
        return float(self._part.tops.sum())

    @property
    def gap(self) -> float:
        if self._finished:
            return 0.0
        if self._ranking is None:
            return max(0.0, self._bound - max(self._known, self._incumbent_score()))
        best = max(self._known, self._ranking.best)
        gap = self._bound - best
        return gap if gap > 1e-9 * max(1.0, abs(best)) else 0.0

    def _incumbent_score(self) -> float:
        if not self._running or self._model.getNSols() == 0:
            return -np.inf
        return self._top + float(self._model.getPrimalbound())

    @property
    def counts(self) -> Mapping[str, int]:
        """The numbers of cluster cuts and of branch-and-bound nodes."""
        if not self._running:
            return {"cuts": 0, "branches": 0}
        return {"cuts": int(self._handler.added), "branches": int(self._model.getNTotalNodes())}

    def better_lines(self) -> Iterator[tuple[int, int]]:
        if self._ranking is not None:
            if self._ranking.best > self._known:
                yield from self._ranking.choices()[0][1].items()
            return
        if not self._running or self._model.getNSols() == 0:
            return
        solution: Any = self._model.getBestSol()
        values = np.array([solution[column] for column in self._columns])
        for i, v in enumerate(self._part.nodes):
            span = self._part.span(i)
            yield v, int(self._part.lines[span.start + int(np.argmax(values[span]))])

    def near_best(self) -> tuple[list[Choice], float]:
        if self._ranking is None:
            return [], self._bound
        floor = self._ranking.floor()
        return self._ranking.choices(), floor if self._finished else max(self._bound, floor)

    def describe(self) -> str:
        size = len(self._part)
        done = self.counts
        text = f"{done['cuts']} cuts, {done['branches']} branches of a component of {size} nodes"
        return text if self._ranking is None else f"{text}, {len(self._ranking)} graphs"


def _handler(  # noqa: C901 - SCIP needs one class
    clusters: ClusterConstraints, columns: list[Any], ranking: Ranking | None, top: float
) -> Any:
    """Create the constraint handler; a function, so that SCIP is imported only here."""
    from pyscipopt import Conshdlr
    from pyscipopt.scip import PY_SCIP_RESULT as RESULT

    transformed: list[Any] = [None] * len(columns)

    class Handler(Conshdlr):
        added = 0
        limit = -np.inf
        failure: BaseException | None = None

        def _values(self, solution: Any) -> Floats:
            get = self.model.getSolVal
            return np.array([get(solution, column) for column in columns])

        def _row(self, lines: Iterable[int], least: float | None, most: float | None) -> None:
            model = self.model
            row = model.createEmptyRowUnspec("cluster", lhs=least, rhs=most, local=False)
            model.cacheRowExtensions(row)
            for line in lines:
                if transformed[line] is None:
                    transformed[line] = model.getTransformedVar(columns[line])
                model.addVarToRow(row, transformed[line], 1.0)
            model.flushRowExtensions(row)
            model.addCut(row, forcecut=True)
            model.addPoolCut(row)
            model.releaseRow(row)

        def _cut(self, cluster: Integers) -> None:
            self._row(clusters.avoiding(cluster), 1.0, None)
            self.added += 1

        def _safely(self, action: Callable[[], bool], *, otherwise: bool) -> bool:
            # An exception cannot pass through SCIP: store it and stop.
            try:
                return action()
            except BaseException as failure:  # noqa: BLE001 - raised again by Program._optimise
                self.failure = failure
                self.model.interruptSolve()
                return otherwise

        def tighten(self) -> None:
            """Raise SCIP's objective limit to the lowest score that is still of interest."""
            assert ranking is not None
            limit = ranking.floor(MARGIN) - top
            if limit > self.limit:
                self.limit = limit
                self.model.setObjlimit(limit)

        def _ranked(self, values: Floats) -> tuple[int, ...]:
            """Rank a graph if several are requested, and return the lines to exclude."""
            if ranking is None:
                return ()
            chosen = clusters.choice(values)
            if chosen:
                ranking.add(clusters.places(chosen))
                self.tighten()
            return chosen

        def _refused(self, solution: Any) -> bool:
            values = self._values(solution)
            return bool(len(clusters.cycle(values)) or self._ranked(values))

        def _separate(self, values: Floats) -> bool:
            """Add cuts for the LP solution; return whether there were any."""
            found = clusters.violated(values, _CUTS_A_ROUND)
            for cluster in found:
                self._cut(cluster)
            return bool(found)

        def _enforce(self) -> bool:
            """Cut off the LP solution if it is not allowed; return whether it was."""
            values = self._values(None)
            cycle = clusters.cycle(values)
            if len(cycle):
                if not self._separate(values):
                    self._cut(cycle)
                return True
            chosen = self._ranked(values)
            if chosen:
                self._row(chosen, None, len(chosen) - 1.0)
            return bool(chosen)

        def conscheck(self, constraints: Any, solution: Any, *_: Any) -> dict[str, Any]:
            refused = self._safely(lambda: self._refused(solution), otherwise=True)
            return {"result": RESULT.INFEASIBLE if refused else RESULT.FEASIBLE}

        def consenfolp(self, *_: Any) -> dict[str, Any]:
            cut = self._safely(self._enforce, otherwise=True)
            return {"result": RESULT.SEPARATED if cut else RESULT.FEASIBLE}

        def consenfops(self, *_: Any) -> dict[str, Any]:
            refused = self._safely(lambda: self._refused(None), otherwise=True)
            return {"result": RESULT.INFEASIBLE if refused else RESULT.FEASIBLE}

        def conssepalp(self, *_: Any) -> dict[str, Any]:
            cut = self._safely(lambda: self._separate(self._values(None)), otherwise=False)
            return {"result": RESULT.SEPARATED if cut else RESULT.DIDNOTFIND}

        def conslock(self, constraint: Any, locktype: Any, up: int, down: int) -> None:
            # A parent set may be wanted in for one cluster and out for another.
            for column in columns:
                self.model.addVarLocksType(column, locktype, up + down, up + down)

    return Handler()


@final
class ClusterConstraints:
    """Cluster constraints of a component: finds those that a solution violates."""

    def __init__(self, part: Component) -> None:
        self.d = len(part)
        self._first = part.starts[:-1]
        self._sets = part.sets
        self._owner = np.repeat(np.arange(self.d), np.diff(part.starts))

    def violated(self, values: Floats, most: int) -> list[Integers]:
        """Return clusters whose sum is below one, the lowest first, as nodes."""
        used = np.flatnonzero(values > 1e-6)
        owner, sets = self._owner[used], np.ascontiguousarray(self._sets[used])
        line, parent = np.nonzero(unpack(sets, self.d))
        if not len(line):
            return []
        pairs = np.unique(np.stack([owner[line], parent], axis=1), axis=0)
        counts = np.bincount(owner, minlength=self.d)
        search = _native.ClusterSearch(
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            sets,
            values[used],
            first=np.ascontiguousarray(pairs[:, 0]),
            second=np.ascontiguousarray(pairs[:, 1]),
            most=10 * most,
            limit=_VIOLATED,
        )
        while not search.step():
            pass
        clusters, sums = search.found()
        best = np.argsort(sums, kind="stable")[:most]
        return [np.flatnonzero(one) for one in unpack(clusters[best], self.d)]

    def cycle(self, values: Floats) -> Integers:
        """Return the nodes that remain after removing nodes without parents repeatedly."""
        parents = [0] * self.d
        chosen = np.flatnonzero(values > 0.5)
        for v, mask in zip(self._owner[chosen].tolist(), masks_of(self._sets[chosen]), strict=True):
            parents[v] = mask
        left = (1 << self.d) - 1
        while free := [v for v in bits(left) if not parents[v] & left]:
            for v in free:
                left ^= 1 << v
        return np.array(list(bits(left)), np.int64)

    def choice(self, values: Floats) -> tuple[int, ...]:
        """Return the line of each node; empty if a node has none or several."""
        chosen = np.flatnonzero(values > 0.5)
        if not np.array_equal(self._owner[chosen], np.arange(self.d)):
            return ()
        return tuple(chosen.tolist())

    def places(self, chosen: tuple[int, ...]) -> tuple[int, ...]:
        """Return the position of each line in the list of its node."""
        return tuple((np.array(chosen) - self._first).tolist())

    def avoiding(self, cluster: Integers) -> list[int]:
        """Return the lines of a cluster's nodes that have no parents in the cluster."""
        inside = np.zeros(self.d, np.bool_)
        inside[cluster] = True
        lines = np.flatnonzero(inside[self._owner])
        found: list[int] = lines[
            ~(self._sets[lines] & pack_set(cluster.tolist(), self.d)).any(axis=1)
        ].tolist()
        return found
