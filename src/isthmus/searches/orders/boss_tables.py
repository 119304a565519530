"""Best order score search (BOSS) on a score table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import final

import numpy as np

from isthmus.kernels.table_orders import TableRun
from isthmus.searches.base import Run, SearchResult
from isthmus.searches.exact.table_stage import settle
from isthmus.searches.orders.starts import Starts
from isthmus.searches.orders.table_orders import OrderSearchState

_CHUNK = 32
_PER_LINE, _PER_PLACE = 1e-8, 3e-8
"""Estimated seconds of a sweep per line of the table, and per place that a variable can take."""


@final
class BossTableRun(Run[SearchResult]):
    """A run of BOSS that reads parents from a score table instead of grow-shrink trees."""

    def __init__(self, starts: int | None, orders: OrderSearchState) -> None:
        self._orders = orders
        self._starts = Starts(starts)
        self._start = 0
        self._sweeps = 0
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
        per_sweep = _PER_LINE * len(orders.table) + _PER_PLACE * len(orders.nodes) ** 2
        while self._starts.more(per_sweep * self._sweeps):
            self._start += 1
            self._sweep = 0
            run = yield from orders.begin(orders.draw())
            self._run, self._total = run, run.total
            gained = 1.0
            while gained > 0.0:
                orders.keep(run.order, self._total)
                gained = 0.0
                self._sweep += 1
                self._sweeps += 1
                queue = orders.rng.permutation(len(orders.nodes))
                for first in range(0, len(queue), _CHUNK):
                    run.sweep(queue[first : first + _CHUNK])
                    yield from settle(run)
                    gained += run.gained
                    self._total += run.gained
                    yield
            orders.keep(run.order, self._total)
            self._starts.record(self._total)
            self._run = None

    def best(self) -> SearchResult:
        if self._run is not None:
            self._orders.keep(self._run.order, self._run.total)
        effort = {"starts": self._start, "reached": self._starts.reached}
        return replace(self._orders.result(effort=effort), notes=self._starts.notes())

    def describe(self) -> tuple[str, float, float | None]:
        """Report the current start and sweep."""
        if self._start == 0:
            return self._orders.describe()
        text = f"start {self._start}, sweep {self._sweep}"
        return text, max(self._orders.score, self._total), None

    def conclusion(self) -> str:
        return self._starts.conclusion()
