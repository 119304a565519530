"""Best order score search (BOSS) with grow-shrink trees.

Andrews, Ramsey, Sánchez-Romero, Camchong and Kummerfeld, NeurIPS 2023. Works with every
decomposable score; on score-equivalent ones it is the most accurate search in our benchmarks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from isthmus.graphs import BoundKnowledge
from isthmus.objectives import LOCAL_SCORES, PARENT_SETS, LocalScore, ScoreTable
from isthmus.options import require_integer
from isthmus.searches.base import Accepts, Run, Search, SearchResult
from isthmus.searches.orders.boss_tables import BossTableRun
from isthmus.searches.orders.table_orders import OrderSearchState

_TOLERANCE = 1e-6


@final
@dataclass(frozen=True)
class Boss(Search[LocalScore]):
    """Best order score search (Andrews et al. 2023).

    Each variable in turn moves to its best position in the order, until no move improves the score.

    Parameters
    ----------
    starts
        Number of random orders to start from; the best result is returned. Starts share their
        grow-shrink trees, so later ones cost less than the first. On a score table, the best listed
        parents replace the trees.
    max_parents
        Maximum number of parents of a node; None for no limit.
    """

    starts: int = 4
    max_parents: int | None = None
    accepts: ClassVar[Accepts] = (LOCAL_SCORES, PARENT_SETS)

    def __post_init__(self) -> None:
        require_integer(self, "starts", least=1)
        require_integer(self, "max_parents", least=0, optional=True)

    def begin(
        self,
        objective: LocalScore | ScoreTable,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
    ) -> Run[SearchResult]:
        """Start a run."""
        table = PARENT_SETS.of(objective)
        if table is not None:
            orders = OrderSearchState(
                table, knowledge, rng, max_parents=self.max_parents, sets=None
            )
            return BossTableRun(self.starts, orders)
        return _BossRun(self, LOCAL_SCORES.require(objective), knowledge, rng)


@final
class _BossRun(Run[SearchResult]):
    def __init__(
        self,
        options: Boss,
        objective: LocalScore,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
    ) -> None:
        from isthmus.numerics import boss, grow_shrink

        d = len(objective.nodes)
        self._boss = boss
        self._trees = grow_shrink
        self._objective = objective
        self._rng = rng
        self._starts_left = options.starts
        self._starts = options.starts
        self._rules = grow_shrink.new_rules(
            knowledge.required, knowledge.forbidden, options.max_parents
        )
        self._required = knowledge.required
        self._forest = grow_shrink.new_forest(d, 32 * d + 64, 64 * d + d * d + 64)
        self._scratch = grow_shrink.new_scratch(d)
        self._places = boss.new_places(d)
        self._state = boss.new_order(np.arange(d, dtype=np.int64))
        self._settled: int | None = None
        self._queue: NDArray[np.int64] = np.empty(0, np.int64)
        self._next = 0
        self._moved = False
        self._sweep = 0
        self._best_score = -np.inf
        self._best_order: NDArray[np.int64] | None = None

    def step(self) -> bool:
        """Score a part of a new order, or move one variable."""
        if self._settled is None:
            self._starts_left -= 1
            self._state = self._boss.new_order(_random_order(self._required, self._rng))
            self._settled = 0
        d = len(self._state.order)
        if self._settled < d:
            self._settled = self._settle(self._settled, min(self._settled + 64, d))
            self._sweep = 0
            self._moved = True
            self._next = d
            return False
        if self._next >= d:
            if not self._moved:
                return self._finish_start()
            self._queue = self._rng.permutation(d)
            self._next, self._moved = 0, False
            self._sweep += 1
        gain = self._call(self._boss.improve, int(self._queue[self._next]), _TOLERANCE)
        self._moved = self._moved or gain > 0.0
        self._next += 1
        return False

    def _finish_start(self) -> bool:
        self._keep_best()
        self._settled = None
        return self._starts_left == 0

    def _keep_best(self) -> None:
        score = float(self._state.scores.sum())
        if score > self._best_score:
            self._best_score = score
            self._best_order = self._state.order.copy()

    def _call(self, kernel: Callable[..., Any], *arguments: Any) -> Any:
        """Call a kernel, enlarging the forest when the kernel needs it."""
        while True:
            code, value = kernel(
                self._objective.handle,
                self._forest,
                self._scratch,
                self._state,
                self._places,
                self._rules,
                *arguments,
            )
            if code == self._trees.DONE:
                return value
            if code != self._trees.NEEDS_ROOM:
                self._objective.raise_failure()
                raise RuntimeError("a compiled score failed and gave no reason; please report this")
            self._forest = self._trees.enlarge(self._forest)

    def _settle(self, start: int, stop: int) -> int:
        """Score the variables at these positions of the order; return ``stop``."""
        return int(self._call(self._boss.settle, start, stop))

    def best(self) -> SearchResult:
        """Return the graph of the best order so far, including the current one."""
        d = len(self._state.order)
        if self._settled == d:
            self._keep_best()
        if self._best_order is None:
            # No order has been scored yet: return only the required edges.
            parents = tuple(tuple(np.nonzero(self._required[:, v])[0].tolist()) for v in range(d))
            return SearchResult(parents, self._total(parents))
        if not np.array_equal(self._state.order, self._best_order):
            self._state = self._boss.new_order(self._best_order)
            self._settle(0, d)
        parents = tuple(
            tuple(sorted(self._call(self._boss.parents_in_order, v).tolist())) for v in range(d)
        )
        return SearchResult(parents, self._best_score)

    def _total(self, parents: tuple[tuple[int, ...], ...]) -> float:
        return sum(self._objective.local(v, p) for v, p in enumerate(parents))

    def describe(self) -> tuple[str, float, float | None]:
        """Report the current start and sweep."""
        d = len(self._state.order)
        start = self._starts - self._starts_left
        if self._settled is not None and self._settled < d:
            return f"start {start}: initial scores", self._best_score, None
        score = max(self._best_score, float(self._state.scores.sum()))
        text = (
            f"start {start} of {self._starts}, sweep {self._sweep}: {self._next} of {d} variables"
        )
        return text, score, None

    def conclusion(self) -> str:
        """Explain why the search stopped."""
        return "no move of a variable in the order improves the score."


def _random_order(required: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw an order in which required parents come before their children."""
    shuffled = rng.permutation(len(required))
    if not required.any():
        return shuffled
    placed: list[int] = []
    waiting = {int(v): set(np.nonzero(required[:, v])[0].tolist()) for v in shuffled}
    while waiting:
        ready = next(v for v, before in waiting.items() if not before)
        placed.append(ready)
        del waiting[ready]
        for before in waiting.values():
            before.discard(ready)
    return np.array(placed, dtype=np.int64)
