"""A line of progress on the terminal, for searches that take long."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from isthmus.searches import Progress

_PATIENCE = 1.0


@contextmanager
def reporter_for(
    progress: bool | Callable[[Progress], None] | None,  # noqa: FBT001 - as given to learn
) -> Iterator[Callable[[Progress], None] | None]:
    """Yield a function that shows progress, or None; clear the progress line at the end."""
    if callable(progress):
        yield progress
        return
    if progress is False or (progress is None and not _shows_lines()):
        yield None
        return
    width = 0

    def write(line: str) -> None:
        nonlocal width
        sys.stderr.write("\r" + line.ljust(width))
        sys.stderr.flush()
        width = len(line)

    def show(state: Progress) -> None:
        if progress is None and state.seconds < _PATIENCE:
            return
        done = "" if state.done is None else f", {state.done:.0%}"
        best = "" if math.isnan(state.score) else f", best {state.score:.8g}"
        write(
            f"{state.name}: {state.text}{best}{done}, {state.seconds:.0f} s "
            "(Ctrl-C for the best so far)"
        )

    try:
        yield show
    finally:
        if width:
            sys.stderr.write("\r" + " " * width + "\r")
            sys.stderr.flush()


def _shows_lines() -> bool:
    """Whether standard error is a terminal, or a notebook, which overwrites lines like one."""
    return sys.stderr.isatty() or type(sys.stderr).__module__.startswith("ipykernel")
