"""A time limit that reading and summing up look at, wherever they happen."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from isthmus.errors import TimeLimitError
from isthmus.types import T, Work

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
