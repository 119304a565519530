"""Run a search again and again, until all tables that it looked at were counted.

Each run uses estimates of tables that are not known yet; see `isthmus.statistics.on_demand`. What
it looked at is asked for in one batch. The last run used counts only, so that its result is that of
a search in all tables.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, final

import numpy as np

from isthmus.compose.arguments import AnySearch
from isthmus.compose.prepare import Problem
from isthmus.kernels.scoring import ScoreFailed
from isthmus.objectives import LOCAL_SCORES
from isthmus.runs import Watch
from isthmus.searches import SearchResult
from isthmus.statistics import Counts, Summary
from isthmus.statistics.on_demand import TablesOnDemand


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
    tables
        The tables.
    search
        The search.
    seed
        Random seed of each search.
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
