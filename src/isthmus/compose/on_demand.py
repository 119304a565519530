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
from isthmus.searches import Run, SearchResult
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
class OnDemandRun(Run[SearchResult]):
    """A run of a search whose tables are asked for in batches.

    Parameters
    ----------
    problem
        A problem whose score was bound to the tables.
    tables
        The tables.
    search
        The search.
    seed
        Random seed of each run.
    """

    def __init__(
        self, problem: Problem, tables: TablesOnDemand, search: AnySearch, seed: int
    ) -> None:
        self._tables = tables
        self._problem = problem
        self._search = search
        self._seed = seed
        self._objective = LOCAL_SCORES.of(problem.objective)
        self._inner = self._begin()
        self._is_final = False

    @classmethod
    def of(cls, problem: Problem, search: AnySearch, seed: int) -> OnDemandRun | None:
        """Return a run if the statistics have tables on demand, otherwise None."""
        statistics = problem.statistics
        tables = statistics.on_demand if isinstance(statistics, Counts) else None
        return None if tables is None else cls(problem, tables, search, seed)

    def _begin(self) -> Run[SearchResult]:
        rng = np.random.default_rng(self._seed)
        return self._search.begin(self._problem.objective, self._problem.constraints, rng)

    def step(self) -> bool:
        """Search for a few milliseconds, or ask for a batch of tables."""
        self._tables.estimates = True
        try:
            if not self._inner.step():
                return False
            self._look_at_reductions()
        except ScoreFailed as failed:
            raise (self._tables.error or failed) from None
        finally:
            self._tables.estimates = False
        if self._tables.wanted:
            self._tables.fetch(self._tables.wanted)
            self._inner = self._begin()
            return False
        self._is_final = True
        return True

    def _look_at_reductions(self) -> None:
        """Score the families of the graph without each parent, for the strengths of edges."""
        if self._objective is None:
            return
        for child, parents in enumerate(self._inner.best().parents):
            for parent in parents:
                self._objective.local(child, [p for p in parents if p != parent])

    def best(self) -> SearchResult:
        """Return the best graph so far, and say if it was learned from estimates."""
        result = self._inner.best()
        if self._is_final or not self._tables.wanted:
            return result
        note = (
            f"Stopped before all tables were counted: {len(self._tables.wanted)} sets of tables "
            "were estimated from smaller ones. Give more time for the graph of the counts."
        )
        return replace(result, converged=False, notes=(*result.notes, note))

    def describe(self) -> tuple[str, float, float | None]:
        text, score, _ = self._inner.describe()
        return f"{text}, after {self._tables.batches} batches of tables", score, None

    def conclusion(self) -> str:
        return self._inner.conclusion()
