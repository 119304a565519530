"""What stops a search or a sampler, and shows its progress: a `Watch`."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from types import FrameType
from typing import Any, Protocol, TypeAlias, TypeVar, final

from isthmus.arrays import T, Work
from isthmus.errors import AbortedError, TimeLimitError

# --- Ctrl-C that is neither lost nor heard at a moment when it would crash the process ----------

_Handler: TypeAlias = Callable[[int, FrameType | None], Any]


@contextmanager
def held_back() -> Iterator[None]:
    """Hold Ctrl-C back until the block has ended, for instance while a package is imported.

    A `KeyboardInterrupt` raised while an extension module is initialised can crash the process.
    Outside the main thread nothing is changed, because no signal handler runs there.
    """
    old = _handler()
    if old is None:
        yield
        return
    frames: list[FrameType | None] = []
    signal.signal(signal.SIGINT, lambda _, frame: frames.append(frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, old)
        if frames:
            old(signal.SIGINT, frames[0])


@final
class Interrupts:
    """Whether a signal handler raised `KeyboardInterrupt`."""

    def __init__(self) -> None:
        self.raised = False


@contextmanager
def recorded() -> Iterator[Interrupts]:
    """Record every `KeyboardInterrupt` that Ctrl-C raises during the block.

    Python ignores an exception in a callback of the garbage collector or of a weak reference, and
    JAX has both. The record tells that Ctrl-C was pressed although nobody saw the exception.
    """
    interrupts = Interrupts()
    old = _handler()
    if old is None:
        yield interrupts
        return
    call = old

    def handle(number: int, frame: FrameType | None) -> None:
        try:
            call(number, frame)
        except KeyboardInterrupt:
            interrupts.raised = True
            raise

    try:
        signal.signal(signal.SIGINT, handle)
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, old)


def _handler() -> _Handler | None:
    """Return the Python function that handles Ctrl-C; None if there is none that we may replace."""
    if threading.current_thread() is not threading.main_thread():
        return None
    handler = signal.getsignal(signal.SIGINT)
    return handler if callable(handler) else None


# --- A time limit that reading and summing up look at, wherever they happen ---------------------

_UNTIL: ContextVar[float] = ContextVar("until", default=math.inf)


@contextmanager
def limited(until: float) -> Iterator[None]:
    """Let `check` raise an error from this time of ``time.monotonic()`` on."""
    token = _UNTIL.set(until)
    try:
        yield
    finally:
        _UNTIL.reset(token)


def check() -> None:
    """Raise `TimeLimitError` if the time is up; called after each batch of rows and each query."""
    if time.monotonic() >= _UNTIL.get():
        raise TimeLimitError(
            "The time limit ended while the table was read, so there is no graph yet. Give more "
            "time, or fewer columns or rows."
        )


def completed(work: Work[T]) -> T:
    """Do all the work within the time limit, and return its value."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            value: T = end.value
            return value
        check()


# --- The status of a run: how it ended, with a sentence that explains why -----------------------


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


# --- What stops a search or a sampler, and shows its progress: a `Watch` ------------------------

_REPORT_INTERVAL = 0.2

Say: TypeAlias = Callable[[], tuple[str, float, float | None]]
"""Returns a phrase for the progress line, the best score, and the fraction done if known."""


class Result(Protocol):
    """Result of a search or a sampler.

    ``gap`` is an upper bound on how much better the best possible answer can be: 0 is a proof that
    the answer is optimal, None means that nothing is proven. ``converged`` is False if the search
    came to its end at an answer that is not optimal, not even locally. ``conclusion`` explains in
    one sentence why it ended.
    """

    @property
    def converged(self) -> bool:
        """Whether the answer meets the conditions of a local optimum."""

    @property
    def gap(self) -> float | None:
        """How much better the best possible answer can be at most."""

    @property
    def conclusion(self) -> str:
        """Why the search ended."""


ResultT = TypeVar("ResultT", bound=Result)


@dataclass(frozen=True)
class Progress:
    """The state of a search or a sampler, for display.

    Attributes
    ----------
    name
        Name of the search or sampler.
    text
        A phrase that says what it is doing.
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


class Stopped(Exception):  # noqa: N818 - not an error, and `Watch.until_stopped` ends it
    """The time is over, or somebody asked to stop; it never leaves `Watch.until_stopped`."""


@final
class Watch:
    """Looks at the clock and for Ctrl-C, and tells progress.

    A search calls `poll` at least every 50 milliseconds, inside of `until_stopped`. Poll after
    keeping a result, never before computing one: then even the shortest time makes progress.

    Parameters
    ----------
    name
        Name of the search or sampler, for the progress line.
    time_limit
        Stop after this many seconds.
    report
        Called with a :class:`Progress` about five times per second.
    stop
        Stop as soon as this returns True.
    """

    def __init__(
        self,
        name: str = "",
        *,
        time_limit: float | None = None,
        report: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> None:
        self._name = name
        self._start = self._reported = time.monotonic()
        self._end = math.inf if time_limit is None else self._start + time_limit
        self._report = report
        self._stop = stop
        self._ctrl_c: Interrupts | None = None
        self._said: tuple[str, float, float | None] = ("", math.nan, None)
        self._say: Say | None = None
        self._polls = 0
        self.suffix = ""
        """Added to what is said."""
        self.ending: Ending | None = None
        """Why the work was stopped before its end; None if it was not."""

    @property
    def stopped(self) -> bool:
        """Whether the work was stopped before its end."""
        return self.ending is not None

    def poll(self, text: str = "", score: float = math.nan, done: float | None = None) -> None:
        """Raise `Stopped` if it is time to stop, and tell progress now and then.

        Parameters
        ----------
        text
            A phrase that says what is being done; if empty, it is still what was said before.
        score
            Best value of the objective so far.
        done
            Fraction of the work that is done, if it is known.
        """
        if text:
            self._said, self._say = (text, score, done), None
        if self.ending is None:
            self._polls += 1
            now = time.monotonic()
            if self._ctrl_c is not None and self._ctrl_c.raised:
                self.ending = Ending.INTERRUPTED  # in a callback, where Python ignores it
            elif now >= self._end or (self._stop is not None and self._stop()):
                self.ending = Ending.TIME_LIMIT
            elif self._report is not None and now - self._reported >= _REPORT_INTERVAL:
                self._reported = now
                text, score, done = self._said if self._say is None else self._say()
                text += self.suffix
                self._report(Progress(self._name, text, score, now - self._start, done))
        if self.ending is not None:
            raise Stopped

    def run(self, step: Callable[[], bool], say: Say | None = None) -> None:
        """Call ``step`` until it returns True, and poll in between.

        Parameters
        ----------
        step
            Works for some milliseconds, as computations in the compiled core do.
        say
            Asked what to tell, when it is time to tell something.
        """
        self._say = say
        while not step():
            self.poll()
        self._say = None

    def complete(self, work: Work[T], say: Say | None = None) -> T:
        """Do work that comes in pieces, poll in between, and return its value."""
        self._say = say
        while True:
            try:
                next(work)
            except StopIteration as end:
                self._say = None
                value: T = end.value
                return value
            self.poll()

    @contextmanager
    def until_stopped(self) -> Iterator[None]:
        """Leave the block when it is time to stop, or at Ctrl-C; the caller keeps its result.

        Blocks may be nested: what polls after the inner one was left also leaves the outer one.
        """
        outermost = self._ctrl_c is None
        try:
            if not outermost:
                yield
                return
            with recorded() as self._ctrl_c:
                yield
            if self._ctrl_c.raised and self.ending is None:
                self.ending = Ending.INTERRUPTED
        except Stopped:
            pass
        except KeyboardInterrupt:
            self.ending = Ending.INTERRUPTED
        finally:
            if outermost:
                self._ctrl_c = None

    def reraise(self) -> None:
        """Raise `KeyboardInterrupt` if that is what stopped the work."""
        if self.ending is Ending.INTERRUPTED:
            raise KeyboardInterrupt

    def status(self, result: Result) -> Status:
        """Return how the work ended that led to this result."""
        ending = self.ending
        message = result.conclusion
        if ending is Ending.TIME_LIMIT:
            message = "this is the best result so far; a longer time_limit may improve it."
        elif ending is Ending.INTERRUPTED:
            message = "this is the best result so far."
        elif result.gap == 0.0:
            ending = Ending.OPTIMAL
        else:
            ending = Ending.CONVERGED if result.converged else Ending.NOT_CONVERGED
        if ending is not Ending.OPTIMAL and result.gap is not None:
            message += f" The best possible score is at most {result.gap:.6g} higher."
        steps = self._polls if self.stopped else self._polls + 1
        return Status(ending, message, steps, time.monotonic() - self._start)


def drive(
    work: Callable[[Watch], ResultT],
    name: str,
    *,
    time_limit: float | None = None,
    report: Callable[[Progress], None] | None = None,
) -> tuple[ResultT, Status]:
    """Search or sample until the end, the time limit, or Ctrl-C; return the result and its status.

    Parameters
    ----------
    work
        What to do, such as ``partial(search.search, objective, knowledge, rng)``.
    name
        Name of the search or sampler, for the progress line.
    time_limit
        Stop after this many seconds with the best result so far.
    report
        Called with a :class:`Progress` about five times per second.

    Raises
    ------
    AbortedError
        The time limit was reached by a search that has no result before its end. Ctrl-C raises
        `KeyboardInterrupt` in such a search.
    """
    watch = Watch(name, time_limit=time_limit, report=report)
    try:
        result = work(watch)
    except AbortedError:
        watch.reraise()
        raise
    return result, watch.status(result)
