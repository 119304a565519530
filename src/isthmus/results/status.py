"""The status of a run: how it ended, with a sentence that explains why."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Ending(StrEnum):
    """The ways in which a search can end."""

    CONVERGED = "converged"
    OPTIMAL = "optimal"
    NOT_CONVERGED = "not converged"
    TIME_LIMIT = "time limit"
    INTERRUPTED = "interrupted"


class Sense(StrEnum):
    """Whether larger or smaller values of an objective are better."""

    MAXIMISE = "larger is better"
    MINIMISE = "smaller is better"


@dataclass(frozen=True)
class Status:
    """How a run ended.

    Attributes
    ----------
    ending
        The kind of ending.
    message
        Why the run stopped, and what to do to continue it.
    steps
        How many steps the search took.
    seconds
        How long it took by the wall clock, from the first step to the last.
    """

    ending: Ending
    message: str
    steps: int
    seconds: float

    @property
    def finished(self) -> bool:
        """Whether the search came to its own end."""
        return self.ending in (Ending.CONVERGED, Ending.OPTIMAL)

    def __str__(self) -> str:
        return f"{self.ending}: {self.message}"

    __repr__ = __str__
