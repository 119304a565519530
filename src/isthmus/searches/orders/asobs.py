"""Acyclic selection ordering-based search (ASOBS) with moves of windows."""

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
from isthmus.searches.exact.table_stage import settle
from isthmus.searches.orders.table_orders import OrderSearchState
from isthmus.types import Integers, Work

_CHUNK = 32
"""Windows that are moved before the gains are added up."""
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
    max_parent_sets
        Maximum number of parent sets per node to score if the search is given a score instead of
        a score table; None for all that can be part of an optimal graph.

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=1000, seed=1)
    >>> ist.learn(data, score=ist.BIC(), search=ist.ASOBS(), seed=1).dag.parents("lung")
    ('smoke',)
    """

    starts: int = 5
    window: int = 3
    kicks: int = 50
    max_parents: int | None = None
    max_parent_sets: int | None = 20_000
    accepts: ClassVar[Accepts] = (LOCAL_SCORES, PARENT_SETS)

    def __post_init__(self) -> None:
        require_integer(self, "starts", least=1)
        require_integer(self, "window", least=1)
        require_integer(self, "kicks", least=0)
        require_integer(self, "max_parents", least=0, optional=True)
        require_integer(self, "max_parent_sets", least=1, optional=True)

    def begin(
        self,
        objective: LocalScore | ScoreTable,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
    ) -> Run[SearchResult]:
        return _ASOBSRun(
            self,
            OrderSearchState(objective, knowledge, rng, self.max_parents, self.max_parent_sets),
        )


@final
class _ASOBSRun(Run[SearchResult]):
    def __init__(self, options: ASOBS, orders: OrderSearchState) -> None:
        self._options = options
        self._orders = orders
        self._window = min(options.window, max(1, len(orders.nodes) - 1))
        self._start = 0
        self._climbs = 0
        self._run: _native.TableRun | None = None
        self._before: tuple[Integers, float] | None = None
        self._total = -np.inf
        self._work = self._steps()

    def step(self) -> bool:
        """List parent sets, or move some windows."""
        return next(self._work, True) is not None

    def _steps(self) -> Iterator[None]:
        yield from self._orders.prepare()
        while self._start < self._options.starts:
            self._start += 1
            yield from self._search(self._orders.draw())

    def _search(self, order: Integers) -> Work[None]:
        """Climb from an order, then from perturbations of the best one, until none helps."""
        local = yield from self._climb(order)
        failed = 0
        while failed < self._options.kicks:
            order, total = yield from self._climb(self._perturbed(local[0]))
            failed = 0 if total > local[1] + _SAME else failed + 1
            if total > local[1] - _SAME:
                # If the score is equal, move along the plateau.
                local = order, total

    def _climb(self, order: Integers) -> Work[tuple[Integers, float]]:
        """Move windows until nothing improves the score; return the order and its score."""
        orders = self._orders
        self._run = yield from orders.begin(order)
        self._total = self._run.total
        yield from self._select()
        while True:
            yield from self._move_windows(self._run)
            self._climbs += 1
            if not (orders.can_refine and self._total > orders.score + _SAME):
                break
            orders.keep(self._run.order, self._total)
            if not (yield from orders.refine(self._run)):
                break
            self._run = yield from orders.begin(self._run.order)
            self._total = self._run.total
        order = self._run.order
        orders.keep(order, self._total)
        self._run = None
        return order, self._total

    def _move_windows(self, run: _native.TableRun) -> Work[None]:
        """Move windows, small ones first, until no move or selection improves the score."""
        size = 1
        while True:
            gained = 0.0
            queue = self._orders.rng.permutation(len(self._orders.nodes))
            for first in range(0, len(queue), _CHUNK):
                run.sweep(queue[first : first + _CHUNK], size)
                yield from settle(run)
                gained += run.gained
                self._total += run.gained
                yield
            if gained > 0.0:
                size = 1
            elif size < self._window:
                size += 1
            elif (yield from self._select()):
                size = 1
            else:
                return

    def _perturbed(self, order: Integers) -> Integers:
        """Shuffle a short section of the order."""
        rng, d = self._orders.rng, len(order)
        perturbed = order.copy()
        length = min(d, int(rng.integers(3, 3 + max(2, min(20, d // 4)))))
        begin = int(rng.integers(0, d - length + 1))
        perturbed[begin : begin + length] = rng.permutation(perturbed[begin : begin + length])
        return perturbed

    def _select(self) -> Work[bool]:
        """Allow later nodes as parents, and reorder; return whether the score improved."""
        run = self._run
        assert run is not None
        before, order = self._total, run.order
        # The order of the run is not scored again before the selection is done.
        self._before = order, before
        run.select()
        yield from settle(run)
        better = run.changed and run.total > before + _SAME
        if run.changed and not better:
            run.reset(order)
            yield from settle(run)
        if run.changed:
            self._total = run.total
        self._before = None
        return better

    def best(self) -> SearchResult:
        if self._before is not None:
            self._orders.keep(*self._before)
        elif self._run is not None:
            self._orders.keep(self._run.order, self._run.total)
        return self._orders.result(effort={"starts": self._start, "climbs": self._climbs})

    def describe(self) -> tuple[str, float, float | None]:
        if self._start == 0:
            return self._orders.describe()
        text = f"start {self._start} of {self._options.starts}, {self._climbs} local optima"
        return text, self._orders.score, None

    def conclusion(self) -> str:
        return "no move of a window improves the score, even after perturbing the order."
