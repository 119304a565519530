"""The one loop that drives every search and every sampler."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from isthmus import interrupts
from isthmus.errors import AbortedError
from isthmus.results.status import Ending, Status
from isthmus.runs.base import Progress, Result, Run

ResultT = TypeVar("ResultT", bound=Result)

_REPORT_INTERVAL = 0.2


def drive(
    run: Run[ResultT],
    name: str,
    *,
    time_limit: float | None = None,
    report: Callable[[Progress], None] | None = None,
) -> tuple[ResultT, Status]:
    """Step a run until it finishes, the time limit is reached, or the user presses Ctrl-C.

    Parameters
    ----------
    run
        The run, as returned by ``begin`` of a search or a sampler.
    name
        Name of the search or sampler, for the progress line.
    time_limit
        Stop after this many seconds and return the best result so far.
    report
        Called with a :class:`Progress` about five times per second.

    Raises
    ------
    AbortedError
        The time limit was reached by a run that has no result before its end. Ctrl-C raises
        `KeyboardInterrupt` in such a run.
    """
    start = time.monotonic()
    last_report = start
    steps = 0
    ending = Ending.CONVERGED
    try:
        with interrupts.recorded() as ctrl_c:
            while True:
                finished = run.step()
                steps += 1
                if ctrl_c.raised:  # in a callback, where Python ignores the exception
                    ending = Ending.INTERRUPTED
                    break
                if finished:
                    break
                now = time.monotonic()
                if time_limit is not None and now - start >= time_limit:
                    ending = Ending.TIME_LIMIT
                    break
                if report is not None and now - last_report >= _REPORT_INTERVAL:
                    last_report = now
                    text, score, done = run.describe()
                    report(Progress(name, text, score, now - start, done))
    except KeyboardInterrupt:
        ending = Ending.INTERRUPTED
    try:
        result = run.best()
    except AbortedError:
        if ending is Ending.INTERRUPTED:
            raise KeyboardInterrupt from None
        raise
    seconds = time.monotonic() - start
    if ending is Ending.CONVERGED and result.gap == 0.0:
        ending = Ending.OPTIMAL
    elif ending is Ending.CONVERGED and not result.converged:
        ending = Ending.NOT_CONVERGED
    return result, Status(ending, _message(ending, run, result.gap), steps, seconds)


def _message(ending: Ending, run: Run[ResultT], gap: float | None) -> str:
    if ending is Ending.TIME_LIMIT:
        message = "this is the best result so far; a longer time_limit may improve it."
    elif ending is Ending.INTERRUPTED:
        message = "this is the best result so far."
    else:
        message = run.conclusion()
    if ending is not Ending.OPTIMAL and gap is not None:
        message += f" The best possible score is at most {gap:.6g} higher."
    return message
