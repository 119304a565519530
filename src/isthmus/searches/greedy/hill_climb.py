"""Hill climbing over single edges, with a tabu list and restarts to escape local optima."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.graphs import BoundKnowledge
from isthmus.kernels.greedy import begin_hill_climb
from isthmus.objectives import LOCAL_SCORES, LocalScore
from isthmus.options import require_integer
from isthmus.searches.base import Accepts, Run, Search, SearchResult


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

    def begin(
        self, objective: LocalScore, knowledge: BoundKnowledge, rng: np.random.Generator
    ) -> Run[SearchResult]:
        return _ClimbRun(self, objective, knowledge, rng)


@final
class _ClimbRun(Run[SearchResult]):
    def __init__(
        self,
        options: HillClimb,
        objective: LocalScore,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
    ) -> None:
        self._restarts = options.restarts
        self._patience = options.tabu if options.patience is None else options.patience
        self._size = len(objective.nodes)
        self._run = begin_hill_climb(
            objective.kernel,
            tabu=options.tabu,
            patience=options.patience,
            restarts=options.restarts,
            seed=int(rng.integers(2**63)),
            required=knowledge.required,
            forbidden=knowledge.forbidden,
            max_parents=options.max_parents,
        )

    def step(self) -> bool:
        return self._run.step()

    def best(self) -> SearchResult:
        """Return the best graph visited."""
        parents, score = self._run.best()
        return SearchResult(tuple(map(tuple, parents)), score)

    def describe(self) -> tuple[str, float, float | None]:
        if self._run.scored < self._size:
            text = f"first scores: {self._run.scored} of {self._size}"
        else:
            text = f"climb {self._run.climbs}, {self._run.changes} changes"
        return text, self._run.score, None

    def conclusion(self) -> str:
        if self._restarts:
            return f"this is a local optimum; no better graph after {self._restarts} restarts."
        if self._patience == 0:
            return (
                "this is a local optimum; no edge insertion, deletion or reversal improves the "
                "score."
            )
        return f"this is a local optimum; no better graph in the last {self._patience} changes."
