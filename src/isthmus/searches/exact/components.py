"""Parts shared by exact searches: the score table, its decomposition, and an initial graph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import SchemaError
from isthmus.graphs import BoundKnowledge
from isthmus.objectives import LOCAL_SCORES, PARENT_SETS, LocalScore, ScoreTable, TableBuilder
from isthmus.objectives.table import unpack
from isthmus.results.details import ExactDetails
from isthmus.searches.base import SearchResult

if TYPE_CHECKING:
    from isthmus.numerics.order_moves import Lines, Order

Line = tuple[int, float, int]
"""A parent set as a bit mask, its score, and its line in the table."""

Choice = tuple[float, dict[int, int]]
"""The score of a graph, and for each node the line of its parent set in the table."""

_SWEEPS = 50


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
        self._quota = quota
        self._builder: TableBuilder | None = None
        self.table: ScoreTable | None = None
        self.restart(slack)

    def restart(self, slack: float) -> None:
        """Restart with another slack."""
        table = PARENT_SETS.of(self._objective)
        if table is not None:
            self.table = table.restrict(self._knowledge, self._max_parents)
            return
        self.table = None
        self._builder = TableBuilder(
            LOCAL_SCORES.require(self._objective),
            max_parents=self._max_parents,
            knowledge=self._knowledge,
            slack=slack,
            quota=self._quota,
        )

    @property
    def given(self) -> bool:
        """Whether the table was given instead of listed."""
        return self._builder is None

    def step(self) -> bool:
        """Do one step; return whether the table is ready."""
        if self.table is None and self._builder is not None and self._builder.step():
            self.table = self._builder.table()
        return self.table is not None

    def describe(self) -> tuple[str, float | None]:
        """Report progress."""
        if self._builder is None:
            return "reading the table", None
        return f"parent sets: {self._builder.scored} scored", self._builder.done

    def fallback(self, rng: np.random.Generator) -> SearchResult:
        """Return a graph of the parent sets listed so far."""
        table = self.table
        if table is None:
            assert self._builder is not None
            table = self._builder.table()
        # The caller waits for a result, so one start has to suffice.
        lines, total = first_graph(table, rng, 1)
        details = ExactDetails(None, None, len(table))
        return SearchResult(parents_of(table, lines), total, details)


@final
@dataclass(frozen=True, eq=False)
class Component:
    """Nodes that can be solved independently, with their parent sets among themselves.

    ``nodes`` are indices of the table; bit masks refer to positions in ``nodes``.
    """

    nodes: tuple[int, ...]
    lists: tuple[tuple[Line, ...], ...]


class PartSearch(ABC):
    """A running search for the best graphs of one component."""

    @abstractmethod
    def step(self) -> bool:
        """Do some work; return whether the search is done."""

    @property
    @abstractmethod
    def gap(self) -> float:
        """Upper bound on how much more than the current best graph the optimal one can score."""

    @property
    @abstractmethod
    def counts(self) -> Mapping[str, int]:
        """Counts of the work so far, which can be added over components."""

    @abstractmethod
    def better_lines(self) -> Iterator[tuple[int, int]]:
        """Yield the nodes and lines of the best graph, if it improves on the known one."""

    @abstractmethod
    def near_best(self) -> tuple[list[Choice], float]:
        """Return the best graphs so far, best first, and an upper bound on all others."""

    @abstractmethod
    def describe(self) -> str:
        """Report progress."""


def first_graph(
    table: ScoreTable, rng: np.random.Generator, starts: int = 5
) -> tuple[NDArray[np.int64], float]:
    """Climb over orders from random starts; return a line per node and the total score."""
    from isthmus.numerics import order_moves

    d = len(table.nodes)
    lines = order_moves.new_lines(table.starts, table.sets, table.scores)
    best_lines, best = np.full(d, -1, np.int64), -np.inf
    for _ in range(starts):
        state = order_moves.new_order(lines, possible_order(table, rng))
        climb(lines, state, rng, _SWEEPS)
        fits = bool((state.lines < table.starts[1:]).all())
        total = float(table.scores[state.lines].sum()) if fits else -np.inf
        if total > best:
            best_lines, best = state.lines, total
    return best_lines, best


def climb(lines: Lines, state: Order, rng: np.random.Generator, max_sweeps: int) -> float:
    """Move each node to its best position until no move improves the score; return the gain."""
    from isthmus.numerics.order_moves import move_windows

    total = 0.0
    for _ in range(max_sweeps):
        gain = float(move_windows(lines, state, rng.permutation(len(state.order)), 1))
        total += gain
        if gain <= 0.0:
            break
    return total


def possible_order(table: ScoreTable, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw an order in which nodes in every parent set of a node come before it."""
    d = len(table.nodes)
    needed = [
        set(np.flatnonzero(unpack(np.bitwise_and.reduce(table.sets[table.lines(v)]), d)).tolist())
        for v in range(d)
    ]
    shuffled = rng.permutation(d)
    if not any(needed):
        return shuffled
    placed: list[int] = []
    waiting = shuffled.tolist()
    while waiting:
        ready = next((v for v in waiting if needed[v] <= set(placed)), None)
        if ready is None:
            names = [table.nodes[v] for v in waiting[:5]]
            raise SchemaError(
                f"The table allows no acyclic graph: every choice of parents of {names} closes a "
                "cycle."
            )
        placed.append(ready)
        waiting.remove(ready)
    return np.array(placed, np.int64)


def parents_of(
    table: ScoreTable, lines: Sequence[int] | NDArray[np.int64]
) -> tuple[tuple[int, ...], ...]:
    """Return the parents of each node from the lines of the table."""
    return tuple(table.members(int(line)) for line in lines)


def decompose(table: ScoreTable, slack: float = 0.0) -> list[Component]:
    """Split the nodes into strongly connected components of the graph of possible parents.

    Fan, Malone and Yuan 2014. Parents outside a component can precede it in every relevant order,
    so they are always available. Sets that differ only in such parents are merged, which can split
    the component further.
    """
    lists: dict[int, list[Line]] = {}
    for v in range(len(table.nodes)):
        span = table.lines(v)
        lists[v] = [
            (int.from_bytes(table.sets[i].astype("<u8").tobytes(), "little"), s, i)
            for i, s in zip(range(span.start, span.stop), table.scores[span].tolist(), strict=True)
        ]
    components: list[Component] = []
    waiting = [tuple(range(len(table.nodes)))]
    while waiting:
        nodes = waiting.pop()
        parts = _strong_parts(nodes, lists)
        if len(parts) == 1 and len(nodes) > 1:
            components.append(_component(parts[0], lists))
            continue
        for part in parts:
            inside = sum(1 << v for v in part)
            for v in part:
                lists[v] = _useful([(m & inside, s, i) for m, s, i in lists[v]], slack)
            if len(part) == 1:
                components.append(_component(part, lists))
            else:
                waiting.append(part)
    return components


def _component(nodes: tuple[int, ...], lists: dict[int, list[Line]]) -> Component:
    place = {v: i for i, v in enumerate(nodes)}
    return Component(
        nodes,
        tuple(tuple((_moved(m, place), s, i) for m, s, i in lists[v]) for v in nodes),
    )


def _moved(mask: int, place: dict[int, int]) -> int:
    moved = 0
    while mask:
        low = mask & -mask
        moved |= 1 << place[low.bit_length() - 1]
        mask ^= low
    return moved


def _useful(lines: list[Line], slack: float) -> list[Line]:
    """Drop sets that score less than one of their subsets by more than the slack."""
    kept: list[Line] = []
    best: dict[int, float] = {}
    for mask, score, line in lines:
        if slack == 0.0 and mask in best:
            continue
        if any(m & ~mask == 0 and score <= s - slack for m, s in best.items() if m != mask):
            continue
        best.setdefault(mask, score)
        if slack > 0.0 and score < best[mask] - slack:
            continue
        kept.append((mask, score, line))
    return kept


def _strong_parts(nodes: tuple[int, ...], lists: dict[int, list[Line]]) -> list[tuple[int, ...]]:
    """Return the strongly connected components of the graph of possible parents."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    place = {v: i for i, v in enumerate(nodes)}
    rows, columns = [], []
    for v in nodes:
        union = 0
        for mask, _, _ in lists[v]:
            union |= mask
        for p in nodes:
            if union >> p & 1:
                rows.append(place[p])
                columns.append(place[v])
    graph = coo_array((np.ones(len(rows)), (rows, columns)), shape=(len(nodes), len(nodes)))
    count, labels = connected_components(graph, directed=True, connection="strong")
    return [tuple(v for v in nodes if labels[place[v]] == c) for c in range(count)]
