"""The integer program of one component, and the cuts that keep cycles out; imports SCIP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.graphs.bits import bits
from isthmus.searches.exact import Component

_CUTS_A_ROUND = 40
_VIOLATED = 1.0 - 1e-4


@final
class Program:
    """One component as an integer program under way.

    Parameters
    ----------
    part
        The nodes and their parent sets.
    known
        Line of each node in a graph that is known.
    """

    def __init__(self, part: Component, known: list[int]) -> None:
        from pyscipopt import Model, quicksum
        from pyscipopt.scip import PY_SCIP_PARAMSETTING

        self._part = part
        self._model = Model()
        model = self._model
        model.hideOutput()
        # The graph that is known is good and cuts are cheap: what SCIP would do to find graphs, to
        # learn from conflicts and to begin again costs more than it brings.
        model.setHeuristics(PY_SCIP_PARAMSETTING.OFF)
        model.setParams(
            {
                "misc/catchctrlc": False,
                # SCIP does not ask the clusters whether parent sets are interchangeable.
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
        self._known = list(known)
        # Scores relative to the best of each node: small numbers are exact numbers.
        self._tops = [lines[0][1] for lines in part.lists]
        self._columns = [
            [model.addVar(vtype="B", obj=score - lines[0][1]) for _, score, _ in lines]
            for lines in part.lists
        ]
        for columns in self._columns:
            model.addCons(quicksum(columns) == 1)
        flat = [column for columns in self._columns for column in columns]
        self._handler = _handler(_Clusters(part), flat)
        model.includeConshdlr(
            self._handler,
            "clusters",
            "every set of nodes has one without parents in it",
            sepapriority=100,
            enfopriority=-10,
            chckpriority=-10,
            sepafreq=1,
            eagerfreq=-1,
            needscons=False,
        )
        if len(part.nodes) > 1:
            self._start()

    def _start(self) -> None:
        """Give SCIP the graph that is known."""
        solution = self._model.createSol()
        for v, lines in enumerate(self._part.lists):
            places = [i for i, line in enumerate(lines) if line[2] == self._known[v]]
            wanted = self._known_mask(v)
            if not places:
                # The line itself was merged with one that differs in nodes outside only.
                places = [i for i, line in enumerate(lines) if line[0] & ~wanted == 0][:1]
            if places:
                self._model.setSolVal(solution, self._columns[v][places[0]], 1.0)
        self._model.addSol(solution)

    def _known_mask(self, v: int) -> int:
        return next((m for m, _, i in self._part.lists[v] if i == self._known[v]), 0)

    def run(self, seconds: float) -> bool:
        """Work for some time; return whether the best graph is proven."""
        self._seconds += seconds
        self._model.setParam("limits/time", self._seconds)
        self._model.optimize()
        if self._handler.failure is not None:
            failure, self._handler.failure = self._handler.failure, None
            raise failure
        return bool(self._model.getStatus() == "optimal")

    @property
    def gap(self) -> float:
        """How much more than the graph at hand the best one can score."""
        if self._model.getStatus() == "optimal":
            return 0.0
        if self._model.getNSols() == 0:
            return float("inf")
        bound = min(0.0, float(self._model.getDualbound()))
        return max(0.0, bound - float(self._model.getPrimalbound()))

    @property
    def cuts(self) -> int:
        """Clusters added."""
        return int(self._handler.added)

    @property
    def nodes(self) -> int:
        """Nodes of the tree of branches."""
        return int(self._model.getNTotalNodes())

    def chosen(self) -> Iterator[tuple[int, int]]:
        """Nodes and lines of the best graph so far."""
        if self._model.getNSols() == 0:
            return
        solution: Any = self._model.getBestSol()
        for v, columns in enumerate(self._columns):
            values = [solution[column] for column in columns]
            yield self._part.nodes[v], self._part.lists[v][int(np.argmax(values))][2]

    def describe(self) -> str:
        """Say what is under way."""
        size = len(self._part.nodes)
        return f"{self.cuts} cuts, {self.nodes} branches of a component of {size} nodes"


@final
class _Clusters:
    """The parent sets of a component, and which clusters a choice of them violates."""

    def __init__(self, part: Component) -> None:
        self.d = len(part.nodes)
        words = max(1, -(-self.d // 64))
        self.masks = [mask for lines in part.lists for mask, _, _ in lines]
        sizes = [len(lines) for lines in part.lists]
        self.owner = np.repeat(np.arange(self.d), sizes)
        raw = b"".join(mask.to_bytes(8 * words, "little") for mask in self.masks)
        self._sets = np.frombuffer(raw, "<u8").reshape(-1, words).astype(np.uint64)

    def violated(self, values: NDArray[np.float64], most: int) -> list[int]:
        """Clusters whose sum is below one, the lowest first."""
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
        """Nodes that are left when nodes without parents are taken away again and again."""
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

    def avoiding(self, cluster: int) -> list[int]:
        """Lines of the nodes of a cluster without parents in it."""
        inside = [cluster >> int(v) & 1 for v in range(self.d)]
        return [
            line
            for line, mask in enumerate(self.masks)
            if inside[int(self.owner[line])] and not mask & cluster
        ]


def _handler(clusters: _Clusters, columns: list[Any]) -> Any:  # noqa: C901 - SCIP wants one class
    """Make the constraint handler; a function, so that SCIP is imported only here."""
    from pyscipopt import Conshdlr
    from pyscipopt.scip import PY_SCIP_RESULT as RESULT

    class Handler(Conshdlr):
        added = 0
        failure: BaseException | None = None

        def _values(self, solution: Any) -> NDArray[np.float64]:
            get = self.model.getSolVal
            return np.array([get(solution, column) for column in columns])

        def _cut(self, cluster: int) -> None:
            model = self.model
            row = model.createEmptyRowUnspec("cluster", lhs=1.0, rhs=None, local=False)
            model.cacheRowExtensions(row)
            for line in clusters.avoiding(cluster):
                model.addVarToRow(row, model.getTransformedVar(columns[line]), 1.0)
            model.flushRowExtensions(row)
            model.addCut(row, forcecut=True)
            model.addPoolCut(row)
            model.releaseRow(row)
            self.added += 1

        def _cyclic(self, solution: Any) -> int:
            # An exception cannot cross SCIP: keep it, and stop.
            try:
                return clusters.cycle(self._values(solution))
            except BaseException as failure:  # noqa: BLE001 - raised again by Program.run
                self.failure = failure
                self.model.interruptSolve()
                return 1

        def _separate(self) -> bool:
            """Add cuts for the solution of the LP; tell whether there were any."""
            try:
                found = clusters.violated(self._values(None), _CUTS_A_ROUND)
                for cluster in found:
                    self._cut(cluster)
            except BaseException as failure:  # noqa: BLE001 - raised again by Program.run
                self.failure = failure
                self.model.interruptSolve()
                return False
            return bool(found)

        def conscheck(self, constraints: Any, solution: Any, *_: Any) -> dict[str, Any]:
            return {"result": RESULT.INFEASIBLE if self._cyclic(solution) else RESULT.FEASIBLE}

        def consenfolp(self, *_: Any) -> dict[str, Any]:
            cycle = self._cyclic(None)
            if not cycle:
                return {"result": RESULT.FEASIBLE}
            if not self._separate():
                self._cut(cycle)
            return {"result": RESULT.SEPARATED}

        def consenfops(self, *_: Any) -> dict[str, Any]:
            return {"result": RESULT.INFEASIBLE if self._cyclic(None) else RESULT.FEASIBLE}

        def conssepalp(self, *_: Any) -> dict[str, Any]:
            return {"result": RESULT.SEPARATED if self._separate() else RESULT.DIDNOTFIND}

        def conslock(self, constraint: Any, locktype: Any, up: int, down: int) -> None:
            # A parent set may be wanted in for one cluster and out for another.
            for column in columns:
                self.model.addVarLocksType(column, locktype, up + down, up + down)

    return Handler()
