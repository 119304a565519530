"""Score a graph, and compute statistics."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from isthmus.arrays import Work, completed_within
from isthmus.errors import ArgumentError, MissingExtraError, a_type
from isthmus.graphs import DAG, BoundKnowledge, Knowledge
from isthmus.objectives import LOCAL_SCORES, LocalScore, ScoreTable
from isthmus.objectives.table import FEW, Block, TableBuilder
from isthmus.options import is_number
from isthmus.statistics import CountPlan, Counts, Kind, Moments, Summary
from isthmus.tables import Missing, TimeUnit, as_source
from isthmus.verbs.arguments import (
    AnyScore,
    check_count,
    check_dag,
    check_jobs,
    check_kinds,
    check_missing,
    check_score,
    check_time_limit,
)
from isthmus.verbs.prepare import prepare, refuse_left_to_scores, warn_of_reading


def score(
    data: object,
    dag: DAG,
    score: AnyScore | None = None,
    *,
    kinds: Mapping[str, Kind | TimeUnit | str] | None = None,
    missing: Missing | None = None,
    groups: str | None = None,
) -> float:
    """Compute the score of a graph on data.

    Only the statistics of the graph's families are requested from the source.

    Parameters
    ----------
    data
        As for :func:`~isthmus.learn`.
    dag
        The graph; its nodes are columns of the data.
    score
        A local score, such as ``BIC()`` or ``GaussianBIC()``; by default the one that
        :func:`~isthmus.learn` would choose from the columns.
    kinds
        How to read some columns.
    missing
        How to handle missing values, as for :func:`~isthmus.learn`, except `StructuralEM`.
    groups
        Name of the column of groups of a table, as for :func:`~isthmus.learn`.

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=1000, seed=1)
    >>> empty = ist.DAG(data.dag.nodes)
    >>> ist.score(data, data.dag) > ist.score(data, empty)
    True
    """
    problem = prepare(
        data,
        score=None if score is None else check_score(score),
        accepts=(LOCAL_SCORES,),
        kinds=kinds,
        missing=missing,
        groups=groups,
        dag=check_dag(dag),
    )
    warn_of_reading(problem.reading)
    return LOCAL_SCORES.require(problem.objective).total(dag)


def summarise(
    data: object,
    *,
    plan: CountPlan | None = None,
    kinds: Mapping[str, Kind | TimeUnit | str] | None = None,
    missing: Missing | None = None,
    groups: str | None = None,
) -> Moments | Counts:
    """Compute the statistics that scores need, so that you can save them, add them or learn later.

    Parameters
    ----------
    data
        As for :func:`~isthmus.learn`.
    plan
        The tables to count; without a plan the moments are computed.
    kinds
        How to read some columns.
    missing
        How to handle missing values: `DropRows`, `MissingAsLevel` or
        `ExpectationMaximisation`; by default they are refused.
    groups
        Name of the column of groups of a table, as for :func:`~isthmus.learn`.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import simulate
    >>> dag = simulate.erdos_renyi(5, 6, seed=1)
    >>> numbers = simulate.linear(dag, 300, seed=1).data
    >>> ist.summarise(numbers).mean().shape
    (5,)
    """
    check_kinds(kinds)
    if plan is not None and not isinstance(plan, CountPlan):
        raise ArgumentError(
            f"plan must be a Plan; {a_type(plan)} was given. "
            "Write plan=CountPlan.everything() or plan=CountPlan.sets([['a', 'b'], ['b', 'c']])."
        )
    source = as_source(data, kinds=kinds, missing=check_missing(missing), groups=groups)
    refuse_left_to_scores(source, "or give the table itself to learn, score or parent_sets")
    return source.moments() if plan is None else source.counts(plan)


# --- List the parent sets that can be part of an optimal graph, on one core or on many ----------

_CHUNKS = 64


def parent_sets(
    data: object,
    *,
    score: AnyScore | None = None,
    max_parents: int | None = None,
    knowledge: Knowledge | None = None,
    slack: float = 0.0,
    time_limit: float | None = None,
    jobs: int | None = -1,
    kinds: Mapping[str, Kind | TimeUnit | str] | None = None,
    missing: Missing | None = None,
    groups: str | None = None,
) -> ScoreTable:
    """List for each variable the parent sets that can be part of an optimal graph.

    Parameters
    ----------
    data
        As for :func:`~isthmus.learn`.
    score
        A local score. By default chosen from the column types, as for :func:`~isthmus.learn`.
    max_parents
        Upper bound on the number of parents; None for no bound.
    knowledge
        Required and forbidden edges, and tiers.
    slack
        Also list sets that score up to this much less than one of their subsets.
    time_limit
        Stop after this many seconds and return the sets found so far, the most promising of which
        are scored first; ``complete`` is then False.
    jobs
        Number of threads; -1 for one per core. The table does not depend on it. None distributes
        the variables over processes as joblib is configured (extra ``[parallel]``), for example
        over a Ray or Dask cluster.
    kinds
        How to read some columns.
    missing
        How to handle missing values, as for :func:`~isthmus.learn`, except `StructuralEM`.
    groups
        Name of the column of groups of a table, as for :func:`~isthmus.learn`.

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=1000, seed=1)
    >>> table = ist.parent_sets(data, score=ist.BIC(), max_parents=2)
    >>> len(table.nodes)
    8
    """
    check_count(max_parents, "max_parents")
    time_limit = check_time_limit(time_limit)
    if not is_number(slack) or not slack >= 0:
        raise ArgumentError(f"slack must be a number of at least 0; {slack!r} was given.")
    threads = check_jobs(jobs)
    problem = prepare(
        data,
        score=score,
        accepts=(LOCAL_SCORES,),
        knowledge=knowledge,
        kinds=kinds,
        missing=missing,
        groups=groups,
    )
    warn_of_reading(problem.reading)
    local, known, nodes = (
        LOCAL_SCORES.require(problem.objective),
        problem.constraints,
        problem.objective.nodes,
    )
    d = len(nodes)
    share = None if time_limit is None else time_limit / max(1, d)
    parts = [list(range(first, d, _CHUNKS)) for first in range(min(d, _CHUNKS))]
    options = {"max_parents": max_parents, "slack": slack}
    if threads is not None:
        parts = [list(range(d))]
        results = [_blocks(local, known, part, options, share, threads) for part in parts]
    else:
        results = _in_parallel(problem.score, problem.statistics, known, parts, options, share)
    found: dict[int, Block] = {}
    for part, (blocks, _) in zip(parts, results, strict=True):
        found.update(zip(part, blocks, strict=True))
    return ScoreTable.from_blocks(
        nodes,
        [found[v] for v in range(d)],
        equivalent=local.equivalent,
        complete=all(complete for _, complete in results),
        max_parents=max_parents,
        required=known.required,
        slack=slack,
    )


def _bounded(local: LocalScore) -> Work[bool]:
    """Compute the bound of a score on supersets, which builders then use."""
    yield from local.ceiling_work()
    return True


def _blocks(
    local: LocalScore,
    known: BoundKnowledge,
    children: list[int],
    options: Mapping[str, Any],
    share: float | None,
    threads: int = 1,
) -> tuple[list[Block], bool]:
    """Parent sets of some children, and whether they are complete."""
    if share is None:
        builder = TableBuilder(local, knowledge=known, children=children, jobs=threads, **options)
        finished = builder.run_until(None)
        return builder.blocks(), finished
    found: list[Block] = []
    complete = True
    end = time.monotonic() + share * len(children)
    bounded = completed_within(_bounded(local), 0.5 * share * len(children)) is not None
    size = threads if len(local.nodes) <= FEW else len(children)
    for first in range(0, len(children), size):
        group = children[first : first + size]
        builder = TableBuilder(
            local, knowledge=known, children=group, jobs=threads, bounded=bounded, **options
        )
        now = time.monotonic()
        # What a child does not need is left to the others.
        limit = now + (end - now) * size / (len(children) - first)
        finished = builder.run_until(min(limit, end))
        found += builder.blocks()
        complete = complete and finished
    return found, complete


def _work(
    score: AnyScore,
    statistics: Summary,
    known: BoundKnowledge,
    children: list[int],
    options: Mapping[str, Any],
    share: float | None,
) -> tuple[list[Block], bool]:
    """Score the parent sets of some nodes in one process; compiled scores are made there."""
    return _blocks(LOCAL_SCORES.require(score.bind(statistics)), known, children, options, share)


def _in_parallel(
    score: AnyScore,
    statistics: Summary,
    known: BoundKnowledge,
    parts: list[list[int]],
    options: Mapping[str, Any],
    share: float | None,
) -> list[tuple[list[Block], bool]]:
    try:
        from joblib import Parallel, delayed
    except ImportError:
        raise MissingExtraError("joblib", "parallel", "Work in several processes") from None
    found: list[tuple[list[Block], bool]] = Parallel(n_jobs=None)(
        delayed(_work)(score, statistics, known, part, options, share) for part in parts
    )
    return found
