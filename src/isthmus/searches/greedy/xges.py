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
from isthmus.types import Bools


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
        forbidden = knowledge.forbidden
        if options.candidates is not None:
            unlikely = ~_strongest(objective, options.candidates) & ~knowledge.required
            forbidden = forbidden | unlikely
        self._run = begin_xges(
            objective.kernel,
            required=knowledge.required,
            forbidden=forbidden,
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
