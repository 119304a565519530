"""Best order score search (BOSS), with the warm starts and the perturbations of FLOP.

BOSS: Andrews, Ramsey, Sánchez-Romero, Camchong and Kummerfeld, NeurIPS 2023. FLOP: Wienöbst,
Henckel and Weichwald, ICLR 2026. Works with every decomposable score; on score-equivalent ones it
is the most accurate search in our benchmarks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, TypedDict, final

import numpy as np

from isthmus.graphs import BoundKnowledge
from isthmus.kernels import _native
from isthmus.kernels.orders import BossRun, ParallelBossRun, Parents, required_graph
from isthmus.objectives import LOCAL_SCORES, PARENT_SETS, LocalScore, ScoreTable
from isthmus.options import require_boolean, require_integer, require_jobs
from isthmus.results.details import BossDetails
from isthmus.searches.base import Accepts, Run, Search, SearchResult
from isthmus.searches.exact.table_stage import settle
from isthmus.searches.orders.starts import Starts, canonical_labels
from isthmus.searches.orders.table_orders import OrderSearchState
from isthmus.types import Bools, Integers

_BATCH = 4
"""Number of starts that are begun together in threads."""
_FAMILIES_PER_STEP, _TYPICAL_PARENTS, _PER_PLACE = 20, 3, 3e-8
"""What a step of the choice of parents and a place in the order cost: a step takes as long as this
many families, because extensions of one parent set share most of their work, and a sweep tries d²
places. See ``benchmarks/orders/starts.py``."""


@final
@dataclass(frozen=True)
class Boss(Search[LocalScore]):
    """Best order score search (Andrews et al. 2023).

    Each variable in turn moves to its best position in the order, until no move improves the score.
    Variables keep their parents when another one moves past them, and add or remove some only where
    that improves the score.

    Parameters
    ----------
    starts
        Number of orders to start from; the best result is returned. The first order is random;
        every further one is the best order so far with a few random swaps. By default, starts go on
        until as many in a row as there are variables have failed to improve the score; after about
        a second of work ten failures in a row are enough, and after about thirty seconds no start
        follows. Work is counted, not timed, so the graph does not depend on the machine. On a score
        table, the best listed parents are used and all starts are random orders.
    max_parents
        Maximum number of parents of a node; None for no limit.
    independent_starts
        Whether all starts are random orders, so that they can run in threads. Usually needs more
        work for the same score. Not used with a score table.
    jobs
        Number of threads among which independent starts are divided; -1 for one per core. The graph
        does not depend on it.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import simulate
    >>> dag = simulate.erdos_renyi(5, 6, seed=1)
    >>> numbers = simulate.linear(dag, 300, seed=1).data
    >>> ist.learn(numbers, search=ist.Boss(starts=10), seed=3).cpdag == ist.learn(numbers).cpdag
    True
    """

    starts: int | None = None
    max_parents: int | None = None
    independent_starts: bool = False
    jobs: int = -1
    accepts: ClassVar[Accepts] = (LOCAL_SCORES, PARENT_SETS)

    def __post_init__(self) -> None:
        require_integer(self, "starts", least=1, optional=True)
        require_integer(self, "max_parents", least=0, optional=True)
        require_boolean(self, "independent_starts")
        require_jobs(self, "jobs")

    def begin(
        self,
        objective: LocalScore | ScoreTable,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
    ) -> Run[SearchResult]:
        table = PARENT_SETS.of(objective)
        if table is not None:
            orders = OrderSearchState(
                table, knowledge, rng, max_parents=self.max_parents, max_parent_sets=None
            )
            return BossTableRun(self.starts, orders)
        return _BossRun(self, LOCAL_SCORES.require(objective), knowledge, rng)


class _Rules(TypedDict):
    """Arguments of a compiled run that do not depend on the number of starts."""

    required: Bools
    forbidden: Bools
    max_parents: int | None
    labels: Integers


@final
class _BossRun(Run[SearchResult]):
    def __init__(
        self,
        options: Boss,
        objective: LocalScore,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
    ) -> None:
        self._options = options
        self._objective = objective
        self._knowledge = knowledge
        self._rng = rng
        variables = None if options.independent_starts else len(objective.nodes)
        self._starts = Starts(options.starts, variables=variables)
        self._run: BossRun | ParallelBossRun | None = None
        self._families: dict[tuple[int, tuple[int, ...]], float] = {}
        self._work = self._steps()

    def step(self) -> bool:
        """Search for a few milliseconds; the first step only lets the caller look at the clock.

        With 10,000 variables the set-up takes seconds, which there may not be.
        """
        return next(self._work, True) is not None

    def _steps(self) -> Iterator[None]:
        yield
        labels = yield from canonical_labels(self._objective.kernel)
        rules = _Rules(
            required=self._knowledge.required,
            forbidden=self._knowledge.forbidden,
            max_parents=self._options.max_parents,
            labels=labels,
        )
        if self._options.independent_starts:
            yield from self._in_threads(rules, max(self._options.jobs, 0))
        else:
            yield from self._one_by_one(rules)

    def _one_by_one(self, rules: _Rules) -> Iterator[None]:
        run = self._run = BossRun(self._objective.kernel, self._rng, starts=1, **rules)
        while True:
            while not run.step():
                yield
            self._starts.record(self._total(run.current()))
            if not self._starts.more(self._seconds(run.work)):
                return
            run.allow(1)

    def _in_threads(self, rules: _Rules, jobs: int) -> Iterator[None]:
        """Begin starts in batches, whose size must not depend on the number of threads."""
        batch = _BATCH if self._options.starts is None else self._options.starts
        kernel = self._objective.kernel
        run = self._run = ParallelBossRun(kernel, self._rng, starts=batch, jobs=jobs, **rules)
        while True:
            while not run.step():
                yield
            for score in run.scores()[self._starts.number :]:
                self._starts.record(score)
            if not self._starts.more(self._seconds(run.work)):
                return
            run.allow(_BATCH)

    def _total(self, parents: Parents) -> float:
        """Score a graph. Most of its families are those of earlier starts."""
        total = 0.0
        for family in enumerate(parents):
            if family not in self._families:
                self._families[family] = self._objective.local(*family)
            total += self._families[family]
        return total

    def _seconds(self, work: tuple[int, int]) -> float:
        """Estimate the time of scoring the steps of so many families and of so many sweeps."""
        families, sweeps = work
        d = len(self._objective.nodes)
        per_family = _FAMILIES_PER_STEP * self._objective.seconds(_TYPICAL_PARENTS)
        return families * per_family + sweeps * d**2 * _PER_PLACE

    def best(self) -> SearchResult:
        """Return the graph of the best order so far, including the current one."""
        if self._run is None:
            return SearchResult(
                *required_graph(self._objective.kernel, self._knowledge.required),
                BossDetails(0, 0),
            )
        details = BossDetails(self._starts.number, self._starts.reached)
        return SearchResult(*self._run.best(), details, notes=self._starts.notes())

    def describe(self) -> tuple[str, float, float | None]:
        if self._run is None:
            return "setting up", math.nan, None
        return self._run.describe(), self._run.score, None

    def conclusion(self) -> str:
        return self._starts.conclusion()


_CHUNK = 32
_PER_LINE, _PER_PLACE = 1e-8, 3e-8
"""Estimated seconds of a sweep per line of the table, and per place that a variable can take."""


@final
class BossTableRun(Run[SearchResult]):
    """A run of BOSS that reads parents from a score table instead of grow-shrink trees."""

    def __init__(self, starts: int | None, orders: OrderSearchState) -> None:
        self._orders = orders
        self._starts = Starts(starts)
        self._start = 0
        self._sweeps = 0
        self._sweep = 0
        self._run: _native.TableRun | None = None
        self._total = -np.inf
        self._work = self._steps()

    def step(self) -> bool:
        """Read the table, or move some variables."""
        return next(self._work, True) is not None

    def _steps(self) -> Iterator[None]:
        orders = self._orders
        yield from orders.prepare()
        per_sweep = _PER_LINE * len(orders.table) + _PER_PLACE * len(orders.nodes) ** 2
        while self._starts.more(per_sweep * self._sweeps):
            self._start += 1
            self._sweep = 0
            run = yield from orders.begin(orders.draw())
            self._run, self._total = run, run.total
            gained = 1.0
            while gained > 0.0:
                orders.keep(run.order, self._total)
                gained = 0.0
                self._sweep += 1
                self._sweeps += 1
                queue = orders.rng.permutation(len(orders.nodes))
                for first in range(0, len(queue), _CHUNK):
                    run.sweep(queue[first : first + _CHUNK])
                    yield from settle(run)
                    gained += run.gained
                    self._total += run.gained
                    yield
            orders.keep(run.order, self._total)
            self._starts.record(self._total)
            self._run = None

    def best(self) -> SearchResult:
        if self._run is not None:
            self._orders.keep(self._run.order, self._run.total)
        effort = {"starts": self._start, "reached": self._starts.reached}
        return replace(self._orders.result(effort=effort), notes=self._starts.notes())

    def describe(self) -> tuple[str, float, float | None]:
        if self._start == 0:
            return self._orders.describe()
        text = f"start {self._start}, sweep {self._sweep}"
        return text, max(self._orders.score, self._total), None

    def conclusion(self) -> str:
        return self._starts.conclusion()
