"""What searches over the orders of a score table share: the table, its index, the best order."""

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
"""Relative to the score."""


@final
class OrderSearchState:
    """A table, listed first where a score was given, and the best order seen over it.

    Parameters
    ----------
    sets
        How many parent sets of a node are scored at most when the table has to be made.
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
        self._known = knowledge
        self._most = max_parents
        self._phase = TableStage(objective, knowledge, max_parents, quota=sets)
        self._lines: Lines | None = None
        self.nodes = objective.nodes
        self.rng = rng
        self.score = -np.inf
        self.order: Integers | None = None

    @property
    def table(self) -> ScoreTable:
        """The table; only when it is ready."""
        assert self._phase.table is not None
        return self._phase.table

    @property
    def lines(self) -> Lines:
        """The table with its index, as kernels want it."""
        assert self._lines is not None
        return self._lines

    def prepare(self) -> bool:
        """Do one step of listing, if there is one left; return whether the table is ready."""
        if self._lines is not None:
            return True
        if self._phase.step():
            self._index()
        return False

    def _index(self) -> None:
        from isthmus.numerics.order_moves import new_lines

        self._lines = new_lines(self.table.starts, self.table.sets, self.table.scores)

    @property
    def can_refine(self) -> bool:
        """Whether sets can be missing from the table, and there is a score to look for them."""
        return LOCAL_SCORES.of(self._objective) is not None and not self.table.complete

    def refine(self, order: Integers) -> Iterator[bool]:
        """Look for better parents of each node in this order than those listed, and list them.

        Parents are added and taken away one by one. With a better set go the best that are so found
        without one of its members, or the search could not move that member any more. Gives False
        after each node, in the end whether a better set was found.
        """
        state, _ = self.begin(order)
        found: dict[int, list[tuple[tuple[int, ...], float]]] = {}
        for place, v in enumerate(order.tolist()):
            line = int(state.lines[v])
            given = self.table.members(line), float(self.table.scores[line])
            better = self._better(v, order[:place], *given)
            if better[1] > given[1] + _NOISE * max(1.0, abs(given[1])):
                found[v] = [better, *self._without_one(v, order[:place], better[0])]
            yield False
        if found:
            self._phase.table = self.table.with_sets(found)
            self._index()
        yield bool(found)

    def _without_one(
        self, v: int, before: Integers, parents: tuple[int, ...]
    ) -> Iterator[tuple[tuple[int, ...], float]]:
        local = LOCAL_SCORES.require(self._objective)
        for p in parents:
            if not self._known.required[p, v]:
                fewer = tuple(u for u in parents if u != p)
                yield self._better(v, before[before != p], fewer, local.local(v, fewer))

    def _better(
        self, v: int, before: Integers, parents: tuple[int, ...], score: float
    ) -> tuple[tuple[int, ...], float]:
        """Parents reached from these by single changes that gain."""
        local = LOCAL_SCORES.require(self._objective)
        required, forbidden = self._known.required[:, v], self._known.forbidden[:, v]
        most = len(self.nodes) if self._most is None else self._most
        chosen = list(parents)
        while True:
            least = score + _NOISE * max(1.0, abs(score))
            open_ = [u for u in before[~forbidden[before]].tolist() if u not in chosen]
            if open_ and len(chosen) < most:
                values = local.extensions(v, chosen, open_)[1:]
                if values.max() > least:
                    score = float(values.max())
                    chosen.append(open_[int(values.argmax())])
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
        """Score an order."""
        from isthmus.numerics.order_moves import new_order, settle

        state = new_order(self.lines, order)
        return state, float(settle(self.lines, state, 0, 0))

    def keep(self, order: Integers, score: float) -> None:
        """Remember an order if it is the best so far."""
        if score > self.score:
            self.score = score
            self.order = order.copy()

    def result(
        self, details: Callable[..., SearchDetails] = OrderDetails, **reported: Any
    ) -> SearchResult:
        """Give the graph of the best order, or one of what is listed so far."""
        if self.order is None or self._lines is None:
            return self._phase.fallback(self.rng)
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
        """Say how far the listing has come."""
        text, done = self._phase.describe()
        return text, -np.inf, done


@final
class Swaps:
    """Swaps of neighbours from a random order on, the best one in each step though it may lose.

    Parameters
    ----------
    orders
        The table, which must be ready.
    tabu
        For how many steps two nodes that changed places are not changed back.
    patience
        Steps without a better order before the end.
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

    def advance(self, most: int) -> bool:
        """Make some swaps; return whether it has ended."""
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
            most,
        )
        return bool(ended)

    @property
    def score(self) -> float:
        """Score of the best order, which is ``order``."""
        return float(self._totals[1])

    @property
    def moves(self) -> int:
        """How many swaps were made."""
        return int(self._counters[0])
