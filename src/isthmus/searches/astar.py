"""Exact search by A* on the order graph, with pattern databases."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import MismatchError
from isthmus.graphs import DAG, BoundKnowledge
from isthmus.objectives import LocalScore, ScoreTable
from isthmus.searches.base import Found, Run, Search
from isthmus.searches.component import ComponentSearch
from isthmus.searches.exact import Component, TablePhase, decompose, first_graph, parents_of
from isthmus.searches.near_best import combine

_FIRST_SLACK = 3.0
_LARGEST_SLACK = 1e6


@final
@dataclass(frozen=True)
class AStar(Search[LocalScore]):
    """The best graph with a proof, by best-first search over sets of placed nodes.

    Yuan and Malone 2013, on the parent sets that can be part of a best graph, component by
    component of the graph of possible parents (each at most 64 nodes). Up to about 30 nodes, more
    when the parent sets split the problem; :class:`ILP` goes further.

    Parameters
    ----------
    max_parents
        Upper bound on the number of parents of a node; None for no bound.
    networks
        How many of the best graphs to give, in ``details["networks"]``: pairs of a graph and its
        score, best first.
    bayes_factor
        Give only graphs that are at most so many times less probable than the best one: with a
        marginal likelihood as the score, the Bayes factor.
    pattern
        Nodes in one pattern database; its table has ``2**pattern`` entries.
    max_states
        States in memory (about 60 bytes each) at which to give up with a gap.
    """

    max_parents: int | None = None
    networks: int = 1
    bayes_factor: float | None = None
    pattern: int = 20
    max_states: int = 40_000_000
    takes: ClassVar[type[object]] = LocalScore

    def __post_init__(self) -> None:
        if self.networks < 1 or (self.bayes_factor is not None and self.bayes_factor < 1.0):
            raise MismatchError(
                f"AStar was given networks={self.networks} and bayes_factor={self.bayes_factor}; "
                "both must be at least 1."
            )

    def begin(
        self,
        objective: LocalScore | ScoreTable,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
    ) -> Run:
        """Start a run."""
        return _AStarRun(self, objective, knowledge, rng)


@final
class _AStarRun(Run):
    def __init__(
        self,
        options: AStar,
        objective: LocalScore | ScoreTable,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
    ) -> None:
        self._options = options
        self._several = options.networks > 1
        if not self._several:
            self._slack = 0.0
        elif options.bayes_factor is not None:
            self._slack = math.log(options.bayes_factor) + 1e-9
        elif isinstance(objective, ScoreTable):
            self._slack = _LARGEST_SLACK
        else:
            self._slack = _FIRST_SLACK
        self._phase = TablePhase(objective, knowledge, options.max_parents, self._slack)
        self._rng = rng
        self._nodes = objective.nodes
        self._waiting: list[Component] | None = None
        self._search: ComponentSearch | None = None
        self._done: list[ComponentSearch] = []
        self._lines: NDArray[np.int64] = np.empty(0, np.int64)
        self._networks: tuple[tuple[DAG, float], ...] = ()

    @property
    def _table(self) -> ScoreTable:
        assert self._phase.table is not None
        return self._phase.table

    def step(self) -> bool:
        """List parent sets, or make patterns, or expand some thousand states."""
        if not self._phase.step():
            return False
        if self._waiting is None:
            self._prepare()
            return False
        if self._search is None:
            if not self._waiting:
                return self._finish()
            self._search = self._open(self._waiting.pop())
        if self._search.step():
            self._keep(self._search)
            self._done.append(self._search)
            self._search = None
        return False

    def _prepare(self) -> None:
        self._lines, _ = first_graph(self._table, self._rng)
        parts = decompose(self._table, self._slack)
        large = max(len(part.nodes) for part in parts)
        if large > 64:
            raise MismatchError(
                f"{large} nodes depend on each other and AStar takes 64 of them. Use ILP(), or "
                "bound the search by max_parents or knowledge."
            )
        self._done = []
        # The largest last: they are popped from the end, so small ones are out of the way first.
        self._waiting = sorted(parts, key=lambda part: -len(part.nodes))

    def _open(self, part: Component) -> ComponentSearch:
        known = self._table.scores[self._lines[list(part.nodes)]]
        return ComponentSearch(
            part,
            float(known.sum()),
            slack=self._slack if self._several else None,
            pattern=self._options.pattern,
            max_states=self._options.max_states,
        )

    def _keep(self, search: ComponentSearch) -> None:
        for v, line in search.better_lines():
            self._lines[v] = line

    def _finish(self) -> bool:
        if not self._several or self._gap() != 0.0:
            return True
        options = self._options
        found = combine([search.near_best(options.networks) for search in self._done], options)
        short = len(found) < options.networks and options.bayes_factor is None
        if short and not self._phase.given and self._slack < _LARGEST_SLACK:
            # Sets that were left out for scoring too little may be part of the next best graphs.
            self._slack = self._slack * 2.0 if self._slack < 50.0 else _LARGEST_SLACK
            self._phase.restart(self._slack)
            self._waiting = None
            return False
        self._networks = tuple(
            (DAG.from_parents(self._nodes, self._parents(lines)), score) for score, lines in found
        )
        return True

    def _parents(self, lines: dict[int, int]) -> tuple[tuple[int, ...], ...]:
        return parents_of(self._table, [lines[v] for v in range(len(self._nodes))])

    def _gap(self) -> float | None:
        """How much more the best graph can score; None while nothing is known."""
        if self._waiting is None or not self._table.complete:
            return None
        active = [] if self._search is None else [self._search]
        gap = sum(search.gap for search in (*self._done, *active))
        for part in self._waiting:
            known = self._table.scores[self._lines[list(part.nodes)]].sum()
            gap += float(sum(lines[0][1] for lines in part.lists) - known)
        return max(0.0, gap)

    def best(self) -> Found:
        """Return the best graph so far with what is proven."""
        if self._waiting is None:
            return Found(*self._phase.fallback(self._rng))
        if self._search is not None:
            self._keep(self._search)
        score = float(self._table.scores[self._lines].sum())
        gap = self._gap()
        searches = [*self._done, *([] if self._search is None else [self._search])]
        details: dict[str, object] = {
            "bound": None if gap is None else score + gap,
            "gap": gap,
            "expanded": sum(search.expanded for search in searches),
            "largest_component": max((search.size for search in searches), default=0),
            "parent_sets": len(self._table),
        }
        if self._networks:
            details["networks"] = self._networks
        return Found(parents_of(self._table, self._lines), score, details, gap)

    def describe(self) -> tuple[str, float, float | None]:
        """Say how many states were expanded, and how large the gap is."""
        if self._waiting is None:
            text, done = self._phase.describe()
            return text, -np.inf, done
        score = float(self._table.scores[self._lines].sum())
        if self._search is None:
            return "next component", score, None
        gap = self._gap()
        proven = "" if gap is None else f", gap {gap:.4g}"
        return f"{self._search.describe()}{proven}", score, None

    def conclusion(self) -> str:
        """Say what the end means."""
        if self._gap() == 0.0:
            limit = self._options.max_parents
            return "no graph scores more" + (
                "." if limit is None else f" with at most {limit} parents a node."
            )
        return "the limit of states was reached; give more by max_states, or use ILP()."
