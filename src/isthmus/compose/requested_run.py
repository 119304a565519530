"""A search on a table in an engine: runs again until every table it needs was counted."""

from __future__ import annotations

from dataclasses import replace
from math import nan
from typing import final

import numpy as np

from isthmus.compose.arguments import AnySearch
from isthmus.compose.prepare import Problem
from isthmus.graphs import DAG
from isthmus.objectives import LOCAL_SCORES
from isthmus.plurals import counted
from isthmus.runs import Run
from isthmus.scores.on_request import on_request
from isthmus.searches.base import SearchResult
from isthmus.statistics.requested import LARGEST_TABLE, RequestedCounts
from isthmus.types import Work


@final
class RequestedRun(Run[SearchResult]):
    """Runs a search, counts the tables that it asked for, and repeats until none is new.

    Unknown scores are estimated from a sample. The last run uses no estimate, so it is the search
    on all rows, whatever the sample was.

    Parameters
    ----------
    problem
        A problem with counts that are computed on request.
    statistics
        These counts.
    search
        The search.
    seed
        Random seed of each run.
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
        self._inner = self._begin()
        self._last: SearchResult | None = None
        self._confirmed = False
        self._scans = 0
        self._counting = False
        self._work = self._iterate()

    @classmethod
    def of(cls, problem: Problem, search: AnySearch, seed: int) -> RequestedRun | None:
        """Return a run if counts are computed on request, otherwise None."""
        statistics = problem.statistics
        if isinstance(statistics, RequestedCounts):
            return cls(problem, statistics, search, seed)
        return None

    def _begin(self) -> Run[SearchResult]:
        rng = np.random.default_rng(self._seed)
        return self._search.begin(self._scores.objective(), self._knowledge, rng)

    def _iterate(self) -> Work[None]:
        while True:
            while not self._inner.step():
                yield
            self._last = self._inner.best()  # which may ask for families, too
            if self._scans and not self._statistics.asked:
                self._confirmed = True
                return
            self._counting = True
            yield from self._statistics.scan()
            self._counting = False
            self._scans += 1
            self._inner = self._begin()

    def step(self) -> bool:
        """Search for a few milliseconds, or count some rows."""
        return next(self._work, self) is self

    def best(self) -> SearchResult:
        """Return the last graph; before the end, with its score on the sample."""
        result = self._inner.best() if self._last is None else self._last
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

    def describe(self) -> tuple[str, float, float | None]:
        """Report what is being done and the best score so far."""
        if self._counting:
            return f"scan {self._scans + 1} of all rows", float("nan"), None
        text, score, _ = self._inner.describe()
        return f"{text}, after {counted(self._scans, 'scan')}", score, None

    def conclusion(self) -> str:
        """Explain why the run stopped."""
        return self._inner.conclusion()
