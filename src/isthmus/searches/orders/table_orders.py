"""State shared by order-based searches on a score table: the table, its index, the best order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, final

import numpy as np

from isthmus.graphs import BoundKnowledge
from isthmus.objectives import LOCAL_SCORES, LocalScore, ScoreTable
from isthmus.results.details import OrderDetails, SearchDetails
from isthmus.searches.base import SearchResult
from isthmus.searches.exact.components import TableStage, parents_of, possible_order
from isthmus.types import Integers

if TYPE_CHECKING:
    from isthmus.numerics.order_moves import Lines, Order


_NOISE = 1e-12
"""Gains up to this fraction of the score are rounding errors."""


@final
class OrderSearchState:
    """A score table, listed first if the search was given a score, and its best order so far.

    Parameters
    ----------
    sets
        Maximum number of parent sets per node to score if the table has to be listed.
    """

    def __init__(
        self,
        objective: LocalScore | ScoreTable,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        max_parents: int | None,
        sets: int | None,
    ) -> None:
        self._objective = objective
        self._knowledge = knowledge
        self._max_parents = max_parents
        self._stage = TableStage(objective, knowledge, max_parents, quota=sets)
        self._lines: Lines | None = None
        self.nodes = objective.nodes
        self.rng = rng
        self.score = -np.inf
        self.order: Integers | None = None

    @property
    def table(self) -> ScoreTable:
        """The table; available once `prepare` has returned True."""
        assert self._stage.table is not None
        return self._stage.table

    @property
    def lines(self) -> Lines:
        """The table with its index, in the form that kernels use."""
        assert self._lines is not None
        return self._lines

    def prepare(self) -> bool:
        """Do one step of listing if the table is not ready; return whether it is."""
        if self._lines is not None:
            return True
        if self._stage.step():
            self._index()
        return False

    def _index(self) -> None:
        from isthmus.numerics.order_moves import new_lines

        self._lines = new_lines(self.table.starts, self.table.sets, self.table.scores)

    @property
    def can_refine(self) -> bool:
        """Whether the table may lack sets and there is a score to find them."""
        return LOCAL_SCORES.of(self._objective) is not None and not self.table.complete

    def refine(self, order: Integers) -> Iterator[bool]:
        """Look for better parents along an order than those listed, and add them to the table.

        Parents are added and removed one by one. For each better set, the best sets without one of
        its members are added too; otherwise the search could no longer move that member. Yields
        False after each node, and at the end whether a better set was found.
        """
        state, _ = self.begin(order)
        added: dict[int, list[tuple[tuple[int, ...], float]]] = {}
        for place, v in enumerate(order.tolist()):
            line = int(state.lines[v])
            given = self.table.members(line), float(self.table.scores[line])
            better = self._better(v, order[:place], *given)
            if better[1] > given[1] + _NOISE * max(1.0, abs(given[1])):
                added[v] = [better, *self._without_one(v, order[:place], better[0])]
            yield False
        if added:
            self._stage.table = self.table.with_sets(added)
            self._index()
        yield bool(added)

    def _without_one(
        self, v: int, before: Integers, parents: tuple[int, ...]
    ) -> Iterator[tuple[tuple[int, ...], float]]:
        local = LOCAL_SCORES.require(self._objective)
        for p in parents:
            if not self._knowledge.required[p, v]:
                fewer = tuple(u for u in parents if u != p)
                yield self._better(v, before[before != p], fewer, local.local(v, fewer))

    def _better(
        self, v: int, before: Integers, parents: tuple[int, ...], score: float
    ) -> tuple[tuple[int, ...], float]:
        """Improve a parent set by single changes, among the nodes before ``v``."""
        local = LOCAL_SCORES.require(self._objective)
        required, forbidden = self._knowledge.required[:, v], self._knowledge.forbidden[:, v]
        max_parents = len(self.nodes) if self._max_parents is None else self._max_parents
        chosen = list(parents)
        while True:
            least = score + _NOISE * max(1.0, abs(score))
            candidates = [u for u in before[~forbidden[before]].tolist() if u not in chosen]
            if candidates and len(chosen) < max_parents:
                values = local.extensions(v, chosen, candidates)[1:]
                if values.max() > least:
                    score = float(values.max())
                    chosen.append(candidates[int(values.argmax())])
                    continue
            fewer = [[u for u in chosen if u != p] for p in chosen if not required[p]]
            worth = [local.local(v, one) for one in fewer]
            if not worth or max(worth) <= least:
                return tuple(sorted(chosen)), score
            score = max(worth)
            chosen = fewer[worth.index(score)]

    def draw(self) -> Integers:
        """Draw an order in which required parents come before their children."""
        return possible_order(self.table, self.rng)

    def begin(self, order: Integers) -> tuple[Order, float]:
        """Return the search state at an order, and its score."""
        from isthmus.numerics.order_moves import new_order, settle

        state = new_order(self.lines, order)
        return state, float(settle(self.lines, state, 0, 0))

    def keep(self, order: Integers, score: float) -> None:
        """Store an order if it is the best so far."""
        if score > self.score:
            self.score = score
            self.order = order.copy()

    def result(
        self, details: Callable[..., SearchDetails] = OrderDetails, **reported: Any
    ) -> SearchResult:
        """Return the graph of the best order, or one of the sets listed so far if there is none."""
        if self.order is None or self._lines is None:
            return self._stage.fallback(self.rng)
        state, _ = self.begin(self.order)
        lines = state.lines
        record = details(
            order=tuple(self.nodes[v] for v in self.order.tolist()),
            parent_sets=len(self.table),
            complete=self.table.complete,
            **reported,
        )
        return SearchResult(
            parents_of(self.table, lines), float(self.table.scores[lines].sum()), record
        )

    def describe(self) -> tuple[str, float, float | None]:
        """Report the progress of listing the parent sets."""
        text, done = self._stage.describe()
        return text, -np.inf, done


@final
class Swaps:
    """Swaps of neighbours from a random order; each step makes the best one that is not tabu.

    Parameters
    ----------
    orders
        The state of the search; its table must be ready.
    tabu
        Number of steps for which a swap may not be undone.
    patience
        Stop after this many steps without a better order.
    """

    def __init__(self, orders: OrderSearchState, tabu: int, patience: int) -> None:
        from isthmus.numerics import order_moves

        d = len(orders.nodes)
        self._kernels = order_moves
        self._lines = orders.lines
        self._tabu = tabu
        self._patience = patience
        self._state, total = orders.begin(orders.draw())
        self._totals = np.array([total, total])
        self._barred = np.zeros((d, d), np.int64)
        self._counters = np.zeros(2, np.int64)
        self._gains = np.empty(max(0, d - 1))
        order_moves.swap_gains(self._lines, self._state, self._gains)
        self.order: Integers = self._state.order.copy()

    def advance(self, max_swaps: int) -> bool:
        """Make up to ``max_swaps`` swaps; return whether the search has ended."""
        ended = self._kernels.swap_moves(
            self._lines,
            self._state,
            self._gains,
            self._barred,
            self._tabu,
            self.order,
            self._counters,
            self._totals,
            self._patience,
            max_swaps,
        )
        return bool(ended)

    @property
    def score(self) -> float:
        """Score of ``order``, the best order so far."""
        return float(self._totals[1])

    @property
    def moves(self) -> int:
        """Number of swaps so far."""
        return int(self._counters[0])
