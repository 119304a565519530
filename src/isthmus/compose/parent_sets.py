"""Score tables from data, on one core, on several, or on a cluster; and searches over them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from isthmus.errors import MismatchError, MissingExtraError
from isthmus.graphs import DAG, BoundKnowledge, Knowledge
from isthmus.objectives import LocalScore, ScoreTable, TableBuilder
from isthmus.objectives.parent_set_blocks import Block
from isthmus.results import Disclosure, Solution
from isthmus.scores import BIC
from isthmus.scores.base import Score
from isthmus.searches import AStar, Search, drive
from isthmus.sources import as_source
from isthmus.statistics import Counts, Kind, Moments, Plan

AnyScore: TypeAlias = Score[Any, Any]

_CHUNKS = 64


def parent_sets(
    data: object,
    *,
    score: AnyScore | None = None,
    max_parents: int | None = None,
    knowledge: Knowledge | None = None,
    slack: float = 0.0,
    time_limit: float | None = None,
    jobs: int | None = 1,
    kinds: Mapping[str, Kind] | None = None,
) -> ScoreTable:
    """List for each variable the parent sets that can be part of a best graph.

    Parameters
    ----------
    data
        As for :func:`~isthmus.learn`.
    score
        A local score; BIC by default.
    max_parents
        Upper bound on the number of parents; None for no bound.
    knowledge
        Edges and orders that are known beforehand.
    slack
        Also list sets that score up to this much less than one of their subsets.
    time_limit
        Seconds, for all variables together. When they are over the best sets found so far are
        given, and ``complete`` is False. Sets that look good by what is known of their parts
        come first.
    jobs
        Processes, by joblib (extra ``[parallel]``): 1 is this process, -1 as many as there are
        cores, None what joblib's own configuration says, which is the way to a Ray or Dask cluster.
    kinds
        How to read some columns.
    """
    chosen: AnyScore = BIC() if score is None else score
    source = as_source(data, kinds=kinds)
    statistics: Moments | Counts
    if chosen.needs is Counts:
        statistics = source.counts(Plan.everything())
    elif chosen.needs is Moments:
        statistics = source.moments()
    else:
        raise MismatchError(f"{chosen!r} is no local score. Give one such as BIC().")
    nodes = statistics.schema.names
    known = (Knowledge() if knowledge is None else knowledge).bind(nodes)
    d = len(nodes)
    share = None if time_limit is None else time_limit / max(1, d)
    parts = [list(range(first, d, _CHUNKS)) for first in range(min(d, _CHUNKS))]
    options = {"max_parents": max_parents, "slack": slack}
    local = _bound(chosen, statistics)
    if jobs == 1:
        parts = [list(range(d))]
        results = [_blocks(local, known, part, options, share) for part in parts]
    else:
        results = _in_parallel(jobs, chosen, statistics, known, parts, options, share)
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


def solve(
    table: ScoreTable,
    *,
    search: Search[Any] | None = None,
    knowledge: Knowledge | None = None,
    seed: int = 0,
    time_limit: float | None = None,
) -> Solution:
    """Search a score table, however it was made; as :func:`~isthmus.learn` without data.

    Parameters
    ----------
    table
        From :func:`parent_sets`, or read by ``ScoreTable.load``.
    search
        A search that takes tables; :class:`~isthmus.AStar` by default.
    knowledge
        Edges that are forbidden. What is required must be known when the table is made.
    seed
        Of all random choices.
    time_limit
        Seconds after which the best graph so far is returned.
    """
    looked: Search[Any] = AStar() if search is None else search
    known = Knowledge() if knowledge is None else knowledge
    run = looked.begin(table, known.bind(table.nodes), np.random.default_rng(seed))
    found, status = drive(run, type(looked).__name__, time_limit=time_limit)
    return Solution(
        dag=DAG.from_parents(table.nodes, found.parents),
        score=found.score,
        status=status,
        disclosure=Disclosure.none(),
        choice=f"A score table of {len(table)} parent sets; search {looked!r}.",
        equivalent=table.equivalent,
        knowledge=knowledge,
        details=found.details,
    )


def _bound(score: AnyScore, statistics: Moments | Counts) -> LocalScore:
    local = score.bind(statistics)
    if not isinstance(local, LocalScore):
        raise MismatchError(f"{score!r} scores weights, not graphs. Give one such as BIC().")
    return local


def _blocks(
    local: LocalScore,
    known: BoundKnowledge,
    children: list[int],
    options: Mapping[str, Any],
    share: float | None,
) -> tuple[list[Block], bool]:
    """Parent sets of some children, and whether they are complete."""
    found: list[Block] = []
    complete = True
    end = 0.0 if share is None else time.monotonic() + share * len(children)
    for number, child in enumerate(children):
        builder = TableBuilder(local, knowledge=known, children=[child], **options)
        now = time.monotonic()
        # What a child does not need is left to the others.
        limit = None if share is None else now + (end - now) / (len(children) - number)
        finished = builder.run_until(limit)
        found += builder.blocks()
        complete = complete and finished
    return found, complete


def _work(
    score: AnyScore,
    statistics: Moments | Counts,
    known: BoundKnowledge,
    children: list[int],
    options: Mapping[str, Any],
    share: float | None,
) -> tuple[list[Block], bool]:
    """What one process does: statistics travel, compiled scores are made where they are used."""
    return _blocks(_bound(score, statistics), known, children, options, share)


def _in_parallel(
    jobs: int | None,
    score: AnyScore,
    statistics: Moments | Counts,
    known: BoundKnowledge,
    parts: list[list[int]],
    options: Mapping[str, Any],
    share: float | None,
) -> list[tuple[list[Block], bool]]:
    try:
        from joblib import Parallel, delayed
    except ImportError:
        raise MissingExtraError("joblib", "parallel", "Work in several processes") from None
    found: list[tuple[list[Block], bool]] = Parallel(n_jobs=jobs)(
        delayed(_work)(score, statistics, known, part, options, share) for part in parts
    )
    return found
