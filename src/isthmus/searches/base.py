"""What a search is, and the one loop that drives every search.

A search is a frozen dataclass with the options; ``begin`` gives a :class:`Run` that does one
step at a time. Time limits, progress and Ctrl-C are handled here, once, so a step should
take well under a second.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar

import numpy as np

from isthmus.graphs import BoundKnowledge
from isthmus.objectives import AdditiveLoss, LocalScore, ParametricLoss, SmoothLoss
from isthmus.results.status import Ending, Status

Objective = LocalScore | SmoothLoss | AdditiveLoss | ParametricLoss
ObjectiveT = TypeVar("ObjectiveT", bound=Objective)


@dataclass(frozen=True)
class Found:
    """A graph as parents by index, with the value of the search's objective.

    ``details`` is what else a search has to tell: weights of edges, residuals. ``gap`` is how much
    more the best graph can score at most: 0 is a proof that there is none better, None that nothing
    is proven.
    """

    parents: tuple[tuple[int, ...], ...]
    score: float
    details: Mapping[str, object] = field(default_factory=dict)
    gap: float | None = None


@dataclass(frozen=True)
class Progress:
    """Where a run stands; ``done`` is None where nobody can know how much is left."""

    search: str
    text: str
    score: float
    seconds: float
    done: float | None = None


class Run(ABC):
    """A search under way."""

    @abstractmethod
    def step(self) -> bool:
        """Do one step; return whether the search is finished."""

    @abstractmethod
    def best(self) -> Found:
        """Return the best graph so far; cheap enough to be called at any time."""

    @abstractmethod
    def describe(self) -> tuple[str, float, float | None]:
        """Return a phrase on where the run stands, the best score, and the part done if known."""

    @abstractmethod
    def conclusion(self) -> str:
        """Return a sentence on what the end of the search means."""


class Search(ABC, Generic[ObjectiveT]):
    """Options of a search; subclasses are frozen dataclasses.

    Attributes
    ----------
    takes
        The kind of objective it works on.
    """

    takes: ClassVar[type[object]]

    @abstractmethod
    def begin(
        self, objective: ObjectiveT, knowledge: BoundKnowledge, rng: np.random.Generator
    ) -> Run:
        """Start a run."""


def drive(
    run: Run,
    name: str,
    *,
    time_limit: float | None = None,
    report: Callable[[Progress], None] | None = None,
) -> tuple[Found, Status]:
    """Step a run to its end, to the time limit or to Ctrl-C, whichever comes first.

    Parameters
    ----------
    run
        What ``Search.begin`` gave.
    name
        Name of the search, for progress.
    time_limit
        Seconds after which the best so far is returned.
    report
        Called with a :class:`Progress` about five times a second.
    """
    begin = time.monotonic()
    reported = begin
    steps = 0
    ending = Ending.CONVERGED
    try:
        while not run.step():
            steps += 1
            now = time.monotonic()
            if time_limit is not None and now - begin >= time_limit:
                ending = Ending.TIME_LIMIT
                break
            if report is not None and now - reported >= 0.2:
                reported = now
                text, score, done = run.describe()
                report(Progress(name, text, score, now - begin, done))
        else:
            steps += 1
    except KeyboardInterrupt:
        ending = Ending.INTERRUPTED
    found = run.best()
    seconds = time.monotonic() - begin
    if ending is Ending.CONVERGED and found.gap == 0.0:
        ending = Ending.OPTIMAL
    message = {
        Ending.TIME_LIMIT: "the time limit was reached; this is the best graph so far. "
        "Give a longer time_limit to go on.",
        Ending.INTERRUPTED: "interrupted; this is the best graph so far.",
    }.get(ending) or run.conclusion()
    if ending is not Ending.OPTIMAL and found.gap is not None:
        message += f" The best graph of all scores at most {found.gap:.6g} more."
    return found, Status(ending, message, steps, seconds)
