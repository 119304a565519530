"""Base class of search algorithms, and what they return.

A search is a frozen dataclass with the options; its method ``search`` returns the best graph. Time
limits, progress and Ctrl-C are the business of `isthmus.runs.Watch`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import numpy as np

from isthmus.graphs import BoundKnowledge
from isthmus.objectives import Capability, Objective
from isthmus.results.details import SearchDetails
from isthmus.runs import Progress, Stopped, Watch, drive

__all__ = ["Accepts", "Progress", "Search", "SearchResult", "Stopped", "Watch", "drive"]

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
    conclusion
        Why the search came to its end, in one sentence.
    """

    parents: tuple[tuple[int, ...], ...]
    score: float
    details: Any = field(default_factory=SearchDetails)
    gap: float | None = None
    converged: bool = True
    notes: tuple[str, ...] = ()
    identified: tuple[tuple[int, int], ...] = ()
    conclusion: str = ""


class Search(ABC, Generic[ObjectiveT_contra]):
    """Options of a search algorithm; implementations are frozen dataclasses.

    Attributes
    ----------
    accepts
        The capabilities of an objective that the search can work with; one of them is enough.
    """

    accepts: ClassVar[Accepts]

    @abstractmethod
    def search(
        self,
        objective: ObjectiveT_contra,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        watch: Watch,
    ) -> SearchResult:
        """Return the best graph found until the end, or until it is time to stop.

        Parameters
        ----------
        objective
            What to maximise; it has one of the capabilities that the search accepts.
        knowledge
            Required and forbidden edges.
        rng
            The only source of randomness.
        watch
            Says when to stop, and hears of progress.
        """
