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
    """The best graph with a proof, by an integer program with cluster cuts.

    One variable for each parent set of each node, one parent set for each node, and for every set
    of nodes one of them without parents in it: these constraints are added when they are violated
    (Bartlett and Cussens 2017). Components of the graph of possible parents are solved one by
    one. Of several graphs each is forbidden once it is found, in one tree of branches. Needs the
    extra ``[ilp]``.

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
    """

    max_parents: int | None = None
    networks: int = 1
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
        """Start a run."""
        try:
            import pyscipopt  # noqa: F401
        except ImportError:
            raise MissingExtraError(
                "pyscipopt", "ilp", "Exact search by integer programming"
            ) from None
        return ExactRun(self, objective, knowledge, rng, self._open)

    def _open(
        self, part: Component, lines: list[int], known: float, slack: float | None
    ) -> PartSearch:
        from isthmus.searches.exact.ilp_program import Program

        return Program(part, lines, known, networks=self.networks, slack=slack)
