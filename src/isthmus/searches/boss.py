"""Best order score search (BOSS), with the warm starts and the perturbations of FLOP.

BOSS: Andrews, Ramsey, Sánchez-Romero, Camchong and Kummerfeld, NeurIPS 2023. FLOP: Wienöbst,
Henckel and Weichwald, ICLR 2026. Works with every decomposable score; on score-equivalent ones it
is the most accurate search in our benchmarks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypedDict, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Bools, Integers
from isthmus.errors import KnowledgeError, MismatchError, counted
from isthmus.graphs import BoundKnowledge
from isthmus.kernels import _native
from isthmus.kernels.orders import BossRun, ParallelBossRun, Parents, required_graph
from isthmus.kernels.scoring import LocalScore as Kernel
from isthmus.objectives import LOCAL_SCORES, PARENT_SETS, LocalScore, ScoreTable
from isthmus.options import require_boolean, require_integer, require_jobs
from isthmus.results.details import BossDetails, ExactDetails
from isthmus.searches.base import Accepts, Search, SearchResult, TableStage, best_graph
from isthmus.searches.table_searches import OrderSearchState
from isthmus.watch import Watch

_BATCH = 4
"""Number of starts that are begun together in threads."""
_FAMILIES_PER_STEP, _TYPICAL_PARENTS, _PER_PLACE = 20, 3, 3e-8
"""What a step of the choice of parents and a place in the order cost: a step takes as long as this
many families, because extensions of one parent set share most of their work, and a sweep tries d²
places. See ``benchmarks/orders/starts.py``."""
_REACHED = 5
"""The best score is taken for the best of all when so many random starts have reached it."""
_FEWEST, _SECONDS, _MOST_SECONDS = 4, 1.0, 4.0
"""Otherwise random starts go on for a second of estimated work, and there are four of them if that
takes no longer than four seconds. See ``benchmarks/orders/starts.py``."""
_PERTURBATIONS, _LONG_SECONDS = 10, 30.0
"""A search that perturbs its best order ends when as many perturbations in a row have failed as
there are variables. After a second of estimated work this many failures are enough, and after
thirty seconds it ends anyway. Chosen on few tables; ``benchmarks/orders/dense.py`` measures the
result."""
_SAME = 1e-9
"""Relative difference of scores that are called the same."""


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

    def search(
        self,
        objective: LocalScore | ScoreTable,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        watch: Watch,
    ) -> SearchResult:
        table = PARENT_SETS.of(objective)
        if table is not None:
            orders = OrderSearchState(
                table, knowledge, rng, watch, max_parents=self.max_parents, max_parent_sets=None
            )
            return _search_table(self.starts, orders)
        boss = _Boss(self, LOCAL_SCORES.require(objective), knowledge, rng, watch)
        with watch.until_stopped():
            boss.search()
        return boss.result()


class _Rules(TypedDict):
    """Arguments of a compiled run that do not depend on the number of starts."""

    required: Bools
    forbidden: Bools
    max_parents: int | None
    labels: Integers


@final
class _Boss:
    """The starts, and the best order of all."""

    def __init__(
        self,
        options: Boss,
        objective: LocalScore,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        watch: Watch,
    ) -> None:
        self._options = options
        self._objective = objective
        self._knowledge = knowledge
        self._rng, self._watch = rng, watch
        variables = None if options.independent_starts else len(objective.nodes)
        self._starts = Starts(options.starts, variables=variables)
        self._run: BossRun | ParallelBossRun | None = None
        self._families: dict[tuple[int, tuple[int, ...]], float] = {}

    def search(self) -> None:
        """Search from all starts.

        It first lets the watch look at the clock: with 10,000 variables the set-up takes seconds.
        """
        self._watch.poll("setting up")
        labels = canonical_labels(self._objective.kernel, self._watch)
        rules = _Rules(
            required=self._knowledge.required,
            forbidden=self._knowledge.forbidden,
            max_parents=self._options.max_parents,
            labels=labels,
        )
        if self._options.independent_starts:
            self._in_threads(rules, max(self._options.jobs, 0))
        else:
            self._one_by_one(rules)

    def _one_by_one(self, rules: _Rules) -> None:
        run = self._run = BossRun(self._objective.kernel, self._rng, starts=1, **rules)
        while True:
            self._watch.run(run.step, lambda: (run.describe(), run.score, None))
            self._starts.record(self._total(run.current()))
            if not self._starts.more(self._seconds(run.work)):
                return
            run.allow(1)

    def _in_threads(self, rules: _Rules, jobs: int) -> None:
        """Begin starts in batches, whose size must not depend on the number of threads."""
        batch = _BATCH if self._options.starts is None else self._options.starts
        kernel = self._objective.kernel
        run = self._run = ParallelBossRun(kernel, self._rng, starts=batch, jobs=jobs, **rules)
        while True:
            self._watch.run(run.step, lambda: (run.describe(), run.score, None))
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

    def result(self) -> SearchResult:
        """Return the graph of the best order so far, including the current one."""
        if self._run is None:
            return SearchResult(
                *required_graph(self._objective.kernel, self._knowledge.required),
                BossDetails(0, 0),
            )
        starts = self._starts
        return SearchResult(
            *self._run.best(),
            BossDetails(starts.number, starts.reached),
            notes=starts.notes(),
            conclusion=starts.conclusion(),
        )


_CHUNK = 32
_PER_LINE, _PER_PLACE = 1e-8, 3e-8
"""Estimated seconds of a sweep per line of the table, and per place that a variable can take."""


def _search_table(starts: int | None, orders: OrderSearchState) -> SearchResult:
    """Read parents from a score table instead of grow-shrink trees."""
    kept = Starts(starts)
    start = sweeps = 0
    run: _native.TableRun | None = None
    with orders.watch.until_stopped():
        orders.prepare()
        per_sweep = _PER_LINE * len(orders.table) + _PER_PLACE * len(orders.nodes) ** 2
        while kept.more(per_sweep * sweeps):
            start += 1
            sweep = 0
            run = orders.begin(orders.draw())
            total, gained = run.total, 1.0
            while gained > 0.0:
                orders.keep(run.order, total)
                gained = 0.0
                sweep += 1
                sweeps += 1
                queue = orders.rng.permutation(len(orders.nodes))
                for first in range(0, len(queue), _CHUNK):
                    run.sweep(queue[first : first + _CHUNK])
                    orders.watch.run(run.step)
                    gained += run.gained
                    total += run.gained
                    best = max(orders.score, total)
                    orders.watch.poll(f"start {start}, sweep {sweep}", best)
            orders.keep(run.order, total)
            kept.record(total)
            run = None
    if run is not None:
        orders.keep(run.order, run.total)
    found = orders.result(kept.conclusion(), effort={"starts": start, "reached": kept.reached})
    return replace(found, notes=kept.notes())


@final
class Starts:
    """The scores that the starts of a search have reached, and whether there should be more.

    Parameters
    ----------
    number
        Number of starts; None to decide by the scores and the work. Work is counted, not timed, so
        that the same seed gives the same graph on every machine.
    variables
        Number of variables if starts after the first one are perturbations of the best order; None
        if they are random.
    """

    def __init__(self, number: int | None, *, variables: int | None = None) -> None:
        self._number = number
        self._variables = variables
        self._totals: list[float] = []

    def record(self, total: float) -> None:
        """Add the score that a start has reached."""
        self._totals.append(total)

    def more(self, seconds: float) -> bool:
        """Return whether there should be another start after this much estimated work."""
        done = len(self._totals)
        if self._number is not None:
            return done < self._number
        if self._variables is not None:
            enough = max(_PERTURBATIONS, self._variables if seconds < _SECONDS else 0)
            return seconds < _LONG_SECONDS and self._unimproved < enough
        if self.reached >= _REACHED:
            return False
        return seconds < (_MOST_SECONDS if done < _FEWEST else _SECONDS)

    @property
    def number(self) -> int:
        """Number of finished starts."""
        return len(self._totals)

    @property
    def reached(self) -> int:
        """Number of starts that have reached the best score."""
        if not self._totals:
            return 0
        best = max(self._totals)
        return sum(total >= best - _SAME * max(1.0, abs(best)) for total in self._totals)

    @property
    def _unimproved(self) -> int:
        """Number of starts since the first one that reached the best score."""
        if not self._totals:
            return 0
        best = max(self._totals)
        same = _SAME * max(1.0, abs(best))
        first = next(i for i, total in enumerate(self._totals) if total >= best - same)
        return len(self._totals) - 1 - first

    def conclusion(self) -> str:
        """Explain why the search stopped, and how many starts agree."""
        reason = "this is a local optimum; no move of a variable in the order improves the score."
        if self.number < 2:
            return f"{reason} There was one start."
        if self.reached == self.number:
            return f"{reason} All {self.number} starts reached it."
        return f"{reason} {self.reached} of {self.number} starts reached it."

    def notes(self) -> tuple[str, ...]:
        """Say so if the result may depend on chance."""
        if self.number < 2 or self.reached > 1:
            return ()
        note = (
            f"Only one of {counted(self.number, 'start')} of the search reached this score, so "
            "there may be better graphs, and another seed may give a different one. Use "
            f"Boss(starts={10 * self.number}) to search longer, or isthmus.bootstrap to see which "
            "edges are stable."
        )
        return (note,)


def canonical_labels(score: Kernel, watch: Watch) -> Integers:
    """Sort the variables by how much single parents raise their scores.

    Random orders of these labels, unlike those of columns, depend neither on the order of the
    columns nor on their names or units, and so neither does the graph that a search finds.
    """
    gains = np.zeros(score.size)
    none = np.empty(0, np.int64)
    for v in range(score.size):
        others = np.delete(np.arange(score.size), v)
        scores = score.extensions(v, none, others)
        # A parent set that is not allowed has the score minus infinity.
        raised = scores[1:] - scores[0] if np.isfinite(scores[0]) else none
        gains[v] = raised[np.isfinite(raised)].sum()
        watch.poll("setting up")
    return np.argsort(gains, kind="stable")


# --- Learn parents along a known order: greedily (K2) or exactly --------------------------------

_NOISE = 1e-12
"""Gains up to this fraction of the score are rounding errors, as for constant columns."""


@final
@dataclass(frozen=True)
class KnownOrder(Search[LocalScore]):
    """Learn the parents of each variable among those before it in a known order.

    By default this is K2 (Cooper and Herskovits 1992): it adds the parent that improves the score
    most, until none does or ``max_parents`` is reached. It can miss parents that help only
    together. With ``exact``, no graph that agrees with the order scores more. On a score table, the
    best listed parent sets are always found.

    Parameters
    ----------
    order
        Names of all variables, causes before effects.
    max_parents
        Maximum number of parents of a node; None for no limit.
    exact
        Whether to find the best parent sets instead of adding parents one by one.

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=1000, seed=1)
    >>> order = ist.KnownOrder(data.dag.nodes, max_parents=2, exact=True)
    >>> ist.learn(data, score=ist.BIC(), search=order).dag.parents("either")
    ('tub', 'lung')
    """

    order: Sequence[str]
    max_parents: int | None = None
    exact: bool = False
    accepts: ClassVar[Accepts] = (LOCAL_SCORES, PARENT_SETS)

    def __post_init__(self) -> None:
        if isinstance(self.order, str):
            raise MismatchError(
                f"The order must be a list of names; the string {self.order!r} was given."
            )
        object.__setattr__(self, "order", tuple(self.order))
        require_integer(self, "max_parents", least=0, optional=True)
        require_boolean(self, "exact")

    def search(
        self,
        objective: LocalScore | ScoreTable,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        watch: Watch,
    ) -> SearchResult:
        places = _places(self.order, objective.nodes)
        bound = _after(knowledge, places, objective.nodes)
        table = PARENT_SETS.of(objective)
        if table is not None:
            table = table.restrict(bound, self.max_parents)
            return _first_lines(table, best_graph(bound, self.max_parents, table, ordered=True))
        local = LOCAL_SCORES.require(objective)
        if self.exact:
            stage = TableStage(local, bound, self.max_parents)
            with watch.until_stopped():
                stage.listed(watch)
            claim = best_graph(bound, self.max_parents, ordered=True)
            return _first_lines(stage.so_far(), claim)
        return self._greedy(local, bound, np.argsort(places).tolist(), watch)

    def _greedy(
        self, local: LocalScore, knowledge: BoundKnowledge, order: list[int], watch: Watch
    ) -> SearchResult:
        """Add parents one by one (K2)."""
        d = len(order)
        most = d if self.max_parents is None else self.max_parents
        parents = [tuple(np.flatnonzero(knowledge.required[:, v]).tolist()) for v in range(d)]
        free = ~knowledge.forbidden & ~knowledge.required
        scores: dict[int, float] = {}
        with watch.until_stopped():
            for v in order:
                chosen, candidates = list(parents[v]), np.flatnonzero(free[:, v]).tolist()
                score = local.local(v, chosen)
                while candidates and len(chosen) < most:
                    values = local.extensions(v, chosen, candidates)[1:]
                    best = int(np.argmax(values))
                    if not values[best] > score + _NOISE * max(1.0, abs(score)):
                        break
                    score = float(values[best])
                    chosen.append(candidates.pop(best))
                    watch.poll()
                parents[v], scores[v] = tuple(sorted(chosen)), score
                text = f"{len(scores)} of {d} variables"
                watch.poll(text, sum(scores.values()), len(scores) / d)
        total = 0.0
        for v, own in enumerate(parents):
            total += scores[v] if v in scores else local.local(v, own)
        return SearchResult(
            tuple(parents),
            total,
            conclusion=(
                "no single earlier variable improves the score as a parent; several together might."
            ),
        )


def _places(order: Sequence[str], nodes: tuple[str, ...]) -> NDArray[np.int64]:
    """Return the position of each node in the order."""
    missing = [name for name in nodes if name not in set(order)]
    unknown = [name for name in order if name not in set(nodes)]
    if missing or unknown or len(order) != len(nodes):
        twice = sorted({name for name in order if list(order).count(name) > 1})
        raise MismatchError(
            "The order must contain every variable exactly once. "
            + (f"Missing: {missing[:5]}. " if missing else "")
            + (f"Not in the data: {unknown[:5]}. " if unknown else "")
            + (f"Repeated: {twice[:5]}. " if twice else "")
            + f"The variables are {list(nodes[:10])}{' …' if len(nodes) > 10 else ''}."
        )
    position = {name: i for i, name in enumerate(order)}
    return np.array([position[name] for name in nodes], np.int64)


def _after(
    knowledge: BoundKnowledge, places: NDArray[np.int64], nodes: tuple[str, ...]
) -> BoundKnowledge:
    """Forbid edges from later to earlier variables."""
    backwards = places[:, None] > places[None, :]
    wrong = knowledge.required & backwards
    if wrong.any():
        p, v = np.argwhere(wrong)[0]
        raise KnowledgeError(
            f"The edge {nodes[p]} → {nodes[v]} is required, but {nodes[v]!r} comes first in the "
            "order. Change the order, or remove the required edge."
        )
    return BoundKnowledge(knowledge.required, knowledge.forbidden | backwards)


def _first_lines(table: ScoreTable, claim: str) -> SearchResult:
    """Return the first parent sets of a table that is restricted to the order: the best ones."""
    first = table.starts[:-1]
    parents = tuple(table.members(int(line)) for line in first)
    details = ExactDetails(None, None, len(table))
    score = float(table.scores[first].sum())
    return SearchResult(parents, score, details, conclusion=f"{claim}.")
