"""Run a search again and again, until all tables that it looked at were counted.

Each run uses estimates of tables that are not known yet; see `isthmus.statistics.on_demand`. What
it looked at is asked for in one batch. The last run used counts only, so that its result is that of
a search in all tables.
"""

from __future__ import annotations

from dataclasses import replace
from math import nan
from typing import Any, final

import numpy as np

from isthmus.errors import counted
from isthmus.graphs import DAG
from isthmus.kernels.scoring import ScoreFailed
from isthmus.objectives import LOCAL_SCORES
from isthmus.scores.requested import on_request
from isthmus.searches import SearchResult
from isthmus.statistics import Counts, Summary
from isthmus.statistics.on_demand import TablesOnDemand
from isthmus.statistics.requested import LARGEST_TABLE, RequestedCounts
from isthmus.verbs.arguments import AnySearch
from isthmus.verbs.prepare import Problem
from isthmus.watch import Watch


def within_tables(search: AnySearch, reason: str, statistics: Summary) -> tuple[AnySearch, str]:
    """Limit a search that nobody named to the tables that were planned, or may be asked for."""
    if not isinstance(statistics, Counts):
        return search, reason
    tables = statistics.on_demand
    limit = statistics.plan.limit if tables is None else tables.limit
    if limit is None or limit >= len(statistics.schema):
        return search, reason
    limits = {"max_parents": limit - 1, "max_conditioning": max(limit - 2, 0)}
    chosen: Any = search
    own = {name: limits[name] for name in limits if hasattr(chosen, name)}
    return replace(chosen, **own), f"{reason}, within the planned tables"


@final
class OnDemandSearch:
    """A search whose tables are asked for in batches.

    Parameters
    ----------
    problem
        A problem whose score was bound to the tables.
    """

    def __init__(
        self, problem: Problem, tables: TablesOnDemand, search: AnySearch, seed: int
    ) -> None:
        self._tables = tables
        self._problem = problem
        self._search = search
        self._seed = seed
        self._objective = LOCAL_SCORES.of(problem.objective)

    @classmethod
    def of(cls, problem: Problem, search: AnySearch, seed: int) -> OnDemandSearch | None:
        """Return a search if the statistics have tables on demand, otherwise None."""
        statistics = problem.statistics
        tables = statistics.on_demand if isinstance(statistics, Counts) else None
        return None if tables is None else cls(problem, tables, search, seed)

    def __call__(self, watch: Watch) -> SearchResult:
        """Return the best graph so far, and say if it was learned from estimates."""
        tables = self._tables
        while True:
            watch.suffix = f", after {tables.batches} batches of tables"
            tables.estimates = True
            try:
                rng = np.random.default_rng(self._seed)
                result = self._search.search(
                    self._problem.objective, self._problem.constraints, rng, watch
                )
                with watch.until_stopped():
                    if not watch.stopped:
                        self._look_at_reductions(result)
            except ScoreFailed as failed:
                raise (tables.error or failed) from None
            finally:
                tables.estimates = False
            missing = len(tables.wanted)
            if not missing:
                return result
            with watch.until_stopped():
                watch.poll()
                tables.fetch(tables.wanted)
                watch.poll()
            if watch.stopped:
                note = (
                    f"Stopped before all tables were counted: {missing} sets of tables were "
                    "estimated from smaller ones. Give more time for the graph of the counts."
                )
                return replace(result, converged=False, notes=(*result.notes, note))

    def _look_at_reductions(self, result: SearchResult) -> None:
        """Score the families of the graph without each parent, for the strengths of edges."""
        if self._objective is None:
            return
        for child, parents in enumerate(result.parents):
            for parent in parents:
                self._objective.local(child, [p for p in parents if p != parent])


# --- A search on a table in an engine: searches again until every table it needs was counted ----


@final
class RequestedSearch:
    """Searches, counts the tables that it asked for, and repeats until none is new.

    Unknown scores are estimated from a sample. The last search uses no estimate, so it is that on
    all rows, whatever the sample was.

    Parameters
    ----------
    problem
        A problem with counts that are computed on request.
    """

    def __init__(
        self, problem: Problem, statistics: RequestedCounts, search: AnySearch, seed: int
    ) -> None:
        self._score = problem.score
        self._statistics = statistics
        self._scores = on_request(problem.score, statistics)
        self._search = search
        self._seed = seed
        self._knowledge = problem.constraints
        self._nodes = problem.objective.nodes
        self._confirmed = False

    @classmethod
    def of(cls, problem: Problem, search: AnySearch, seed: int) -> RequestedSearch | None:
        """Return a search if counts are computed on request, otherwise None."""
        statistics = problem.statistics
        if isinstance(statistics, RequestedCounts):
            return cls(problem, statistics, search, seed)
        return None

    def __call__(self, watch: Watch) -> SearchResult:
        """Return the last complete graph; before the end, with its score on the sample."""
        last: SearchResult | None = None
        scans = 0
        while not watch.stopped:
            rng = np.random.default_rng(self._seed)
            watch.suffix = f", after {counted(scans, 'scan')}"
            result = self._search.search(self._scores.objective(), self._knowledge, rng, watch)
            if last is None or not watch.stopped:
                last = result
            with watch.until_stopped():
                if not watch.stopped and scans and not self._statistics.asked:
                    self._confirmed = True
                    break
                scans, watch.suffix = scans + 1, ""
                watch.poll(f"scan {scans} of all rows")
                watch.complete(self._statistics.scan())
        assert last is not None
        return self._noted(last)

    def _noted(self, result: SearchResult) -> SearchResult:
        if self._confirmed:
            excluded = self._scores.too_large
            if not excluded:
                return result
            note = (
                f"{counted(excluded, 'family')} with more than {LARGEST_TABLE:,} cells "
                "were excluded: an engine does not count such tables. Merge rare levels, or set "
                "max_parents (max_conditioning of a search by tests)."
            )
            return replace(result, notes=(*result.notes, note))
        sample = self._statistics.sample
        dag = DAG.from_parents(self._nodes, result.parents)
        note = (
            f"Stopped before all rows were counted: the graph rests on a sample of {sample.n:,} of "
            f"{self._statistics.n:,} rows and on the tables counted so far. The score is that of "
            "the sample."
        )
        local = LOCAL_SCORES.of(self._score.bind(sample))
        score = nan if local is None else local.total(dag)
        return replace(result, score=score, gap=None, notes=(*result.notes, note))

    def completed(self, problem: Problem, dag: DAG) -> Problem:
        """Return the problem with the counts of the graph, or with the sample before the end."""
        kept = self._statistics.of_graph(dag) if self._confirmed else self._statistics.sample
        return replace(problem, statistics=kept, objective=self._score.bind(kept))
