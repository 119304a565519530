"""Base classes of search algorithms: options, and a run that computes one step at a time.

A search is a frozen dataclass with the options; ``begin`` returns a run that does one step at a
time. Time limits, progress and Ctrl-C are handled by `isthmus.runs.drive`, so a step should take
well under a second.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import numpy as np

from isthmus.graphs import BoundKnowledge
from isthmus.objectives import Capability, Objective
from isthmus.results.details import SearchDetails
from isthmus.runs import Progress, Run, drive

__all__ = ["Accepts", "Progress", "Run", "Search", "SearchResult", "drive"]

ObjectiveT_contra = TypeVar("ObjectiveT_contra", bound=Objective, contravariant=True)
Accepts: TypeAlias = tuple[Capability[Any], ...]


@dataclass(frozen=True)
class SearchResult:
    """The best graph of a search.

    Attributes
    ----------
    parents
        Parents of each node, by index.
    score
        Value of the objective.
    details
        Other results of the search: a record of `isthmus.results`, such as `OrderDetails`.
    gap
        Upper bound on how much better the optimal graph can be: 0 is a proof of optimality, None
        means that nothing is proven.
    converged
        Whether the result meets the conditions of a local optimum.
    notes
        What a user should know about the result, such as that it may depend on chance.
    identified
        Edges (from, to) whose directions the search has determined beyond the equivalence class.
    """

    parents: tuple[tuple[int, ...], ...]
    score: float
    details: Any = field(default_factory=SearchDetails)
    gap: float | None = None
    converged: bool = True
    notes: tuple[str, ...] = ()
    identified: tuple[tuple[int, int], ...] = ()


class Search(ABC, Generic[ObjectiveT_contra]):
    """Options of a search algorithm; implementations are frozen dataclasses.

    Attributes
    ----------
    accepts
        The capabilities of an objective that the search can work with; one of them is enough.
    """

    accepts: ClassVar[Accepts]

    @abstractmethod
    def begin(
        self, objective: ObjectiveT_contra, knowledge: BoundKnowledge, rng: np.random.Generator
    ) -> Run[SearchResult]:
        """Start a run."""
