"""What searches over the orders of a score table share: the table, its index, the best order."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from isthmus.graphs import BoundKnowledge
from isthmus.objectives import LocalScore, ScoreTable
from isthmus.searches.base import Found
from isthmus.searches.exact import TablePhase, parents_of, possible_order

if TYPE_CHECKING:
    from isthmus.numerics.order_moves import Lines, Order

Integers = NDArray[np.int64]


@final
class TableOrders:
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
        *,
        max_parents: int | None,
        sets: int | None,
    ) -> None:
        self._phase = TablePhase(objective, knowledge, max_parents, quota=sets)
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
            from isthmus.numerics.order_moves import new_lines

            table = self.table
            self._lines = new_lines(table.starts, table.sets, table.scores)
        return False

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

    def found(self, details: dict[str, object]) -> Found:
        """Give the graph of the best order, or one of what is listed so far."""
        if self.order is None or self._lines is None:
            return Found(*self._phase.fallback(self.rng))
        state, _ = self.begin(self.order)
        lines = state.lines
        details = {"parent_sets": len(self.table), "complete": self.table.complete, **details}
        details["order"] = tuple(self.nodes[v] for v in self.order.tolist())
        return Found(parents_of(self.table, lines), float(self.table.scores[lines].sum()), details)

    def describe(self) -> tuple[str, float, float | None]:
        """Say how far the listing has come."""
        text, done = self._phase.describe()
        return text, -np.inf, done
