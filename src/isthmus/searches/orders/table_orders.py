"""State shared by order-based searches on a score table: the table, its index, the best order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np

from isthmus.graphs import BoundKnowledge
from isthmus.kernels import _native
from isthmus.objectives import LOCAL_SCORES, LocalScore, ScoreTable
from isthmus.results.details import OrderDetails, SearchDetails
from isthmus.searches.base import SearchResult
from isthmus.searches.exact.table_stage import TableLines, TableStage, parents_of, settle
from isthmus.types import Integers, Work, completed

_NOISE = 1e-12
"""Gains up to this fraction of the score are rounding errors."""


@final
class OrderSearchState:
    """A score table, listed first if the search was given a score, and its best order so far.

    Parameters
    ----------
    max_parent_sets
        Maximum number of parent sets per node to score if the table has to be listed.
    """

    def __init__(
        self,
        objective: LocalScore | ScoreTable,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        max_parents: int | None,
        max_parent_sets: int | None,
    ) -> None:
        self._objective = objective
        self._knowledge = knowledge
        self._max_parents = max_parents
        self._stage = TableStage(objective, knowledge, max_parents, quota=max_parent_sets)
        self._lines: TableLines | None = None
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
    def lines(self) -> TableLines:
        """The table with its index."""
        assert self._lines is not None
        return self._lines

    def prepare(self) -> Work[None]:
        """List the parent sets if the table is not given, and index it."""
        yield from self._stage.steps()
        yield from self._index()

    def _index(self) -> Work[None]:
        lines = TableLines(self.table)
        yield from lines.prepare()
        self._lines = lines

    @property
    def can_refine(self) -> bool:
        """Whether the table may lack sets and there is a score to find them."""
        return LOCAL_SCORES.of(self._objective) is not None and not self.table.complete

    def refine(self, run: _native.TableRun) -> Work[bool]:
        """Look for better parents along an order than those listed, and add them to the table.

        Parents are added and removed one by one. For each better set, the best sets without one of
        its members are added too; otherwise the search could no longer move that member. Returns
        whether a better set was found.
        """
        order, lines = run.order, run.lines
        added: dict[int, list[tuple[tuple[int, ...], float]]] = {}
        for place, v in enumerate(order.tolist()):
            line = int(lines[v])
            given = self.table.members(line), float(self.table.scores[line])
            better = yield from self._better(v, order[:place], *given)
            if better[1] > given[1] + _NOISE * max(1.0, abs(given[1])):
                fewer = yield from self._without_one(v, order[:place], better[0])
                added[v] = [better, *fewer]
        if added:
            self._stage.table = self.table.with_sets(added)
            yield from self._index()
        return bool(added)

    def _without_one(
        self, v: int, before: Integers, parents: tuple[int, ...]
    ) -> Work[list[tuple[tuple[int, ...], float]]]:
        local = LOCAL_SCORES.require(self._objective)
        max_parent_sets = []
        for p in parents:
            if not self._knowledge.required[p, v]:
                fewer = tuple(u for u in parents if u != p)
                score = local.local(v, fewer)
                max_parent_sets.append(
                    (yield from self._better(v, before[before != p], fewer, score))
                )
        return max_parent_sets

    def _better(
        self, v: int, before: Integers, parents: tuple[int, ...], score: float
    ) -> Work[tuple[tuple[int, ...], float]]:
        """Improve a parent set by single changes, among the nodes before ``v``."""
        local = LOCAL_SCORES.require(self._objective)
        required, forbidden = self._knowledge.required[:, v], self._knowledge.forbidden[:, v]
        max_parents = len(self.nodes) if self._max_parents is None else self._max_parents
        chosen = list(parents)
        while True:
            yield
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
        return self.lines.draw(self.rng)

    def begin(self, order: Integers) -> Work[_native.TableRun]:
        """Return a run at an order."""
        run = _native.TableRun(self.lines.kernel, order)
        yield from settle(run)
        return run

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
        lines = completed(self.begin(self.order)).lines
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
