"""Greedy searches of the compiled core."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isthmus.kernels import _native
from isthmus.kernels.scoring import LocalScore, edge_flags

Flags = NDArray[np.bool_]


class XgesRun:
    """Extremely greedy equivalence search, one time slice at a time.

    Parameters
    ----------
    score
        Score-equivalent objective. With one that is not, the search still ends: from the moment
        when gains do not add up, a change must raise the score of a graph.
    required, forbidden
        Demands on the graph, indexed [from, to]; by default none.
    max_parents
        Upper bound on the number of parents of a node; None for no bound.
    extended
        At an optimum, force the deletion of one edge after the other, search on without it, and
        stay where that ends better.
    """

    def __init__(
        self,
        score: LocalScore,
        *,
        required: Flags | None = None,
        forbidden: Flags | None = None,
        max_parents: int | None = None,
        extended: bool = True,
    ) -> None:
        self._run = _native.XgesRun(
            score,
            required=edge_flags(required, score.size),
            forbidden=edge_flags(forbidden, score.size),
            max_parents=max_parents,
            extended=extended,
        )

    def step(self, seconds: float = 0.01) -> bool:
        """Work for at most this many seconds; return whether the search has ended."""
        return self._run.step(seconds)

    def best(self) -> tuple[tuple[tuple[int, ...], ...], float]:
        """Return the parents of each variable in the best class so far, and their score."""
        parents, score = self._run.best()
        return tuple(tuple(each) for each in parents), score

    @property
    def finished(self) -> bool:
        """Whether the search has ended."""
        return self._run.finished

    @property
    def changes(self) -> int:
        """Number of operators made on the way to the current class."""
        return self._run.changes

    @property
    def trials_left(self) -> int:
        """Number of deletions that are still to be tried at the current optimum."""
        return self._run.trials_left

    @property
    def evaluations(self) -> int:
        """Number of scores computed."""
        return self._run.evaluations

    @property
    def guarded(self) -> bool:
        """Whether gains did not add up, as with a score that is not score-equivalent."""
        return self._run.guarded

    @property
    def score(self) -> float:
        """The best total so far; minus infinity before the first graph was scored."""
        return self._run.score


__all__ = ["XgesRun"]
