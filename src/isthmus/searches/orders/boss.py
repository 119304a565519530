"""Best order score search (BOSS) with grow-shrink trees.

Andrews, Ramsey, Sánchez-Romero, Camchong and Kummerfeld, NeurIPS 2023. Works with every
decomposable score; on score-equivalent ones it is the most accurate search in our benchmarks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, final

import numpy as np

from isthmus.graphs import BoundKnowledge
from isthmus.kernels.orders import BossRun, ParallelBossRun, Parents, required_graph
from isthmus.objectives import LOCAL_SCORES, PARENT_SETS, LocalScore, ScoreTable
from isthmus.options import require_integer, require_jobs
from isthmus.searches.base import Accepts, Run, Search, SearchResult
from isthmus.searches.orders.boss_tables import BossTableRun
from isthmus.searches.orders.table_orders import OrderSearchState


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
    jobs
        Number of threads among which the starts are divided; -1 for one per core. Each start then
        has trees and random numbers of its own: the graph does not depend on the number of threads,
        but it may differ from the graph that is found with None, one start after another. Not used
        with a score table.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import simulate
    >>> dag = simulate.erdos_renyi(5, 6, seed=1)
    >>> numbers = simulate.linear(dag, 300, seed=1).data
    >>> ist.learn(numbers, search=ist.Boss(starts=10), seed=3).cpdag == ist.learn(numbers).cpdag
    True
    """

    starts: int = 4
    max_parents: int | None = None
    jobs: int | None = None
    accepts: ClassVar[Accepts] = (LOCAL_SCORES, PARENT_SETS)

    def __post_init__(self) -> None:
        require_integer(self, "starts", least=1)
        require_integer(self, "max_parents", least=0, optional=True)
        require_jobs(self, "jobs", optional=True)

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
        score = LOCAL_SCORES.require(objective).kernel
        kind = BossRun if self.jobs is None else partial(ParallelBossRun, jobs=max(self.jobs, 0))
        begin = partial(
            kind,
            score,
            rng,
            starts=self.starts,
            required=knowledge.required,
            forbidden=knowledge.forbidden,
            max_parents=self.max_parents,
        )
        return _BossRun(begin, partial(required_graph, score, knowledge.required))


@final
class _BossRun(Run[SearchResult]):
    def __init__(
        self,
        begin: Callable[[], BossRun | ParallelBossRun],
        without_search: Callable[[], tuple[Parents, float]],
    ) -> None:
        self._begin = begin
        self._without_search = without_search
        self._run: BossRun | ParallelBossRun | None = None
        self._asked = False

    def step(self) -> bool:
        """Search for a few milliseconds; the first step only lets the caller look at the clock.

        With 10,000 variables the set-up takes seconds, which there may not be.
        """
        if not self._asked:
            self._asked = True
            return False
        if self._run is None:
            self._run = self._begin()
        return self._run.step()

    def best(self) -> SearchResult:
        """Return the graph of the best order so far, including the current one."""
        return SearchResult(*(self._without_search if self._run is None else self._run.best)())

    def describe(self) -> tuple[str, float, float | None]:
        """Report the current start and sweep."""
        if self._run is None:
            return "setting up", math.nan, None
        return self._run.describe(), self._run.score, None

    def conclusion(self) -> str:
        """Explain why the search stopped."""
        return "no move of a variable in the order improves the score."
