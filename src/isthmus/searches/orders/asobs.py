"""Acyclic selection ordering-based search (ASOBS) with moves of windows."""

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
"""Nodes for which one step looks for better parents."""
_SAME = 1e-7
"""Scores that differ by less are equal."""


@final
@dataclass(frozen=True)
class ASOBS(Search[LocalScore]):
    """Acyclic selection ordering-based search (Scanagatta et al. 2015, 2017).

    A window of neighbouring nodes moves to its best position in the order, first windows of one
    node, then larger ones. When no window improves the score, each node, from the last to the
    first, takes its best parents that close no cycle, including later nodes. The search continues
    from an order of that graph, which is at least as good.

    There are two differences from the papers. At a local optimum, the best order is perturbed
    before the search restarts from a random one. If the search lists the parent sets itself and the
    table is not complete, it looks for better parents along the best order by single changes.

    Parameters
    ----------
    starts
        Number of random orders to start from. To search until a time limit, set a large number.
    window
        Number of nodes in the largest window.
    kicks
        Number of perturbations in a row without improvement before the next start; 0 restarts
        at each local optimum, as in the papers.
    max_parents
        Maximum number of parents of a node; None for no limit.
    sets
        Maximum number of parent sets per node to score if the search is given a score instead of
        a score table; None for all that can be part of an optimal graph.
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
        """Start from a random order, or from a perturbation of the best one of this start."""
        if self._local is None:
            self._start += 1
            order = self._orders.draw()
        else:
            order = self._perturbed(self._local[0])
        self._state, self._total = self._orders.begin(order)
        self._select()
        self._running = True
        self._sweep(1)

    def _perturbed(self, order: Integers) -> Integers:
        """Shuffle a short section of the order."""
        rng, d = self._orders.rng, len(order)
        perturbed = order.copy()
        length = min(d, int(rng.integers(3, 3 + max(2, min(20, d // 4)))))
        begin = int(rng.integers(0, d - length + 1))
        perturbed[begin : begin + length] = rng.permutation(perturbed[begin : begin + length])
        return perturbed

    def _sweep(self, size: int) -> None:
        self._size = size
        self._queue = self._orders.rng.permutation(len(self._orders.nodes))
        self._next, self._gained = 0, 0.0

    def _select(self) -> bool:
        """Let nodes also choose later nodes as parents; return whether the score improved."""
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
        """Look for better parents of some nodes; resume the moves if there are any."""
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
                # Equal score at another order: move along the plateau.
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
        """Report the current start."""
        if self._start == 0:
            return self._orders.describe()
        text = f"start {self._start} of {self._options.starts}, {self._climbs} local optima"
        return text, self._orders.score, None

    def conclusion(self) -> str:
        """Explain why the search stopped."""
        return "no move of a window improves the score, even after perturbing the order."
