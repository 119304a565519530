"""Extremely greedy equivalence search (XGES).

Nazaret and Blei, UAI 2024. A search over equivalence classes that prefers deletions, and that at a
local optimum tests whether forcing the deletion of an edge leads to a better optimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.errors import MismatchError
from isthmus.graphs import BoundKnowledge
from isthmus.kernels.greedy import begin_xges
from isthmus.objectives import LOCAL_SCORES, LocalScore
from isthmus.options import require_boolean, require_integer
from isthmus.searches.base import Accepts, Run, Search, SearchResult


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

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=1000, seed=1)
    >>> ist.learn(data, search=ist.XGES(max_parents=3)).dag.parents("either")
    ('tub', 'lung')
    """

    extended: bool = True
    max_parents: int | None = None
    accepts: ClassVar[Accepts] = (LOCAL_SCORES,)

    def __post_init__(self) -> None:
        require_boolean(self, "extended")
        require_integer(self, "max_parents", least=0, optional=True)

    def begin(
        self, objective: LocalScore, knowledge: BoundKnowledge, rng: np.random.Generator
    ) -> Run[SearchResult]:
        """Start a run; it uses no random numbers."""
        if not objective.equivalent:
            raise MismatchError(
                "XGES searches over equivalence classes, but this score gives equivalent graphs "
                "different values. Use a score-equivalent score, such as BIC, BDeu, GaussianBIC "
                "or BGe, or another search, such as Boss() or HillClimb()."
            )
        return _XGESRun(self, objective, knowledge)


@final
class _XGESRun(Run[SearchResult]):
    def __init__(self, options: XGES, objective: LocalScore, knowledge: BoundKnowledge) -> None:
        self._extended = options.extended
        self._run = begin_xges(
            objective.kernel,
            required=knowledge.required,
            forbidden=knowledge.forbidden,
            max_parents=options.max_parents,
            extended=options.extended,
        )

    def step(self) -> bool:
        return self._run.step()

    def best(self) -> SearchResult:
        """Return a member of the best equivalence class so far."""
        parents, score = self._run.best()
        return SearchResult(tuple(map(tuple, parents)), score)

    def describe(self) -> tuple[str, float, float | None]:
        if self._run.trials_left:
            return f"{self._run.trials_left} deletions left to try", self._run.score, None
        return f"{self._run.changes} changes", self._run.score, None

    def conclusion(self) -> str:
        if self._extended:
            return (
                "this is a local optimum; no edge insertion, deletion or reversal improves the "
                "score, even after forcing a deletion."
            )
        return (
            "this is a local optimum; no edge insertion, deletion or reversal improves the score."
        )
