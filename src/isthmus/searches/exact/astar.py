"""Exact search by A* on the order graph, with pattern databases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.graphs import BoundKnowledge
from isthmus.objectives import LOCAL_SCORES, PARENT_SETS, LocalScore, ScoreTable
from isthmus.options import require_integer
from isthmus.searches.base import Accepts, Run, Search, SearchResult
from isthmus.searches.exact.astar_component import ComponentSearch
from isthmus.searches.exact.components import Component
from isthmus.searches.exact.run import ExactRun, check_exact_options


@final
@dataclass(frozen=True)
class AStar(Search[LocalScore]):
    """Exact search by A* over sets of placed nodes (Yuan and Malone 2013).

    Finds a provably optimal graph from the parent sets that can be part of one. Each strongly
    connected component of the graph of possible parents (at most 64 nodes) is solved separately.
    Suitable for up to about 30 nodes, or more if the parent sets split the problem; :class:`ILP`
    can solve larger problems.

    Parameters
    ----------
    max_parents
        Maximum number of parents of a node; None for no limit.
    n_best
        Number of best graphs to list in ``details.networks``: pairs of a graph and its score, best
        first, each proven to be the next best. No other graph scores more than
        ``details.networks_bound``.
    bayes_factor
        List only graphs that are at most this many times less probable than the best one. This is
        the Bayes factor if the score is a marginal likelihood.
    pattern
        Maximum number of nodes per pattern database; its table has ``2**pattern`` entries.
    max_states
        Maximum number of states in memory (about 60 bytes each). If it is reached, the best graph
        so far is returned with a gap.

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=1000, seed=1)
    >>> print(ist.learn(data, score=ist.BIC(), search=ist.AStar()).status)
    optimal: no graph scores higher.
    """

    max_parents: int | None = None
    n_best: int = 1
    bayes_factor: float | None = None
    pattern: int = 20
    max_states: int = 40_000_000
    accepts: ClassVar[Accepts] = (LOCAL_SCORES, PARENT_SETS)

    def __post_init__(self) -> None:
        check_exact_options(self)
        require_integer(self, "pattern", least=1)
        require_integer(self, "max_states", least=1)

    def begin(
        self,
        objective: LocalScore | ScoreTable,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
    ) -> Run[SearchResult]:
        return ExactRun(
            self,
            objective,
            knowledge,
            rng,
            self._open,
            largest=64,
            gave_up="the limit of states was reached; increase max_states or use ILP().",
        )

    def _open(
        self, part: Component, lines: list[int], known_score: float, slack: float | None
    ) -> ComponentSearch:
        return ComponentSearch(
            part,
            known_score,
            n_best=self.n_best,
            slack=slack,
            pattern=self.pattern,
            max_states=self.max_states,
        )
