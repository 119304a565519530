"""Measure how stable a learned graph is, by learning it again from resampled rows."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, final

import numpy as np

from isthmus.errors import MissingExtraError, NoDrawsError
from isthmus.graphs import DAG, Knowledge
from isthmus.objectives import LOCAL_SCORES
from isthmus.options import described
from isthmus.results import Ensemble
from isthmus.scores import DegenerateGaussian
from isthmus.searches.reversals import best_on_same_pairs
from isthmus.statistics import Kind, Moments, Resampler
from isthmus.tables import Missing, TimeUnit, Transform
from isthmus.verbs.arguments import (
    AnyScore,
    AnySearch,
    check_count,
    check_jobs,
    check_progress,
    check_seed,
    check_time_limit,
)
from isthmus.verbs.curves import (
    Again,
    challenge_default,
    fits_lines,
    judged_by,
    needs_classes,
)
from isthmus.verbs.defaults import choose_search, reporter_for
from isthmus.verbs.fit import StructuralEMSearch
from isthmus.verbs.notes import notes_on
from isthmus.verbs.prepare import Problem, prepare, refuse_joint_bootstrap, require_capability
from isthmus.watch import Progress, Watch

_POLL = 0.05
"""Seconds between two looks at the clock, while threads work."""
_REPORT_INTERVAL = 0.2


def bootstrap(
    data: object,
    *,
    score: AnyScore | None = None,
    search: AnySearch | None = None,
    replicates: int = 200,
    knowledge: Knowledge | None = None,
    kinds: Mapping[str, Kind | TimeUnit | str] | None = None,
    missing: Missing | None = None,
    groups: str | None = None,
    transform: Transform | None = None,
    seed: int = 0,
    jobs: int | None = -1,
    time_limit: float | None = None,
    progress: bool | Callable[[Progress], None] | None = None,
) -> Ensemble:
    """Learn a graph from each of many tables whose rows are drawn with replacement.

    The share of the replicates that have an edge measures how stable the edge is: how much it
    depends on particular rows (Friedman, Goldszmidt and Wyner 1999). If the score gives equivalent
    graphs the same value, each replicate is represented by a random member of its equivalence
    class, so that a direction that the data do not determine is counted about half of the time.

    Parameters
    ----------
    data
        As for :func:`~isthmus.learn`. Discrete tables may also be in an engine, or be given as
        counts of everything: they are resampled from their counts. Other tables need their rows.
    score, search
        As for :func:`~isthmus.learn`: by default chosen from the columns. All replicates use the
        same score and search.
    replicates
        Number of resampled tables.
    knowledge
        Required and forbidden edges, and tiers.
    kinds
        How to read some columns.
    missing
        What to do about missing values, as for :func:`~isthmus.learn`; by default they are
        refused. Rows are drawn with their missing values, and each replicate estimates moments or
        completes rows by itself, so that the shares include what is lost with them.
    groups
        Name of the column of groups of a table, as for :func:`~isthmus.learn`.
    transform
        A step that replaces numbers by normal scores or by levels, as for :func:`~isthmus.learn`.
        It is computed once, from the whole table.
    seed
        Random seed. The same seed gives the same ensemble, whatever `jobs` is.
    jobs
        Number of threads; -1 for one per core. None distributes the replicates over processes as
        joblib is configured (extra ``[parallel]``), for example over a Ray or Dask cluster.
    time_limit
        Stop after this many seconds and return the replicates that are finished. It does not apply
        to processes.
    progress
        As for :func:`~isthmus.learn`.

    Returns
    -------
    Ensemble
        The learned graphs with their shares of the replicates, from which follow shares of edges,
        directions, paths and Markov blankets, and an averaged graph. Ctrl-C returns the replicates
        that are finished.

    Raises
    ------
    MismatchError
        If the source has neither rows nor counts to draw from.
    NoDrawsError
        If the time limit ends before the first replicate is finished.

    Examples
    --------
    >>> import numpy as np
    >>> import isthmus as ist
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=200)
    >>> table = {"a": a, "b": a + rng.normal(size=200), "c": rng.normal(size=200)}
    >>> ensemble = ist.bootstrap(table, replicates=50)
    >>> float(ensemble.adjacency_probabilities()[0, 1])
    1.0
    """
    seed, time_limit = check_seed(seed), check_time_limit(time_limit)
    check_count(replicates, "replicates", least=1, optional=False)
    check_progress(progress)
    threads = check_jobs(jobs)
    begin = time.monotonic()
    refuse_joint_bootstrap(data, search)
    options: dict[str, Any] = {
        "knowledge": knowledge,
        "kinds": kinds,
        "missing": missing,
        "groups": groups,
    }
    problem = prepare(
        data, score=score, search=search, **options, transform=transform, structural_em=True
    )
    chosen = f"Score {described(problem.score)} ({problem.score_reason})"
    model, sentence, directed = problem, "", not problem.objective.equivalent
    lines = None
    if score is None and fits_lines(problem):
        until = math.inf if time_limit is None else begin + problem.waited + time_limit
        again = Again(data, transform, options, search, seed, until=until)
        challenged = challenge_default(problem, again)
        sentence = f" {challenged.sentence}"
        if challenged.changed:
            model, directed = challenged.problem, challenged.directed
            lines = challenged.score_of_lines()
            problem = judged_by(problem, model)
            if search is not None and needs_classes(search, problem):
                search = None
    if search is None:
        search, reason = choose_search(problem.schema, problem.objective, runs=replicates)
    else:
        reason = "as requested"
    require_capability(problem.score, problem.objective.capabilities, search.accepts, search)
    resampler = model.statistics.resampler(model.source)
    plan = _Replicates(model, resampler, search, seed, directed=directed, lines=lines)
    if threads is None:
        dags = _in_processes(plan, replicates)
    else:
        end = None if time_limit is None else begin + problem.waited + time_limit
        with reporter_for(progress) as report:
            dags = _in_threads(plan, replicates, threads, end, report)
    choice = f"{chosen}; search {described(search)} ({reason}).{sentence}"
    notes = [choice, *resampler.notes]
    if len(dags) < replicates:
        notes.append(f"It was stopped after {len(dags)} of {replicates} replicates.")
    ensemble = Ensemble.from_dags(
        dags, disclosure=problem.source.disclosure(), rows=problem.statistics.number_of_rows
    )
    notes += notes_on(problem, ensemble.averaged_graph(), named=score is not None)
    return replace(ensemble, notes=tuple(notes))


@final
class _Replicates:
    """Learns one replicate after the other; each has a seed of its own."""

    def __init__(
        self,
        problem: Problem,
        resampler: Resampler,
        search: AnySearch,
        seed: int,
        *,
        directed: bool,
        lines: DegenerateGaussian | None,
    ) -> None:
        completes = problem.source.missing is not None and problem.source.missing.completes
        self._completed = problem if completes else None
        self._directed, self._lines = directed, lines
        self._score = problem.score
        self._knowledge = problem.knowledge
        self._bound = problem.constraints
        self._resampler = resampler
        self._search = search
        self._seed = seed
        self.name = f"bootstrap of {type(search).__name__}"

    def learn(self, number: int, stopped: Callable[[], bool] = lambda: False) -> DAG | None:
        """Learn one graph; None if it was stopped."""
        rng = np.random.default_rng((self._seed, number))
        statistics = self._resampler.draw(rng)
        objective = self._score.bind(statistics)
        if stopped():
            return None
        work = partial(self._search.search, objective, self._bound, rng)
        completing = None
        if self._completed is not None:
            drawn = replace(self._completed, statistics=statistics, objective=objective)
            completing = StructuralEMSearch.of(drawn, self._search, work, rng)
        watch = Watch(stop=stopped)
        best = (completing or work)(watch)
        watch.reraise()
        if watch.stopped:
            return None
        nodes = objective.nodes
        dag = DAG.from_parents(nodes, best.parents)
        if self._directed:
            return dag
        known = self._knowledge
        identified = [(nodes[a], nodes[b]) for a, b in best.identified]
        known = replace(known, required=tuple({*known.required, *identified}))
        told = dag.cpdag() if known == Knowledge() else dag.cpdag(known)
        if self._lines is None:
            return told.random_dag(rng)
        assert isinstance(statistics, Moments)
        local = LOCAL_SCORES.require(self._lines.bind(statistics))
        also, pairs = best_on_same_pairs(local, dag, known)
        kept = {*told.directed} & {*also.cpdag(pairs).directed}
        return _random_with(dag, kept | {e for e in dag.edges if not known.permits(*e[::-1])}, rng)


def _random_with(dag: DAG, kept: Collection[tuple[str, str]], rng: np.random.Generator) -> DAG:
    """Return a graph with the same pairs, along a random order that agrees with some directions."""
    before: dict[str, set[str]] = {node: set() for node in dag.nodes}
    for a, b in kept:
        before[b].add(a)
    place: dict[str, int] = {}
    while len(place) < len(dag.nodes):
        free = [v for v in dag.nodes if v not in place and before[v] <= place.keys()]
        place[free[rng.integers(len(free))]] = len(place)
    return DAG(dag.nodes, [(a, b) if place[a] < place[b] else (b, a) for a, b in dag.edges])


def _in_threads(
    plan: _Replicates,
    replicates: int,
    threads: int,
    end: float | None,
    report: Callable[[Progress], None] | None,
) -> list[DAG]:
    """Learn in threads, which share the rows; the compiled core lets them run side by side."""
    begin = told = time.monotonic()
    numbers, ended = iter(range(replicates)), SimpleQueue[None]()
    learned: dict[int, DAG] = {}
    stop = threading.Event()
    interrupted = False
    tasks: list[Future[None]] = []

    def work() -> None:
        try:
            while not stop.is_set() and (number := next(numbers, None)) is not None:
                dag = plan.learn(number, stop.is_set)
                if dag is not None:
                    learned[number] = dag
        except BaseException:
            stop.set()
            raise
        finally:
            ended.put(None)

    with ThreadPoolExecutor(min(threads, replicates)) as pool:
        try:
            tasks += [pool.submit(work) for _ in range(min(threads, replicates))]
            running = len(tasks)
            while running and (end is None or time.monotonic() < end):
                # Unlike concurrent.futures.wait, get can be interrupted without holding a lock.
                with suppress(Empty):
                    ended.get(timeout=_POLL)
                    running -= 1
                now = time.monotonic()
                if report is not None and now - told >= _REPORT_INTERVAL:
                    told = now
                    share = len(learned) / replicates
                    text = f"{len(learned)} of {replicates} replicates"
                    report(Progress(plan.name, text, float("nan"), now - begin, share))
        except KeyboardInterrupt:
            interrupted = True
        finally:
            stop.set()
    for task in tasks:
        task.result()
    if learned:
        return [learned[number] for number in sorted(learned)]
    if interrupted:
        raise KeyboardInterrupt
    raise NoDrawsError(
        "The bootstrap was stopped by the time limit before its first replicate was finished. "
        "Allow more time, or name a quicker search."
    )


def _in_processes(plan: _Replicates, replicates: int) -> list[DAG]:
    """Learn in processes, as joblib is configured."""
    try:
        from joblib import Parallel, delayed
    except ImportError:
        raise MissingExtraError("joblib", "parallel", "Work in several processes") from None
    size = max(1, replicates // (4 * (os.cpu_count() or 1)))
    parts = [range(i, min(i + size, replicates)) for i in range(0, replicates, size)]
    found: list[list[DAG]] = Parallel(n_jobs=None)(delayed(_part)(plan, part) for part in parts)
    return [dag for part in found for dag in part]


def _part(plan: _Replicates, numbers: range) -> list[DAG]:
    dags = [plan.learn(number) for number in numbers]
    return [dag for dag in dags if dag is not None]
