"""The integer program of one component, with cuts that exclude cycles; imports SCIP."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.graphs.bits import bits
from isthmus.searches.exact.components import Choice, Component, PartSearch
from isthmus.searches.exact.near_best import MARGIN, Ranking, graphs_around

_SLICE = 0.3
"""Seconds that SCIP runs between two reports of progress."""
_CUTS_A_ROUND = 40
_VIOLATED = 1.0 - 1e-4


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
    networks
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
        networks: int,
        slack: float | None,
    ) -> None:
        from pyscipopt import Model, quicksum
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
        self._ranking = None if slack is None else Ranking(part, networks, slack)
        self._finished = False
        self._dual = 0.0
        # Scores relative to the best of each node: smaller numbers lose fewer digits.
        self._tops = [listed[0][1] for listed in part.lists]
        self._columns = [
            [model.addVar(vtype="B", obj=score - listed[0][1]) for _, score, _ in listed]
            for listed in part.lists
        ]
        for columns in self._columns:
            model.addCons(quicksum(columns) == 1)
        flat = [column for columns in self._columns for column in columns]
        self._handler = _handler(_Clusters(part), flat, self._ranking, sum(self._tops))
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
        start = self._start(lines)
        if self._ranking is not None:
            # Presolving may exclude graphs if another one is as good.
            model.setPresolve(PY_SCIP_PARAMSETTING.OFF)
            model.setParams({"misc/allowstrongdualreds": False, "misc/allowweakdualreds": False})
            for graph in graphs_around(part, start, networks) if start else ():
                self._ranking.add(graph)
            self._handler.tighten()
        elif start:
            solution = model.createSol()
            for columns, place in zip(self._columns, start, strict=True):
                model.setSolVal(solution, columns[place], 1.0)
            model.addSol(solution)

    def _start(self, lines: list[int]) -> tuple[int, ...]:
        """Return the positions of the known graph in the lists; empty if a node has none."""
        positions: list[int] = []
        for listed, line in zip(self._part.lists, lines, strict=True):
            # A line may have been merged with one that differs only in nodes outside.
            places = [i for i, one in enumerate(listed) if one[2] == line]
            places += [i for i, one in enumerate(listed) if one[0] == 0]
            positions += places[:1]
        return tuple(positions) if len(positions) == len(lines) else ()

    def step(self) -> bool:
        """Run SCIP for a while; return whether the best graphs are proven."""
        self._seconds += _SLICE
        self._model.setParam("limits/time", self._seconds)
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
        return sum(self._tops) + self._dual

    @property
    def gap(self) -> float:
        """Upper bound on how much more than the current best graph the optimal one can score."""
        if self._finished:
            return 0.0
        if self._ranking is None:
            return max(0.0, self._bound - max(self._known, self._incumbent_score()))
        best = max(self._known, self._ranking.best)
        gap = self._bound - best
        return gap if gap > 1e-9 * max(1.0, abs(best)) else 0.0

    def _incumbent_score(self) -> float:
        if self._model.getNSols() == 0:
            return -np.inf
        return sum(self._tops) + float(self._model.getPrimalbound())

    @property
    def counts(self) -> Mapping[str, int]:
        """The numbers of cluster cuts and of branch-and-bound nodes."""
        return {"cuts": int(self._handler.added), "branches": int(self._model.getNTotalNodes())}

    def better_lines(self) -> Iterator[tuple[int, int]]:
        """Yield the nodes and lines of the best graph, if it improves on the known one."""
        if self._ranking is not None:
            if self._ranking.best > self._known:
                yield from self._ranking.choices()[0][1].items()
            return
        if self._model.getNSols() == 0:
            return
        solution: Any = self._model.getBestSol()
        for v, columns in enumerate(self._columns):
            values = [solution[column] for column in columns]
            yield self._part.nodes[v], self._part.lists[v][int(np.argmax(values))][2]

    def near_best(self) -> tuple[list[Choice], float]:
        """Return the best graphs so far, best first, and an upper bound on all others."""
        if self._ranking is None:
            return [], self._bound
        floor = self._ranking.floor()
        return self._ranking.choices(), floor if self._finished else max(self._bound, floor)

    def describe(self) -> str:
        """Report progress."""
        size = len(self._part.nodes)
        done = self.counts
        text = f"{done['cuts']} cuts, {done['branches']} branches of a component of {size} nodes"
        return text if self._ranking is None else f"{text}, {len(self._ranking)} graphs"


@final
class _Clusters:
    """Cluster constraints of a component: finds those that a solution violates."""

    def __init__(self, part: Component) -> None:
        self.d = len(part.nodes)
        words = max(1, -(-self.d // 64))
        self.masks = [mask for lines in part.lists for mask, _, _ in lines]
        sizes = [len(lines) for lines in part.lists]
        self.owner = np.repeat(np.arange(self.d), sizes)
        self._first = np.cumsum([0, *sizes[:-1]])
        raw = b"".join(mask.to_bytes(8 * words, "little") for mask in self.masks)
        self._sets = np.frombuffer(raw, "<u8").reshape(-1, words).astype(np.uint64)

    def violated(self, values: NDArray[np.float64], most: int) -> list[int]:
        """Return clusters whose sum is below one, the lowest first."""
        from isthmus.numerics.clusters import violated

        used = np.flatnonzero(values > 1e-6)
        counts = np.bincount(self.owner[used], minlength=self.d)
        pairs = {(int(self.owner[i]), p) for i in used.tolist() for p in bits(self.masks[i])}
        if not pairs:
            return []
        first, second = np.ascontiguousarray(np.array(sorted(pairs), np.int64).T)
        found, sums = violated(
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            np.ascontiguousarray(self._sets[used]),
            values[used],
            first,
            second,
            10 * most,
            _VIOLATED,
        )
        best = np.argsort(sums, kind="stable")[:most]
        return [int.from_bytes(found[i].astype("<u8").tobytes(), "little") for i in best]

    def cycle(self, values: NDArray[np.float64]) -> int:
        """Return the nodes that remain after removing nodes without parents repeatedly."""
        parents = [0] * self.d
        for line in np.flatnonzero(values > 0.5).tolist():
            parents[int(self.owner[line])] = self.masks[line]
        left = (1 << self.d) - 1
        while True:
            free = [v for v in bits(left) if not parents[v] & left]
            if not free:
                return left
            for v in free:
                left ^= 1 << v

    def choice(self, values: NDArray[np.float64]) -> tuple[int, ...]:
        """Return the line of each node; empty if a node has none or several."""
        chosen = np.flatnonzero(values > 0.5)
        if not np.array_equal(self.owner[chosen], np.arange(self.d)):
            return ()
        return tuple(chosen.tolist())

    def places(self, chosen: tuple[int, ...]) -> tuple[int, ...]:
        """Return the position of each line in the list of its node."""
        return tuple((np.array(chosen) - self._first).tolist())

    def avoiding(self, cluster: int) -> list[int]:
        """Return the lines of a cluster's nodes that have no parents in the cluster."""
        inside = [cluster >> int(v) & 1 for v in range(self.d)]
        return [
            line
            for line, mask in enumerate(self.masks)
            if inside[int(self.owner[line])] and not mask & cluster
        ]


def _handler(  # noqa: C901 - SCIP needs one class
    clusters: _Clusters, columns: list[Any], ranking: Ranking | None, top: float
) -> Any:
    """Create the constraint handler; a function, so that SCIP is imported only here."""
    from pyscipopt import Conshdlr
    from pyscipopt.scip import PY_SCIP_RESULT as RESULT

    class Handler(Conshdlr):
        added = 0
        limit = -np.inf
        failure: BaseException | None = None

        def _values(self, solution: Any) -> NDArray[np.float64]:
            get = self.model.getSolVal
            return np.array([get(solution, column) for column in columns])

        def _row(self, lines: Iterable[int], least: float | None, most: float | None) -> None:
            model = self.model
            row = model.createEmptyRowUnspec("cluster", lhs=least, rhs=most, local=False)
            model.cacheRowExtensions(row)
            for line in lines:
                model.addVarToRow(row, model.getTransformedVar(columns[line]), 1.0)
            model.flushRowExtensions(row)
            model.addCut(row, forcecut=True)
            model.addPoolCut(row)
            model.releaseRow(row)

        def _cut(self, cluster: int) -> None:
            self._row(clusters.avoiding(cluster), 1.0, None)
            self.added += 1

        def _safely(self, action: Callable[[], bool], *, otherwise: bool) -> bool:
            # An exception cannot pass through SCIP: store it and stop.
            try:
                return action()
            except BaseException as failure:  # noqa: BLE001 - raised again by Program.step
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

        def _ranked(self, values: NDArray[np.float64]) -> tuple[int, ...]:
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
            return bool(clusters.cycle(values) or self._ranked(values))

        def _separate(self, values: NDArray[np.float64]) -> bool:
            """Add cuts for the LP solution; return whether there were any."""
            found = clusters.violated(values, _CUTS_A_ROUND)
            for cluster in found:
                self._cut(cluster)
            return bool(found)

        def _enforce(self) -> bool:
            """Cut off the LP solution if it is not allowed; return whether it was."""
            values = self._values(None)
            cycle = clusters.cycle(values)
            if cycle:
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
