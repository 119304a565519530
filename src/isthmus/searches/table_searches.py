"""Searches over orders on a score table: `OBS`, `ASOBS`, and the state that all of them share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from isthmus.arrays import Integers
from isthmus.graphs import BoundKnowledge
from isthmus.kernels import _native
from isthmus.objectives import LOCAL_SCORES, PARENT_SETS, LocalScore, ScoreTable
from isthmus.options import require_integer
from isthmus.results.details import OrderDetails, SearchDetails
from isthmus.searches.base import Accepts, Search, SearchResult, TableLines, TableStage, parents_of
from isthmus.watch import Watch

_NOISE = 1e-12
"""Gains up to this fraction of the score are rounding errors."""
_CHUNK = 32
"""Windows that are moved before the gains are added up."""
_SAME = 1e-7
"""Scores that differ by less are equal."""


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
        watch: Watch,
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
        self.watch = watch
        self.score = -np.inf
        self.order: Integers | None = None

    @property
    def table(self) -> ScoreTable:
        """The table; available after `prepare`."""
        assert self._stage.table is not None
        return self._stage.table

    @property
    def lines(self) -> TableLines:
        """The table with its index."""
        assert self._lines is not None
        return self._lines

    def prepare(self) -> None:
        """List the parent sets if the table is not given, and index it."""
        self._stage.listed(self.watch)
        self._lines = TableLines(self.table, self.watch)

    @property
    def can_refine(self) -> bool:
        """Whether the table may lack sets and there is a score to find them."""
        return LOCAL_SCORES.of(self._objective) is not None and not self.table.complete

    def refine(self, run: _native.TableRun) -> bool:
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
            better = self._better(v, order[:place], *given)
            if better[1] > given[1] + _NOISE * max(1.0, abs(given[1])):
                fewer = self._without_one(v, order[:place], better[0])
                added[v] = [better, *fewer]
        if added:
            self._stage.table = self.table.with_sets(added)
            self._lines = TableLines(self.table, self.watch)
        return bool(added)

    def _without_one(
        self, v: int, before: Integers, parents: tuple[int, ...]
    ) -> list[tuple[tuple[int, ...], float]]:
        local = LOCAL_SCORES.require(self._objective)
        max_parent_sets = []
        for p in parents:
            if not self._knowledge.required[p, v]:
                fewer = tuple(u for u in parents if u != p)
                score = local.local(v, fewer)
                max_parent_sets.append(self._better(v, before[before != p], fewer, score))
        return max_parent_sets

    def _better(
        self, v: int, before: Integers, parents: tuple[int, ...], score: float
    ) -> tuple[tuple[int, ...], float]:
        """Improve a parent set by single changes, among the nodes before ``v``."""
        local = LOCAL_SCORES.require(self._objective)
        required, forbidden = self._knowledge.required[:, v], self._knowledge.forbidden[:, v]
        max_parents = len(self.nodes) if self._max_parents is None else self._max_parents
        chosen = list(parents)
        while True:
            self.watch.poll()
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

    def begin(self, order: Integers) -> _native.TableRun:
        """Return the best parents along an order, whose nodes can then move."""
        return self.lines.begin(order, self.watch)

    def keep(self, order: Integers, score: float) -> None:
        """Store an order if it is the best so far."""
        if score > self.score:
            self.score = score
            self.order = order.copy()

    def result(
        self,
        conclusion: str,
        details: Callable[..., SearchDetails] = OrderDetails,
        **reported: Any,
    ) -> SearchResult:
        """Return the graph of the best order, or one of the sets listed so far if there is none."""
        if self.order is None or self._lines is None:
            return self._stage.fallback(self.rng)
        lines = self._lines.begin(self.order, Watch()).lines
        record = details(
            order=tuple(self.nodes[v] for v in self.order.tolist()),
            parent_sets=len(self.table),
            complete=self.table.complete,
            **reported,
        )
        score = float(self.table.scores[lines].sum())
        return SearchResult(parents_of(self.table, lines), score, record, conclusion=conclusion)


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

    def search(
        self,
        objective: LocalScore | ScoreTable,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        watch: Watch,
    ) -> SearchResult:
        orders = OrderSearchState(
            objective, knowledge, rng, watch, self.max_parents, self.max_parent_sets
        )
        patience = len(orders.nodes) if self.patience is None else self.patience
        start = moves = 0
        with watch.until_stopped():
            orders.prepare()
            while start < self.starts:
                start += 1
                swaps = _native.SwapSearch(
                    orders.lines.kernel, orders.draw(), memory=self.tabu, patience=patience
                )
                finished = False
                while not finished:
                    finished = swaps.step()
                    orders.keep(swaps.order, swaps.score)
                    if finished:
                        moves += swaps.moves
                    watch.poll(f"start {start} of {self.starts}", orders.score)
        return orders.result(
            f"no better order in the last {patience} swaps of the last start.",
            effort={"starts": start, "moves": moves},
        )


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

    def search(
        self,
        objective: LocalScore | ScoreTable,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        watch: Watch,
    ) -> SearchResult:
        orders = OrderSearchState(
            objective, knowledge, rng, watch, self.max_parents, self.max_parent_sets
        )
        windows = _Windows(self, orders)
        with watch.until_stopped():
            orders.prepare()
            windows.search()
        return windows.result()


@final
class _Windows:
    """The order that moves, and the best one."""

    def __init__(self, options: ASOBS, orders: OrderSearchState) -> None:
        self._options = options
        self._orders = orders
        self._window = min(options.window, max(1, len(orders.nodes) - 1))
        self._start = 0
        self._climbs = 0
        self._run: _native.TableRun | None = None
        self._before: tuple[Integers, float] | None = None
        self._total = -np.inf

    def search(self) -> None:
        """Search from all starts."""
        while self._start < self._options.starts:
            self._start += 1
            self._search(self._orders.draw())

    def _poll(self) -> None:
        text = f"start {self._start} of {self._options.starts}, {self._climbs} local optima"
        self._orders.watch.poll(text, self._orders.score)

    def _settle(self, run: _native.TableRun) -> None:
        while not run.step():
            self._poll()

    def _search(self, order: Integers) -> None:
        """Climb from an order, then from perturbations of the best one, until none helps."""
        local = self._climb(order)
        failed = 0
        while failed < self._options.kicks:
            order, total = self._climb(self._perturbed(local[0]))
            failed = 0 if total > local[1] + _SAME else failed + 1
            if total > local[1] - _SAME:
                # If the score is equal, move along the plateau.
                local = order, total

    def _climb(self, order: Integers) -> tuple[Integers, float]:
        """Move windows until nothing improves the score; return the order and its score."""
        orders = self._orders
        self._run = orders.begin(order)
        self._total = self._run.total
        self._select()
        while True:
            self._move_windows(self._run)
            self._climbs += 1
            if not (orders.can_refine and self._total > orders.score + _SAME):
                break
            orders.keep(self._run.order, self._total)
            if not orders.refine(self._run):
                break
            self._run = orders.begin(self._run.order)
            self._total = self._run.total
        order = self._run.order
        orders.keep(order, self._total)
        self._run = None
        return order, self._total

    def _move_windows(self, run: _native.TableRun) -> None:
        """Move windows, small ones first, until no move or selection improves the score."""
        size = 1
        while True:
            gained = 0.0
            queue = self._orders.rng.permutation(len(self._orders.nodes))
            for first in range(0, len(queue), _CHUNK):
                run.sweep(queue[first : first + _CHUNK], size)
                self._settle(run)
                gained += run.gained
                self._total += run.gained
                self._poll()
            if gained > 0.0:
                size = 1
            elif size < self._window:
                size += 1
            elif self._select():
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

    def _select(self) -> bool:
        """Allow later nodes as parents, and reorder; return whether the score improved."""
        run = self._run
        assert run is not None
        before, order = self._total, run.order
        # The order of the run is not scored again before the selection is done.
        self._before = order, before
        run.select()
        self._settle(run)
        better = run.changed and run.total > before + _SAME
        if run.changed and not better:
            run.reset(order)
            self._settle(run)
        if run.changed:
            self._total = run.total
        self._before = None
        return better

    def result(self) -> SearchResult:
        """Return the graph of the best order."""
        if self._before is not None:
            self._orders.keep(*self._before)
        elif self._run is not None:
            self._orders.keep(self._run.order, self._run.total)
        return self._orders.result(
            "no move of a window improves the score, even after perturbing the order.",
            effort={"starts": self._start, "climbs": self._climbs},
        )
