"""Acyclic selection with windows: longer moves, and graphs that an order does not forbid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.graphs import BoundKnowledge
from isthmus.objectives import LOCAL_SCORES, PARENT_SETS, LocalScore, ScoreTable
from isthmus.options import require_integer
from isthmus.searches.base import Accepts, Run, Search, SearchResult
from isthmus.searches.orders.table_orders import OrderSearchState
from isthmus.types import Integers

_CHUNK = 32
"""Windows moved in one step."""
_REFINED = 8
"""Nodes for which better parents are looked for in one step."""
_SAME = 1e-7


@final
@dataclass(frozen=True)
class ASOBS(Search[LocalScore]):
    """Search over orders by windows and acyclic selection (Scanagatta and others 2015, 2017).

    A window of neighbours is put at its best place, first of one node, then of more. Where no
    window gains, every node takes, the last one first, its best parents that close no cycle,
    also from behind it; an order of that graph is at least as good, and the search goes on from
    there. Where that does not gain either the best order is stirred, which the papers do not do:
    they start anew. Nor do they look for sets that a table lacks: where the table is made here and
    is not complete, better parents along the best order are looked for by single changes.

    Parameters
    ----------
    starts
        Random orders to start from. For as long as there is time: a large number, and a time limit.
    window
        Nodes in the largest window.
    kicks
        How often in a row the best order of a start is stirred without a gain before the next
        start; 0 for the papers' way.
    max_parents
        Upper bound on the number of parents of a node; None for no bound.
    sets
        How many parent sets of a node are scored at most when a score is given instead of a score
        table; None for all that can be part of a best graph.
    """

    starts: int = 5
    window: int = 3
    kicks: int = 50
    max_parents: int | None = None
    sets: int | None = 20_000
    accepts: ClassVar[Accepts] = (LOCAL_SCORES, PARENT_SETS)

    def __post_init__(self) -> None:
        require_integer(self, "starts", least=1)
        require_integer(self, "window", least=1)
        require_integer(self, "kicks", least=0)
        require_integer(self, "max_parents", least=0, optional=True)
        require_integer(self, "sets", least=1, optional=True)

    def begin(
        self,
        objective: LocalScore | ScoreTable,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
    ) -> Run[SearchResult]:
        """Start a run."""
        return _ASOBSRun(
            self, OrderSearchState(objective, knowledge, rng, self.max_parents, self.sets)
        )


@final
class _ASOBSRun(Run[SearchResult]):
    def __init__(self, options: ASOBS, orders: OrderSearchState) -> None:
        from isthmus.numerics import order_moves

        self._kernels = order_moves
        self._options = options
        self._orders = orders
        self._window = min(options.window, max(1, len(orders.nodes) - 1))
        self._start = 0
        self._climbs = 0
        self._failed = 0
        self._local: tuple[Integers, float] | None = None
        self._running = False
        self._refining: Iterator[bool] | None = None
        self._queue: Integers = np.empty(0, np.int64)

    def step(self) -> bool:
        """List parent sets, or move some windows."""
        if not self._orders.prepare():
            return False
        if self._refining is not None:
            return self._refine(self._refining)
        d = len(self._orders.nodes)
        if not self._running:
            self._begin()
            return False
        if self._next >= d:
            if self._gained > 0.0:
                self._sweep(1)
            elif self._size < self._window:
                self._sweep(self._size + 1)
            elif not self._select():
                self._climbs += 1
                if self._orders.can_refine and self._total > self._orders.score + _SAME:
                    self._orders.keep(self._state.order, self._total)
                    self._refining = self._orders.refine(self._state.order)
                    return False
                return self._finish_climb()
            return False
        chunk = self._queue[self._next : self._next + _CHUNK]
        gain = float(self._kernels.move_windows(self._orders.lines, self._state, chunk, self._size))
        self._gained += gain
        self._total += gain
        self._next += _CHUNK
        return False

    def _begin(self) -> None:
        """Take a random order, or stir the best one of this start."""
        if self._local is None:
            self._start += 1
            order = self._orders.draw()
        else:
            order = self._stirred(self._local[0])
        self._state, self._total = self._orders.begin(order)
        self._select()
        self._running = True
        self._sweep(1)

    def _stirred(self, order: Integers) -> Integers:
        """Put some nodes near each other in the order at places near each other."""
        rng, d = self._orders.rng, len(order)
        found = order.copy()
        length = min(d, int(rng.integers(3, 3 + max(2, min(20, d // 4)))))
        begin = int(rng.integers(0, d - length + 1))
        found[begin : begin + length] = rng.permutation(found[begin : begin + length])
        return found

    def _sweep(self, size: int) -> None:
        self._size = size
        self._queue = self._orders.rng.permutation(len(self._orders.nodes))
        self._next, self._gained = 0, 0.0

    def _select(self) -> bool:
        """Let nodes choose from behind too; return whether that gained."""
        lines = self._orders.lines
        before = self._total
        order = self._state.order.copy()
        if not self._kernels.select_acyclic(lines, self._state):
            return False
        total = float(self._kernels.settle(lines, self._state, 0, len(order)))
        if total > before + _SAME:
            self._total = total
            if self._running:
                self._sweep(1)
            return True
        self._state, self._total = self._orders.begin(order)
        return False

    def _refine(self, refining: Iterator[bool]) -> bool:
        """Look for better parents of some nodes; climb on if there were any."""
        for _ in range(_REFINED):
            better = next(refining, None)
            if better is None:
                self._refining = None
                return self._finish_climb()
            if better:
                self._refining = None
                self._state, self._total = self._orders.begin(self._state.order)
                self._sweep(1)
                return False
        return False

    def _finish_climb(self) -> bool:
        self._running = False
        self._orders.keep(self._state.order, self._total)
        if self._local is None or self._total > self._local[1] + _SAME:
            self._local = self._state.order.copy(), self._total
            self._failed = 0
        else:
            if self._total > self._local[1] - _SAME:
                # As good, but elsewhere: a plateau is walked, not only looked at.
                self._local = self._state.order.copy(), self._total
            self._failed += 1
        if self._failed >= self._options.kicks:
            self._local, self._failed = None, 0
            return self._start == self._options.starts
        return False

    def best(self) -> SearchResult:
        """Return the graph of the best order so far."""
        if self._running:
            self._orders.keep(self._state.order, self._total)
        return self._orders.result(effort={"starts": self._start, "climbs": self._climbs})

    def describe(self) -> tuple[str, float, float | None]:
        """Say which start this is."""
        if self._start == 0:
            return self._orders.describe()
        text = f"start {self._start} of {self._options.starts}, {self._climbs} local optima"
        return text, self._orders.score, None

    def conclusion(self) -> str:
        """Say what the end means."""
        return "no window can be moved to a better place, nor after the order was stirred."
