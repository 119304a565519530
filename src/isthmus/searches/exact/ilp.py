"""Exact search by integer linear programming, on SCIP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.errors import MissingExtraError
from isthmus.graphs import BoundKnowledge
from isthmus.objectives import LOCAL_SCORES, PARENT_SETS, LocalScore, ScoreTable
from isthmus.searches.base import Accepts, Run, Search, SearchResult
from isthmus.searches.exact.components import Component, PartSearch
from isthmus.searches.exact.run import ExactRun, check_exact_options


@final
@dataclass(frozen=True)
class ILP(Search[LocalScore]):
    """Exact search by integer linear programming with cluster cuts (Bartlett and Cussens 2017).

    Finds a provably optimal graph. The program has one binary variable per node and parent set, and
    each node takes one parent set. Cluster constraints, by which every set of nodes has a member
    without parents in the set, are added when they are violated. Strongly connected components of
    the graph of possible parents are solved separately. To list several graphs, each is excluded
    once it is found, within one branch-and-bound tree. Needs the extra ``[ilp]``.

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

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=1000, seed=1)
    >>> print(ist.learn(data, score=ist.BIC(), search=ist.ILP()).status)
    optimal: no graph scores higher.
    """

    max_parents: int | None = None
    n_best: int = 1
    bayes_factor: float | None = None
    accepts: ClassVar[Accepts] = (LOCAL_SCORES, PARENT_SETS)

    def __post_init__(self) -> None:
        check_exact_options(self)

    def begin(
        self,
        objective: LocalScore | ScoreTable,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
    ) -> Run[SearchResult]:
        try:
            import pyscipopt  # noqa: F401
        except ImportError:
            raise MissingExtraError(
                "pyscipopt", "ilp", "Exact search by integer programming"
            ) from None
        return ExactRun(self, objective, knowledge, rng, self._open)

    def _open(
        self, part: Component, lines: list[int], known_score: float, slack: float | None
    ) -> PartSearch:
        from isthmus.searches.exact.ilp_program import Program

        return Program(part, lines, known_score, n_best=self.n_best, slack=slack)
