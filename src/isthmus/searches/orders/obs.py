"""Ordering-based search (OBS): swaps of neighbours in the order, with a tabu list."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.graphs import BoundKnowledge
from isthmus.kernels import _native
from isthmus.objectives import LOCAL_SCORES, PARENT_SETS, LocalScore, ScoreTable
from isthmus.options import require_integer
from isthmus.searches.base import Accepts, Run, Search, SearchResult
from isthmus.searches.orders.table_orders import OrderSearchState


@final
@dataclass(frozen=True)
class OBS(Search[LocalScore]):
    """Ordering-based search by swaps of neighbours (Teyssier and Koller 2005).

    Each step makes the best swap that is not tabu, even if it lowers the score. After ``patience``
    steps without a better order, the search restarts from a random one. It is the baseline of the
    order-based searches: :class:`ASOBS` and :class:`Boss` move nodes over longer distances.

    Parameters
    ----------
    starts
        Number of random orders to start from. To search until a time limit, set a large number.
    tabu
        Number of steps for which a swap may not be undone.
    patience
        Number of steps without a better order before the next start; None for the number of nodes,
        0 to stop when no swap improves the score.
    max_parents
        Maximum number of parents of a node; None for no limit.
    max_parent_sets
        Maximum number of parent sets per node to score if the search is given a score instead of
        a score table; None for all that can be part of an optimal graph.

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=1000, seed=1)
    >>> ist.learn(data, score=ist.BIC(), search=ist.OBS(), seed=1).dag.parents("lung")
    ('smoke',)
    """

    starts: int = 20
    tabu: int = 10
    patience: int | None = None
    max_parents: int | None = None
    max_parent_sets: int | None = 20_000
    accepts: ClassVar[Accepts] = (LOCAL_SCORES, PARENT_SETS)

    def __post_init__(self) -> None:
        require_integer(self, "starts", least=1)
        require_integer(self, "tabu", least=0)
        require_integer(self, "patience", least=0, optional=True)
        require_integer(self, "max_parents", least=0, optional=True)
        require_integer(self, "max_parent_sets", least=1, optional=True)

    def begin(
        self,
        objective: LocalScore | ScoreTable,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
    ) -> Run[SearchResult]:
        return _OBSRun(
            self,
            OrderSearchState(objective, knowledge, rng, self.max_parents, self.max_parent_sets),
        )


@final
class _OBSRun(Run[SearchResult]):
    def __init__(self, options: OBS, orders: OrderSearchState) -> None:
        self._options = options
        self._orders = orders
        self._patience = len(orders.nodes) if options.patience is None else options.patience
        self._start = 0
        self._moves = 0
        self._work = self._steps()

    def step(self) -> bool:
        """List parent sets, or make some swaps."""
        return next(self._work, True) is not None

    def _steps(self) -> Iterator[None]:
        orders = self._orders
        yield from orders.prepare()
        while self._start < self._options.starts:
            self._start += 1
            swaps = _native.SwapSearch(
                orders.lines.kernel,
                orders.draw(),
                memory=self._options.tabu,
                patience=self._patience,
            )
            while not swaps.step():
                orders.keep(swaps.order, swaps.score)
                yield
            orders.keep(swaps.order, swaps.score)
            self._moves += swaps.moves
            yield

    def best(self) -> SearchResult:
        return self._orders.result(effort={"starts": self._start, "moves": self._moves})

    def describe(self) -> tuple[str, float, float | None]:
        if self._start == 0:
            return self._orders.describe()
        return f"start {self._start} of {self._options.starts}", self._orders.score, None

    def conclusion(self) -> str:
        return f"no better order in the last {self._patience} swaps of the last start."
