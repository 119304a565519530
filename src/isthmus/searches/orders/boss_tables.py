"""Best order score search (BOSS) on a score table."""

from __future__ import annotations

from typing import final

import numpy as np

from isthmus.searches.base import Run, SearchResult
from isthmus.searches.orders.table_orders import OrderSearchState
from isthmus.types import Integers

_CHUNK = 32


@final
class BossTableRun(Run[SearchResult]):
    """A run of BOSS that reads parents from a score table instead of grow-shrink trees."""

    def __init__(self, starts: int, orders: OrderSearchState) -> None:
        from isthmus.numerics import order_moves

        self._kernels = order_moves
        self._orders = orders
        self._starts = starts
        self._start = 0
        self._sweep = 0
        self._running = False
        self._queue: Integers = np.empty(0, np.int64)
        self._next = 0
        self._gained = 0.0

    def step(self) -> bool:
        """Read the table, or move some variables."""
        if not self._orders.prepare():
            return False
        d = len(self._orders.nodes)
        if not self._running:
            self._start += 1
            self._sweep = 0
            self._state, self._total = self._orders.begin(self._orders.draw())
            self._running = True
            self._next, self._gained = d, 1.0
        if self._next >= d:
            self._orders.keep(self._state.order, self._total)
            if self._gained <= 0.0:
                self._running = False
                return self._start == self._starts
            self._queue = self._orders.rng.permutation(d)
            self._next, self._gained = 0, 0.0
            self._sweep += 1
        chunk = self._queue[self._next : self._next + _CHUNK]
        gain = float(self._kernels.move_windows(self._orders.lines, self._state, chunk, 1))
        self._gained += gain
        self._total += gain
        self._next += _CHUNK
        return False

    def best(self) -> SearchResult:
        """Return the graph of the best order so far."""
        if self._running:
            self._orders.keep(self._state.order, self._total)
        return self._orders.result(effort={"starts": self._start})

    def describe(self) -> tuple[str, float, float | None]:
        """Report the current start and sweep."""
        if self._start == 0:
            return self._orders.describe()
        text = f"start {self._start} of {self._starts}, sweep {self._sweep}"
        return text, max(self._orders.score, self._total), None

    def conclusion(self) -> str:
        """Explain why the search stopped."""
        return "no move of a variable in the order improves the score."
