"""What exact searches share: list the parent sets, then solve each component."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, final

import numpy as np

from isthmus.arrays import Integers
from isthmus.errors import ArgumentError, MismatchError
from isthmus.graphs import DAG, BoundKnowledge
from isthmus.objectives import PARENT_SETS, LocalScore, ScoreTable
from isthmus.options import require_integer, require_number
from isthmus.results.details import ExactDetails
from isthmus.searches.base import (
    SearchResult,
    TableLines,
    TableStage,
    best_graph,
    first_graph,
    parents_of,
)
from isthmus.searches.near_best import Choice, Component, PartSearch, combine, decompose
from isthmus.watch import Watch

_FIRST_SLACK = 3.0
_LARGEST_SLACK = 1e6


class ExactOptions(Protocol):
    """Options that all exact searches have."""

    @property
    def max_parents(self) -> int | None:
        """Maximum number of parents of a node, or None."""

    @property
    def n_best(self) -> int:
        """Number of best graphs to list."""

    @property
    def bayes_factor(self) -> float | None:
        """How many times less probable than the best graph a listed graph may be."""


Opener = Callable[[Component, list[int], float, float | None], PartSearch]
"""Starts the search of a component, given the lines and score of a known graph and the slack."""


def check_exact_options(options: ExactOptions) -> None:
    """Raise `ArgumentError` unless the options of an exact search are valid."""
    require_integer(options, "max_parents", least=0, optional=True)
    require_integer(options, "n_best", least=1)
    require_number(options, "bayes_factor", least=1, optional=True)
    if options.bayes_factor is not None and options.n_best == 1:
        raise ArgumentError(
            f"{type(options).__name__} was given bayes_factor={options.bayes_factor!r} without "
            "n_best, the number of graphs to list at most; use, for example, n_best=1000."
        )


@final
class ExactSolver:
    """Solves components one by one with the searches that ``opener`` starts.

    Parameters
    ----------
    options
        Options of the search.
    opener
        Starts the search of a component.
    largest
        Maximum number of nodes per component; None for no limit.
    gave_up
        Explanation to give if a component remains unsolved.
    """

    def __init__(
        self,
        options: ExactOptions,
        objective: LocalScore | ScoreTable,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        watch: Watch,
        opener: Opener,
        *,
        largest: int | None = None,
        gave_up: str = "",
    ) -> None:
        self._options = options
        self._opener = opener
        self._largest = largest
        self._gave_up = gave_up
        self._several = options.n_best > 1
        if not self._several:
            self._slack = 0.0
        elif options.bayes_factor is not None:
            self._slack = math.log(options.bayes_factor) + 1e-9
        elif PARENT_SETS.of(objective) is not None:
            self._slack = _LARGEST_SLACK
        else:
            self._slack = _FIRST_SLACK
        self._stage = TableStage(objective, knowledge, options.max_parents, self._slack)
        self._rng, self._watch = rng, watch
        self._knowledge = knowledge
        self._nodes = objective.nodes
        self._proven: SearchResult | None = None
        self._begin()

    def _begin(self) -> None:
        self._waiting: list[Component] | None = None
        self._search: PartSearch | None = None
        self._solved_gap = 0.0
        self._solved_size = 0
        self._counts: Counter[str] = Counter()
        self._lines: Integers = np.empty(0, np.int64)
        # Graphs of the solved components; None if a component remains unsolved.
        self._listed: list[Choice] | None = [(0.0, {})]

    @property
    def _table(self) -> ScoreTable:
        assert self._stage.table is not None
        return self._stage.table

    def solve(self) -> SearchResult:
        """Return the best graph until the end, or until it is time to stop."""
        with self._watch.until_stopped():
            self._solve_all()
        return replace(self._best(), conclusion="" if self._watch.stopped else self._conclusion())

    def _solve_all(self) -> None:
        while True:
            self._stage.listed(self._watch, -np.inf if self._proven is None else self._proven.score)
            waiting = self._prepare()
            while waiting:
                self._solve(waiting.pop())
            if not self._needs_more():
                return
            # Sets that were pruned for their low score may be part of the next best graphs.
            self._proven = self._best()
            self._slack = self._slack * 2.0 if self._slack < 50.0 else _LARGEST_SLACK
            self._stage.restart(self._slack)
            self._begin()

    def _prepare(self) -> list[Component]:
        """Find a first graph and split the table; return the components, the smallest last."""
        lines = TableLines(self._table, self._watch)
        self._lines, _ = first_graph(lines, self._rng, self._watch)
        parts = decompose(self._table, self._watch, self._slack)
        large = max(len(part) for part in parts)
        if self._largest is not None and large > self._largest:
            if self._proven is None:
                raise MismatchError(
                    f"{type(self._options).__name__} accepts components of at most "
                    f"{self._largest} nodes, and one has {large}. Use ILP(), or restrict the "
                    "search by max_parents or knowledge."
                )
            # The result proven with fewer sets is still valid, though its list is short.
            parts, self._listed = [], None
        self._waiting = sorted(parts, key=lambda part: -len(part))
        return self._waiting

    def _solve(self, part: Component) -> None:
        self._search = search = self._open(part)
        try:
            search.run(self._watch, self._say)
        finally:
            self._take_lines(search)
        self._search = None
        self._solved_gap += search.gap
        self._counts.update(search.counts)
        if self._several and self._listed is not None:
            graphs, _ = search.near_best()
            self._listed = self._combined(self._listed, graphs) if graphs else None
        self._watch.poll("next component")

    def _take_lines(self, search: PartSearch) -> None:
        for v, line in search.better_lines():
            self._lines[v] = line

    def _open(self, part: Component) -> PartSearch:
        self._solved_size = max(self._solved_size, len(part))
        lines = [int(self._lines[v]) for v in part.nodes]
        slack = None
        if self._several:
            slack = self._slack
            if self._listed is not None and len(self._listed) == self._options.n_best:
                # The list is full already, even with only the best graph of this component.
                slack = min(slack, self._listed[0][0] - self._listed[-1][0])
        return self._opener(part, lines, float(self._table.scores[lines].sum()), slack)

    def _combined(self, first: list[Choice], second: list[Choice]) -> list[Choice]:
        return combine(first, second, self._options.n_best, self._slack)

    def _needs_more(self) -> bool:
        """Whether a list of graphs is too short because sets were pruned."""
        options, listed = self._options, self._listed
        short = self._several and listed is not None and len(listed) < options.n_best
        return short and options.bayes_factor is None and not self._all and self._gap() == 0.0

    @property
    def _all(self) -> bool:
        """Whether no set was pruned for its low score."""
        return self._stage.given or self._slack >= _LARGEST_SLACK

    def _networks(self) -> tuple[list[Choice], float]:
        """Return the graphs proven to be the next best, and an upper bound on all others."""
        if self._waiting or not self._listed or not self._table.complete:
            return [], math.inf
        graphs, beyond = self._listed, -math.inf
        if self._search is not None:
            near, bound = self._search.near_best()
            beyond = self._listed[0][0] + bound
            graphs = self._combined(self._listed, near)
            noise = 1e-9 * max(1.0, abs(beyond))
            graphs = [one for one in graphs if one[0] >= beyond - noise]
        if len(graphs) == self._options.n_best:
            return graphs, graphs[-1][0]
        if graphs and (self._options.bayes_factor is not None or not self._all):
            beyond = max(beyond, graphs[0][0] - self._slack)
        return graphs, beyond

    def _gap(self) -> float | None:
        """Upper bound on how much more the optimal graph can score; None if nothing is proven."""
        if self._waiting is None or not self._table.complete:
            return None
        gap = self._solved_gap
        if self._search is not None:
            gap += self._search.gap
        for part in self._waiting:
            known = self._table.scores[self._lines[list(part.nodes)]].sum()
            gap += float(part.tops.sum() - known)
        return max(0.0, gap)

    def _best(self) -> SearchResult:
        """Return the best graph so far and what is proven about it."""
        before = self._proven
        if self._waiting is None:
            return self._stage.fallback(self._rng) if before is None else before
        now = self._now()
        if before is not None and (now.gap != 0.0 or _listed(now) < _listed(before)):
            return before
        return now

    def _now(self) -> SearchResult:
        """Return the best graph of the current table."""
        score = float(self._table.scores[self._lines].sum())
        gap = self._gap()
        counts = self._counts.copy()
        if self._search is not None:
            counts.update(self._search.counts)
        networks, beyond = self._networks() if self._several else ([], math.inf)
        details = ExactDetails(
            bound=None if gap is None else score + gap,
            gap=gap,
            parent_sets=len(self._table),
            largest_component=self._solved_size,
            effort=dict(counts),
            networks=tuple((self._dag(lines), value) for value, lines in networks),
            networks_bound=beyond,
        )
        return SearchResult(parents_of(self._table, self._lines), score, details, gap)

    def _dag(self, lines: dict[int, int]) -> DAG:
        chosen = [lines[v] for v in range(len(self._nodes))]
        return DAG.from_parents(self._nodes, parents_of(self._table, chosen))

    def _say(self) -> tuple[str, float, None]:
        assert self._search is not None
        self._take_lines(self._search)
        text = self._search.describe()
        gap = self._gap()
        proven = "" if gap is None else f", gap {gap:.4g}"
        return text + proven, float(self._table.scores[self._lines].sum()), None

    def _conclusion(self) -> str:
        if self._solved_gap > 0.0:
            return self._gave_up
        claim = best_graph(self._knowledge, self._options.max_parents, self._table)
        if self._several and self._listed is None and self._table.complete:
            return f"{claim}; the next best graphs are unknown: {self._gave_up}"
        return f"{claim}."


def _listed(result: SearchResult) -> int:
    return len(result.details.networks) if isinstance(result.details, ExactDetails) else 0
