"""Hill climbing over single edges, with a tabu list, random ties and restarts."""

from __future__ import annotations

from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from isthmus.kernels import _native
from isthmus.kernels.scoring import LocalScore, edge_flags

Flags: TypeAlias = NDArray[np.bool_]
Parents: TypeAlias = tuple[tuple[int, ...], ...]


@final
class HillClimbRun:
    """Hill climbing, one time slice per step.

    Parameters
    ----------
    score
        Score to maximise.
    tabu
        How many of the graphs visited last may not be visited again.
    patience
        How many changes without a new best graph end a climb; by default ``tabu``.
    restarts
        How many climbs in a row without a better graph end the search. Each one but the first
        starts from the best graph with some edges removed. Used with a seed only.
    seed
        Random seed. Without one, the first of several equally good changes is made, and there
        is a single climb.
    required, forbidden
        Edges that must or must not be there, as matrices [from, to].
    max_parents
        Upper bound on the number of parents; None for no bound.
    """

    def __init__(
        self,
        score: LocalScore,
        *,
        tabu: int = 10,
        patience: int | None = None,
        restarts: int = 20,
        seed: int | None = None,
        required: Flags | None = None,
        forbidden: Flags | None = None,
        max_parents: int | None = None,
    ) -> None:
        self._size = score.size
        self._run = _native.HillClimb(
            score,
            required=edge_flags(required, score.size),
            forbidden=edge_flags(forbidden, score.size),
            max_parents=max_parents,
            tabu=tabu,
            patience=tabu if patience is None else patience,
            restarts=restarts,
            seed=seed,
        )

    def step(self, seconds: float = 0.01) -> bool:
        """Search for at most this many seconds; return whether the search is finished."""
        return self._run.step(seconds)

    def best(self) -> tuple[Parents, float]:
        """Return the parents and the score of the best graph so far."""
        parents, score = self._run.best()
        return tuple(map(tuple, parents)), score

    @property
    def score(self) -> float:
        """Best score so far; minus infinity until all variables have their first scores."""
        return self._run.score

    def describe(self) -> str:
        """Return a phrase on the progress of the run."""
        if self._run.scored < self._size:
            return f"first scores: {self._run.scored} of {self._size}"
        return f"climb {self._run.climbs}, {self._run.changes} changes"


__all__ = ["HillClimbRun"]
