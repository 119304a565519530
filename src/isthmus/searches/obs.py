"""Ordering-based search: swaps of neighbours in the order, with a tabu list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.errors import MismatchError
from isthmus.graphs import BoundKnowledge
from isthmus.objectives import LocalScore, ScoreTable
from isthmus.searches.base import Found, Run, Search
from isthmus.searches.obs_tables import TableOrders

_QUOTA = 200


@final
@dataclass(frozen=True)
class OBS(Search[LocalScore]):
    """Search over orders by swaps of neighbours (Teyssier and Koller 2005).

    The best swap is made in each step, though it may lose; two nodes that changed places stay so
    for a while. After some steps without a better order another random one is taken. It is the
    yardstick of the others: :class:`ASOBS` and :class:`Boss` move nodes over longer ways.

    Parameters
    ----------
    starts
        Random orders to start from. For as long as there is time: a large number, and a time limit.
    tabu
        For how many steps two nodes that changed places are not changed back.
    patience
        Steps without a better order before the next start; None for the number of nodes, 0 to stop
        where no swap gains.
    max_parents
        Upper bound on the number of parents of a node; None for no bound.
    sets
        How many parent sets of a node are scored at most when a score is given instead of a score
        table; None for all that can be part of a best graph.
    """

    starts: int = 20
    tabu: int = 10
    patience: int | None = None
    max_parents: int | None = None
    sets: int | None = 20_000
    takes: ClassVar[type[object]] = LocalScore

    def __post_init__(self) -> None:
        if self.starts < 1 or self.tabu < 0 or (self.patience is not None and self.patience < 0):
            raise MismatchError(
                f"OBS was given starts={self.starts}, tabu={self.tabu} and "
                f"patience={self.patience}; starts must be 1 or more, the others 0 or more."
            )

    def begin(
        self,
        objective: LocalScore | ScoreTable,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
    ) -> Run:
        """Start a run."""
        orders = TableOrders(
            objective, knowledge, rng, max_parents=self.max_parents, sets=self.sets
        )
        return _OBSRun(self, orders)


@final
class _OBSRun(Run):
    def __init__(self, options: OBS, orders: TableOrders) -> None:
        from isthmus.numerics import order_moves

        d = len(orders.nodes)
        self._kernels = order_moves
        self._options = options
        self._orders = orders
        self._patience = d if options.patience is None else options.patience
        self._start = 0
        self._moves = 0
        self._running = False

    def step(self) -> bool:
        """List parent sets, or make some hundred swaps."""
        if not self._orders.prepare():
            return False
        if not self._running:
            self._begin()
        finished = self._kernels.swap_moves(
            self._orders.lines,
            self._state,
            self._gains,
            self._tabu,
            self._options.tabu,
            self._best,
            self._counters,
            self._totals,
            self._patience,
            _QUOTA,
        )
        self._orders.keep(self._best, float(self._totals[1]))
        if finished:
            self._moves += int(self._counters[0])
            self._running = False
        return bool(finished) and self._start == self._options.starts

    def _begin(self) -> None:
        d = len(self._orders.nodes)
        self._start += 1
        self._state, total = self._orders.begin(self._orders.draw())
        self._best = self._state.order.copy()
        self._totals = np.array([total, total])
        self._tabu = np.zeros((d, d), np.int64)
        self._counters = np.zeros(2, np.int64)
        self._gains = np.empty(max(0, d - 1))
        self._kernels.swap_gains(self._orders.lines, self._state, self._gains)
        self._running = True

    def best(self) -> Found:
        """Return the graph of the best order so far."""
        return self._orders.found({"starts": self._start, "moves": self._moves})

    def describe(self) -> tuple[str, float, float | None]:
        """Say which start this is."""
        if self._start == 0:
            return self._orders.describe()
        return f"start {self._start} of {self._options.starts}", self._orders.score, None

    def conclusion(self) -> str:
        """Say what the end means."""
        return f"{self._patience} swaps in a row brought no better order, from the last start too."
