"""Best order score search (BOSS) on a score table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

import numpy as np

from isthmus.kernels.table_orders import TableRun
from isthmus.searches.base import Run, SearchResult
from isthmus.searches.exact.table_stage import settle
from isthmus.searches.orders.table_orders import OrderSearchState

_CHUNK = 32


@final
class BossTableRun(Run[SearchResult]):
    """A run of BOSS that reads parents from a score table instead of grow-shrink trees."""

    def __init__(self, starts: int, orders: OrderSearchState) -> None:
        self._orders = orders
        self._starts = starts
        self._start = 0
        self._sweep = 0
        self._run: TableRun | None = None
        self._total = -np.inf
        self._work = self._steps()

    def step(self) -> bool:
        """Read the table, or move some variables."""
        return next(self._work, True) is not None

    def _steps(self) -> Iterator[None]:
        orders = self._orders
        yield from orders.prepare()
        while self._start < self._starts:
            self._start += 1
            self._sweep = 0
            run = yield from orders.begin(orders.draw())
            self._run, self._total = run, run.total
            gained = 1.0
            while gained > 0.0:
                orders.keep(run.order, self._total)
                gained = 0.0
                self._sweep += 1
                queue = orders.rng.permutation(len(orders.nodes))
                for first in range(0, len(queue), _CHUNK):
                    run.sweep(queue[first : first + _CHUNK])
                    yield from settle(run)
                    gained += run.gained
                    self._total += run.gained
                    yield
            orders.keep(run.order, self._total)
            self._run = None

    def best(self) -> SearchResult:
        """Return the graph of the best order so far."""
        if self._run is not None:
            self._orders.keep(self._run.order, self._run.total)
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
