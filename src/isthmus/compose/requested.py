"""A search on a table in an engine: searches again until every table it needs was counted."""

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
from isthmus.runs import Watch
from isthmus.scores.on_request import on_request
from isthmus.searches.base import SearchResult
from isthmus.statistics.requested import LARGEST_TABLE, RequestedCounts


@final
class RequestedSearch:
    """Searches, counts the tables that it asked for, and repeats until none is new.

    Unknown scores are estimated from a sample. The last search uses no estimate, so it is that on
    all rows, whatever the sample was.

    Parameters
    ----------
    problem
        A problem with counts that are computed on request.
    statistics
        These counts.
    search
        The search.
    seed
        Random seed of each search.
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
