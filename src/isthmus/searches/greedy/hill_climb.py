"""Hill climbing over single edges, with a tabu list to escape local optima."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from isthmus.graphs import BoundKnowledge
from isthmus.objectives import LOCAL_SCORES, LocalScore
from isthmus.options import require_integer
from isthmus.searches.base import Accepts, Run, Search, SearchResult

_TOLERANCE = 1e-9


@final
@dataclass(frozen=True)
class HillClimb(Search[LocalScore]):
    """Hill climbing with a tabu list.

    Each step adds, deletes or reverses the edge that improves the score most. At a local optimum
    the search continues with the least bad change until ``patience`` runs out.

    Parameters
    ----------
    tabu
        Number of recent graphs that may not be visited again; 0 for plain hill climbing.
    patience
        Stop after this many steps without a better graph; by default ``tabu``.
    max_parents
        Maximum number of parents of a node; None for no limit.
    """

    tabu: int = 10
    patience: int | None = None
    max_parents: int | None = None
    accepts: ClassVar[Accepts] = (LOCAL_SCORES,)

    def __post_init__(self) -> None:
        require_integer(self, "tabu", least=0)
        require_integer(self, "patience", least=0, optional=True)
        require_integer(self, "max_parents", least=0, optional=True)

    def begin(
        self, objective: LocalScore, knowledge: BoundKnowledge, rng: np.random.Generator
    ) -> Run[SearchResult]:
        """Start a run; it uses no random numbers."""
        return _ClimbRun(self, objective, knowledge)


@final
class _ClimbRun(Run[SearchResult]):
    def __init__(
        self, options: HillClimb, objective: LocalScore, knowledge: BoundKnowledge
    ) -> None:
        from isthmus.numerics import hill_climb

        self._kernels = hill_climb
        self._objective = objective
        self._tabu = options.tabu
        self._patience = options.tabu if options.patience is None else options.patience
        self._climb = hill_climb.new_climb(
            knowledge.required, knowledge.forbidden, options.max_parents, options.tabu
        )
        self._scored = 0
        self._score = -np.inf
        self._best_score = -np.inf
        # The best graph is the first graph after the first ``_best_changes`` changes.
        self._first: NDArray[np.uint8] = self._climb.edge.copy()
        self._changes: list[tuple[int, int, int]] = []
        self._best_changes = 0
        self._idle = 0

    def step(self) -> bool:
        """Score one child for the first time, or change one edge."""
        d = len(self._climb.local)
        if self._scored < d:
            self._check(self._kernels.refresh(self._objective.handle, self._climb, self._scored))
            self._scored += 1
            if self._scored == d:
                self._score = float(self._climb.local.sum())
                self._keep_best()
            return False
        floor = _TOLERANCE if self._patience == 0 else -np.inf
        code, gain, *change = self._kernels.climb_step(self._objective.handle, self._climb, floor)
        if code == self._kernels.NOTHING_LEFT:
            return True
        self._check(code)
        self._changes.append((change[0], change[1], change[2]))
        self._score += float(gain)
        if self._score > self._best_score + _TOLERANCE * max(1.0, abs(self._best_score)):
            self._keep_best()
            return False
        self._idle += 1
        return self._idle >= self._patience

    def _keep_best(self) -> None:
        self._best_score = self._score
        self._best_changes = len(self._changes)
        self._idle = 0

    def _check(self, code: Any) -> None:
        if code != self._kernels.DONE:
            self._objective.raise_failure()
            raise RuntimeError("a compiled score failed and gave no reason; please report this")

    def best(self) -> SearchResult:
        """Return the best graph visited."""
        edge = self._first.copy()
        for kind, child, parent in self._changes[: self._best_changes]:
            edge[child, parent] = kind == self._kernels.ADD
            if kind == self._kernels.REVERSE:
                edge[parent, child] = 1
        parents = tuple(tuple(np.nonzero(row)[0].tolist()) for row in edge)
        score = sum(self._objective.local(v, p) for v, p in enumerate(parents))
        return SearchResult(parents, score)

    def describe(self) -> tuple[str, float, float | None]:
        """Report the number of changes so far."""
        d = len(self._climb.local)
        if self._scored < d:
            return f"initial scores: {self._scored} of {d}", self._best_score, None
        return f"{self._climb.counters[0]} changes", self._best_score, None

    def conclusion(self) -> str:
        """Explain why the search stopped."""
        if self._patience == 0:
            return "no edge insertion, deletion or reversal improves the score."
        return f"no better graph in the last {self._patience} changes."
