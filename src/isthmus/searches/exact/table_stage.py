"""What searches on a score table begin with: the table, its index, and a first graph."""

from __future__ import annotations

import heapq
import time
from collections.abc import Sequence
from typing import final

import numpy as np

from isthmus.errors import SchemaError
from isthmus.graphs import BoundKnowledge
from isthmus.kernels import _native
from isthmus.objectives import LOCAL_SCORES, PARENT_SETS, LocalScore, ScoreTable, TableBuilder
from isthmus.objectives.table import unpack
from isthmus.results.details import ExactDetails
from isthmus.searches.base import SearchResult
from isthmus.types import Integers, Work, completed

_SWEEPS = 50
_CLOSING = 0.1
"""Seconds for completing a table, and for a graph of it, when the user already waits."""


@final
class TableStage:
    """The first stage of a run: list the parent sets, or read a given table."""

    def __init__(
        self,
        objective: LocalScore | ScoreTable,
        knowledge: BoundKnowledge,
        max_parents: int | None,
        slack: float = 0.0,
        quota: int | None = None,
    ) -> None:
        self._objective = objective
        self._knowledge = knowledge
        self._max_parents = max_parents
        self._slack = slack
        self._quota = quota
        self._builder: TableBuilder | None = None
        table = PARENT_SETS.of(objective)
        self.given = table is not None
        self.table = None if table is None else table.restrict(knowledge, max_parents)

    def restart(self, slack: float) -> None:
        """Restart with another slack."""
        if not self.given:
            self._slack, self._builder, self.table = slack, None, None

    def steps(self) -> Work[ScoreTable]:
        """List the parent sets; return the table."""
        while self.table is None:
            if self._builder is None:
                yield from LOCAL_SCORES.require(self._objective).ceiling_work()
                self._builder = self._builder_of(bounded=True)
            if self._builder.step():
                self.table = self._builder.table()
            yield
        return self.table

    def _builder_of(self, *, bounded: bool) -> TableBuilder:
        return TableBuilder(
            LOCAL_SCORES.require(self._objective),
            max_parents=self._max_parents,
            knowledge=self._knowledge,
            slack=self._slack,
            quota=self._quota,
            bounded=bounded,
            jobs=1,  # a search runs in one thread
        )

    def describe(self) -> tuple[str, float | None]:
        """Report progress."""
        if self.given:
            return "reading the table", None
        if self._builder is None:
            return "parent sets", 0.0
        return f"parent sets: {self._builder.scored} scored", self._builder.done

    def so_far(self) -> ScoreTable:
        """Return the table, or one of the sets listed so far, soon."""
        if self.table is not None:
            return self.table
        # The bound of the score may not be known yet, and takes long.
        return (self._builder or self._builder_of(bounded=False)).so_far(_CLOSING)

    def fallback(self, rng: np.random.Generator) -> SearchResult:
        """Return a graph of the parent sets listed so far, soon."""
        table = self.so_far()
        end = time.monotonic() + _CLOSING
        lines = TableLines(table)
        completed(lines.prepare())
        run = _native.TableRun(lines.kernel, lines.draw(rng))
        completed(settle(run))
        for _ in climb(run, rng, _SWEEPS):
            if time.monotonic() > end:
                break
        chosen, total = lines_of(table, run)
        return SearchResult(parents_of(table, chosen), total, ExactDetails(None, None, len(table)))


@final
class TableLines:
    """A score table with an index for searches over orders."""

    def __init__(self, table: ScoreTable) -> None:
        self.table = table
        self.kernel = _native.ScoreLines(
            np.ascontiguousarray(table.starts, np.int64),
            np.ascontiguousarray(table.sets, np.uint64),
            np.ascontiguousarray(table.scores, np.float64),
        )

    def prepare(self) -> Work[None]:
        """Build the index."""
        try:
            while not self.kernel.prepare():
                yield
        except ValueError as error:
            raise SchemaError(f"The score table is not valid: {error}.") from None
        self.needed = unpack(self.kernel.needed(), len(self.table.nodes))
        """``needed[v, p]``: whether p is in every parent set of v."""

    def draw(self, rng: np.random.Generator) -> Integers:
        """Draw an order in which nodes in every parent set of a node come before it."""
        d = len(self.table.nodes)
        shuffled = rng.permutation(d)
        if not self.needed.any():
            return shuffled
        place = np.empty(d, np.int64)
        place[shuffled] = np.arange(d)
        missing = self.needed.sum(axis=1)
        ready = place[missing == 0].tolist()
        heapq.heapify(ready)
        order: list[int] = []
        while ready:
            v = int(shuffled[heapq.heappop(ready)])
            order.append(v)
            for child in np.flatnonzero(self.needed[:, v]).tolist():
                missing[child] -= 1
                if missing[child] == 0:
                    heapq.heappush(ready, int(place[child]))
        if len(order) < d:
            names = [self.table.nodes[v] for v in shuffled.tolist() if missing[v] > 0][:5]
            raise SchemaError(
                f"The table allows no acyclic graph: every choice of parents of {names} closes a "
                "cycle."
            )
        return np.array(order, np.int64)


def settle(run: _native.TableRun) -> Work[None]:
    """Finish the current job of a run."""
    while not run.step():
        yield


def climb(run: _native.TableRun, rng: np.random.Generator, max_sweeps: int) -> Work[float]:
    """Move each node to its best position until no move improves the score; return the gain."""
    total = 0.0
    for _ in range(max_sweeps):
        run.sweep(rng.permutation(len(run.order)), 1)
        yield from settle(run)
        total += run.gained
        if run.gained <= 0.0:
            break
    return total


def first_graph(
    lines: TableLines, rng: np.random.Generator, starts: int = 5
) -> Work[tuple[Integers, float]]:
    """Climb over orders from random starts; return a line per node and the total score."""
    best_lines: Integers = np.full(len(lines.table.nodes), -1, np.int64)
    best = -np.inf
    for _ in range(starts):
        run = _native.TableRun(lines.kernel, lines.draw(rng))
        yield from settle(run)
        yield from climb(run, rng, _SWEEPS)
        chosen, total = lines_of(lines.table, run)
        if total > best:
            best_lines, best = chosen, total
    return best_lines, best


def lines_of(table: ScoreTable, run: _native.TableRun) -> tuple[Integers, float]:
    """Return the line of each node in a run, and their total: -inf if a node has no line."""
    chosen = run.lines
    fits = bool((chosen < table.starts[1:]).all())
    return chosen, float(table.scores[chosen].sum()) if fits else -np.inf


def parents_of(table: ScoreTable, lines: Sequence[int] | Integers) -> tuple[tuple[int, ...], ...]:
    """Return the parents of each node from the lines of the table."""
    return tuple(table.members(int(line)) for line in lines)
