"""Base class of search algorithms, and what they return.

A search is a frozen dataclass with the options; its method ``search`` returns the best graph. Time
limits, progress and Ctrl-C are the business of `isthmus.watch.Watch`.
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar, final

import numpy as np

from isthmus.arrays import Integers
from isthmus.errors import SchemaError
from isthmus.graphs import BoundKnowledge
from isthmus.kernels import _native
from isthmus.objectives import (
    LOCAL_SCORES,
    PARENT_SETS,
    Capability,
    LocalScore,
    Objective,
    ScoreTable,
)
from isthmus.objectives.table import TableBuilder, unpack
from isthmus.results.details import ExactDetails, SearchDetails
from isthmus.watch import Watch

ObjectiveT_contra = TypeVar("ObjectiveT_contra", bound=Objective, contravariant=True)
Accepts: TypeAlias = tuple[Capability[Any], ...]


@dataclass(frozen=True)
class SearchResult:
    """The best graph of a search.

    Attributes
    ----------
    parents
        Parents of each node, by index.
    score
        Value of the objective.
    details
        Other results of the search: a record of `isthmus.results`, such as `OrderDetails`.
    gap
        Upper bound on how much better the optimal graph can be: 0 is a proof of optimality, None
        means that nothing is proven.
    converged
        Whether the result meets the conditions of a local optimum.
    notes
        What a user should know about the result, such as that it may depend on chance.
    identified
        Edges (from, to) whose directions the search has determined beyond the equivalence class.
    conclusion
        Why the search came to its end, in one sentence.
    """

    parents: tuple[tuple[int, ...], ...]
    score: float
    details: Any = field(default_factory=SearchDetails)
    gap: float | None = None
    converged: bool = True
    notes: tuple[str, ...] = ()
    identified: tuple[tuple[int, int], ...] = ()
    conclusion: str = ""


class Search(ABC, Generic[ObjectiveT_contra]):
    """Options of a search algorithm; implementations are frozen dataclasses.

    Attributes
    ----------
    accepts
        The capabilities of an objective that the search can work with; one of them is enough.
    """

    accepts: ClassVar[Accepts]

    @abstractmethod
    def search(
        self,
        objective: ObjectiveT_contra,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        watch: Watch,
    ) -> SearchResult:
        """Return the best graph found until the end, or until it is time to stop.

        Parameters
        ----------
        objective
            What to maximise; it has one of the capabilities that the search accepts.
        knowledge
            Required and forbidden edges.
        rng
            The only source of randomness.
        watch
            Says when to stop, and hears of progress.
        """


# --- Score tables: the first stage of exact searches ---------------------------------------------
#
# What searches on a score table share: the table, its index, a first graph, what is proven.

_SWEEPS = 50
_CLOSING = 0.1
"""Seconds for completing a table, and for a graph of it, when the user already waits."""


@final
class TableStage:
    """The first stage of a search: list the parent sets, or read a given table."""

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

    def listed(self, watch: Watch, score: float = -np.inf) -> ScoreTable:
        """List the parent sets; return the table. ``score`` is that of a graph known before."""
        if self.table is None:
            if self._builder is None:
                watch.poll("parent sets", score, 0.0)
                watch.complete(LOCAL_SCORES.require(self._objective).ceiling_work())
                self._builder = self._builder_of(bounded=True)
            builder = self._builder
            watch.run(
                builder.step,
                lambda: (f"parent sets: {builder.scored} scored", score, builder.done),
            )
            self.table = builder.table()
            watch.poll("reading the table", score)
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

    def so_far(self) -> ScoreTable:
        """Return the table, or one of the sets listed so far, soon."""
        if self.table is not None:
            return self.table
        # The bound of the score may not be known yet, and takes long.
        return (self._builder or self._builder_of(bounded=False)).so_far(_CLOSING)

    def fallback(self, rng: np.random.Generator) -> SearchResult:
        """Return a graph of the parent sets listed so far, soon."""
        table = self.so_far()
        closing = Watch(time_limit=_CLOSING)
        lines = TableLines(table, Watch())
        run = lines.begin(lines.draw(rng), Watch())
        with closing.until_stopped():
            climb(run, rng, _SWEEPS, closing)
        chosen, total = lines_of(table, run)
        return SearchResult(parents_of(table, chosen), total, ExactDetails(None, None, len(table)))


@final
class TableLines:
    """A score table with an index for searches over orders."""

    def __init__(self, table: ScoreTable, watch: Watch) -> None:
        self.table = table
        self.kernel = _native.ScoreLines(
            np.ascontiguousarray(table.starts, np.int64),
            np.ascontiguousarray(table.sets, np.uint64),
            np.ascontiguousarray(table.scores, np.float64),
        )
        try:
            watch.run(self.kernel.prepare)
        except ValueError as error:
            raise SchemaError(f"The score table is not valid: {error}.") from None
        self.needed = unpack(self.kernel.needed(), len(self.table.nodes))
        """``needed[v, p]``: whether p is in every parent set of v."""

    def begin(self, order: Integers, watch: Watch) -> _native.TableRun:
        """Return the best parents along an order, whose nodes can then move."""
        run = _native.TableRun(self.kernel, order)
        watch.run(run.step)
        return run

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


def climb(run: _native.TableRun, rng: np.random.Generator, max_sweeps: int, watch: Watch) -> float:
    """Move each node to its best position until no move improves the score; return the gain."""
    total = 0.0
    for _ in range(max_sweeps):
        run.sweep(rng.permutation(len(run.order)), 1)
        watch.run(run.step)
        total += run.gained
        if run.gained <= 0.0:
            break
    return total


def first_graph(
    lines: TableLines, rng: np.random.Generator, watch: Watch, starts: int = 5
) -> tuple[Integers, float]:
    """Climb over orders from random starts; return a line per node and the total score."""
    best_lines: Integers = np.full(len(lines.table.nodes), -1, np.int64)
    best = -np.inf
    for _ in range(starts):
        run = lines.begin(lines.draw(rng), watch)
        climb(run, rng, _SWEEPS, watch)
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


def best_graph(
    knowledge: BoundKnowledge,
    max_parents: int | None,
    table: ScoreTable | None = None,
    *,
    ordered: bool = False,
) -> str:
    """Return a phrase for the set of graphs among which this one is proven to be the best.

    Parameters
    ----------
    knowledge
        Background knowledge that the graphs agree with.
    max_parents
        Bound on the number of parents that the search was given, or None.
    table
        The parent sets that were searched, which may have bounds of their own.
    ordered
        Whether an order was given, which is part of `knowledge` then.
    """
    required = knowledge.required
    bounds = [max_parents]
    if table is not None:
        bounds.append(table.max_parents)
        required = required if table.required is None else required | table.required
    limits = [bound for bound in bounds if bound is not None]
    words = ["no graph"]
    if table is not None and not table.complete:
        words.append("of the listed parent sets")
    if limits:
        limit = min(limits)
        words.append(f"with at most {limit} {'parent' if limit == 1 else 'parents'} per node")
        if required.sum(axis=0).max(initial=0) > limit:
            words.append("(more only where more are required)")
    if ordered:
        words.append("that agrees with the order")
    elif required.any() or (knowledge.forbidden & ~np.eye(len(required), dtype=np.bool_)).any():
        words.append("that agrees with the knowledge")
    return " ".join([*words, "scores higher"])


# --- Objectives that several organisations compute together -------------------------------------


class JointObjective(Objective):
    """Base class of the objectives that a joint source offers itself.

    Nobody knows their values; the searches that accept them get a graph from the organisations.

    Attributes
    ----------
    score_text
        What a result says about its score.
    """

    score_text: ClassVar[str] = "no score is computed"

    @abstractmethod
    def default_search(self) -> Search[Any]:
        """Return the search to use if the user names none."""

    @abstractmethod
    def require(self, search: Any, knowledge: BoundKnowledge) -> None:
        """Raise an error unless the study is for this search and knowledge; nothing is sent."""
