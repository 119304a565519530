"""Objectives that several organisations compute together."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from isthmus.graphs import BoundKnowledge
from isthmus.objectives import Objective
from isthmus.searches.base import Search


class JointObjective(Objective):
    """Base class of the objectives that a joint source offers itself.

    Nobody knows their values; the searches that accept them get a graph from the organisations.

    Attributes
    ----------
    score_text
        What a result says about its score.
    """

    score_text: ClassVar[str] = "no score is computed"

    @abstractmethod
    def default_search(self) -> Search[Any]:
        """Return the search to use if the user names none."""

    @abstractmethod
    def require(self, search: Any, knowledge: BoundKnowledge) -> None:
        """Raise an error unless the study is for this search and knowledge; nothing is sent."""
