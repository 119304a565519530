"""Ordering-based search: swaps of neighbours in the order, with a tabu list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.graphs import BoundKnowledge
from isthmus.objectives import LOCAL_SCORES, PARENT_SETS, LocalScore, ScoreTable
from isthmus.options import require_integer
from isthmus.searches.base import Accepts, Run, Search, SearchResult
from isthmus.searches.orders.table_orders import OrderSearchState, Swaps

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
    accepts: ClassVar[Accepts] = (LOCAL_SCORES, PARENT_SETS)

    def __post_init__(self) -> None:
        require_integer(self, "starts", least=1)
        require_integer(self, "tabu", least=0)
        require_integer(self, "patience", least=0, optional=True)
        require_integer(self, "max_parents", least=0, optional=True)
        require_integer(self, "sets", least=1, optional=True)

    def begin(
        self,
        objective: LocalScore | ScoreTable,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
    ) -> Run[SearchResult]:
        """Start a run."""
        return _OBSRun(
            self, OrderSearchState(objective, knowledge, rng, self.max_parents, self.sets)
        )


@final
class _OBSRun(Run[SearchResult]):
    def __init__(self, options: OBS, orders: OrderSearchState) -> None:
        self._options = options
        self._orders = orders
        self._patience = len(orders.nodes) if options.patience is None else options.patience
        self._start = 0
        self._moves = 0
        self._swaps: Swaps | None = None

    def step(self) -> bool:
        """List parent sets, or make some hundred swaps."""
        if not self._orders.prepare():
            return False
        if self._swaps is None:
            self._start += 1
            self._swaps = Swaps(self._orders, self._options.tabu, self._patience)
        ended = self._swaps.advance(_QUOTA)
        self._orders.keep(self._swaps.order, self._swaps.score)
        if ended:
            self._moves += self._swaps.moves
            self._swaps = None
        return ended and self._start == self._options.starts

    def best(self) -> SearchResult:
        """Return the graph of the best order so far."""
        return self._orders.result(effort={"starts": self._start, "moves": self._moves})

    def describe(self) -> tuple[str, float, float | None]:
        """Say which start this is."""
        if self._start == 0:
            return self._orders.describe()
        return f"start {self._start} of {self._options.starts}", self._orders.score, None

    def conclusion(self) -> str:
        """Say what the end means."""
        return f"{self._patience} swaps in a row brought no better order, from the last start too."
