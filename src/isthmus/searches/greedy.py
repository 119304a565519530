"""Greedy searches over graphs (`HillClimb`) and over equivalence classes (`XGES`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.arrays import Bools
from isthmus.errors import MismatchError
from isthmus.graphs import BoundKnowledge
from isthmus.kernels.greedy import begin_hill_climb, begin_xges
from isthmus.objectives import LOCAL_SCORES, LocalScore
from isthmus.options import require_boolean, require_integer
from isthmus.searches.base import Accepts, Search, SearchResult
from isthmus.watch import Watch


@final
@dataclass(frozen=True)
class HillClimb(Search[LocalScore]):
    """Hill climbing with a tabu list and restarts.

    Each step adds, deletes or reverses the edge that improves the score most; among equally good
    changes, such as the two directions of a first edge, one is drawn at random. At a local optimum
    the climb continues with the least bad change until ``patience`` runs out. The next climb starts
    from the best graph with some edges removed.

    Parameters
    ----------
    tabu
        Number of recent graphs that may not be visited again; 0 for plain hill climbing.
    patience
        Stop after this many steps without a better graph; by default ``tabu``.
    restarts
        Stop after this many climbs in a row without a better graph; 0 for a single climb.
    max_parents
        Maximum number of parents of a node; None for no limit.

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=1000, seed=1)
    >>> ist.learn(data, search=ist.HillClimb(max_parents=3, restarts=5)).dag.parents("xray")
    ('either',)
    """

    tabu: int = 10
    patience: int | None = None
    restarts: int = 20
    max_parents: int | None = None
    accepts: ClassVar[Accepts] = (LOCAL_SCORES,)

    def __post_init__(self) -> None:
        require_integer(self, "tabu", least=0)
        require_integer(self, "patience", least=0, optional=True)
        require_integer(self, "restarts", least=0)
        require_integer(self, "max_parents", least=0, optional=True)

    def search(
        self,
        objective: LocalScore,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        watch: Watch,
    ) -> SearchResult:
        climb = begin_hill_climb(
            objective.kernel,
            tabu=self.tabu,
            patience=self.patience,
            restarts=self.restarts,
            seed=int(rng.integers(2**63)),
            required=knowledge.required,
            forbidden=knowledge.forbidden,
            max_parents=self.max_parents,
        )
        size = len(objective.nodes)

        def say() -> tuple[str, float, None]:
            if climb.scored < size:
                return f"first scores: {climb.scored} of {size}", climb.score, None
            return f"climb {climb.climbs}, {climb.changes} changes", climb.score, None

        with watch.until_stopped():
            watch.run(climb.step, say)
        parents, score = climb.best()
        return SearchResult(tuple(map(tuple, parents)), score, conclusion=self._conclusion())

    def _conclusion(self) -> str:
        if self.restarts:
            return f"this is a local optimum; no better graph after {self.restarts} restarts."
        patience = self.tabu if self.patience is None else self.patience
        if patience == 0:
            return f"{_LOCAL_OPTIMUM}."
        return f"this is a local optimum; no better graph in the last {patience} changes."


_LOCAL_OPTIMUM = (
    "this is a local optimum; no edge insertion, deletion or reversal improves the score"
)


@final
@dataclass(frozen=True)
class XGES(Search[LocalScore]):
    """Extremely greedy equivalence search over CPDAGs (Nazaret and Blei 2024).

    Each step applies the best deletion that improves the score; if there is none, the best
    reversal; if there is none, the best insertion. Operators that lead to a class without a member
    that agrees with the background knowledge are skipped.

    Parameters
    ----------
    extended
        At a local optimum, force the deletion of each edge in turn, continue the search from
        there, and keep the result if it is better.
    max_parents
        Maximum number of parents of a node; None for no limit.
    candidates
        Consider only edges between a node and its so many strongest candidates: those that, alone,
        improve its score most. None for all pairs. Far fewer families are scored, which matters
        for tables that are counted in an engine. A cause whose effect shows only together with
        another one can be missed.

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=1000, seed=1)
    >>> ist.learn(data, search=ist.XGES(max_parents=3)).dag.parents("either")
    ('tub', 'lung')
    """

    extended: bool = True
    max_parents: int | None = None
    candidates: int | None = None
    accepts: ClassVar[Accepts] = (LOCAL_SCORES,)

    def __post_init__(self) -> None:
        require_boolean(self, "extended")
        require_integer(self, "max_parents", least=0, optional=True)
        require_integer(self, "candidates", least=1, optional=True)

    def search(
        self,
        objective: LocalScore,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        watch: Watch,
    ) -> SearchResult:
        """Return a member of the best class; the search uses no random numbers."""
        if not objective.equivalent:
            raise MismatchError(
                "XGES searches over equivalence classes, but this score gives equivalent graphs "
                "different values. Use a score-equivalent score, such as BIC, BDeu, GaussianBIC "
                "or BGe, or another search, such as Boss() or HillClimb()."
            )
        forbidden = knowledge.forbidden
        if self.candidates is not None:
            forbidden = forbidden | (~_strongest(objective, self.candidates) & ~knowledge.required)
        xges = begin_xges(
            objective.kernel,
            required=knowledge.required,
            forbidden=forbidden,
            max_parents=self.max_parents,
            extended=self.extended,
        )

        def say() -> tuple[str, float, None]:
            if xges.trials_left:
                return f"{xges.trials_left} deletions left to try", xges.score, None
            return f"{xges.changes} changes", xges.score, None

        with watch.until_stopped():
            watch.run(xges.step, say)
        parents, score = xges.best()
        conclusion = _LOCAL_OPTIMUM + (", even after forcing a deletion." if self.extended else ".")
        return SearchResult(tuple(map(tuple, parents)), score, conclusion=conclusion)


def _strongest(objective: LocalScore, count: int) -> Bools:
    """Return pairs in which one is among the strongest candidates of the other; symmetric."""
    d = len(objective.nodes)
    chosen = np.zeros((d, d), np.bool_)
    for child in range(d):
        others = [v for v in range(d) if v != child]
        scores = objective.extensions(child, (), others)[1:]
        best = np.argsort(-scores, kind="stable")[:count]
        chosen[np.array(others, np.intp)[best], child] = True
    return chosen | chosen.T
