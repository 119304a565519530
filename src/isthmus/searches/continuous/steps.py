"""Long computations as generators, which stop at short intervals so that a run can be interrupted.

Such a function yields None after at most some fifty milliseconds of work and returns its value:
``value = yield from function(...)``. Where it stops does not change the value.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Steps: TypeAlias = Generator[None, None, T]
"""A computation in short steps, and the type of its value."""


def finish(steps: Steps[T]) -> T:
    """Do all steps and return the value."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            value: T = end.value
            return value


def finish_within(steps: Steps[T], seconds: float) -> T | None:
    """Do steps for about this long; return the value, or None if there was not enough time."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            next(steps)
        except StopIteration as end:
            value: T = end.value
            return value
        if time.monotonic() >= deadline:
            return None
