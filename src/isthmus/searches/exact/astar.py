"""Exact search by A* on the order graph, with pattern databases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.graphs import BoundKnowledge
from isthmus.objectives import LOCAL_SCORES, PARENT_SETS, LocalScore, ScoreTable
from isthmus.searches.base import Accepts, Run, Search, SearchResult
from isthmus.searches.exact.astar_component import ComponentSearch
from isthmus.searches.exact.components import Component
from isthmus.searches.exact.run import ExactRun, check_exact_options


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
        score, best first, each proven to be the next best. No other graph scores more than
        ``details["networks_bound"]``.
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
    accepts: ClassVar[Accepts] = (LOCAL_SCORES, PARENT_SETS)

    def __post_init__(self) -> None:
        check_exact_options(self)

    def begin(
        self,
        objective: LocalScore | ScoreTable,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
    ) -> Run[SearchResult]:
        """Start a run."""
        return ExactRun(
            self,
            objective,
            knowledge,
            rng,
            self._open,
            largest=64,
            gave_up="the limit of states was reached; give more by max_states, or use ILP().",
        )

    def _open(
        self, part: Component, lines: list[int], known: float, slack: float | None
    ) -> ComponentSearch:
        return ComponentSearch(
            part,
            known,
            networks=self.networks,
            slack=slack,
            pattern=self.pattern,
            max_states=self.max_states,
        )
