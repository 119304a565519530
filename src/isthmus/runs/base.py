"""What a long computation offers to the loop that drives it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


class Result(Protocol):
    """Result of a run.

    ``gap`` is an upper bound on how much better the best possible answer can be: 0 is a proof that
    the answer is optimal, None means that nothing is proven. ``converged`` is False if the run came
    to its end at an answer that is not optimal, not even locally.
    """

    @property
    def converged(self) -> bool:
        """Whether the answer meets the conditions of a local optimum."""

    @property
    def gap(self) -> float | None:
        """How much better the best possible answer can be at most."""


ResultT_co = TypeVar("ResultT_co", bound=Result, covariant=True)


@dataclass(frozen=True)
class Progress:
    """The state of a run, for display.

    Attributes
    ----------
    name
        Name of the search or sampler.
    text
        A phrase that says what the run is doing.
    score
        Best value of the objective so far; NaN if there is none to tell.
    seconds
        Wall-clock time since the start.
    done
        Fraction of the work that is done; None if it is not known.
    """

    name: str
    text: str
    score: float
    seconds: float
    done: float | None = None


class Run(ABC, Generic[ResultT_co]):
    """A search or a sampler in progress."""

    @abstractmethod
    def step(self) -> bool:
        """Do one step, well under a second, and return whether the run has finished."""

    @abstractmethod
    def best(self) -> ResultT_co:
        """Return the best result so far. It may be called after any step.

        A run that has no result before its end ends here, and raises `AbortedError`.
        """

    @abstractmethod
    def describe(self) -> tuple[str, float, float | None]:
        """Return a phrase for the progress line, the best score, and the fraction done if known."""

    @abstractmethod
    def conclusion(self) -> str:
        """Explain why the run stopped, in one sentence."""
