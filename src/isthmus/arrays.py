"""Types that many modules use."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
"""An array of double precision numbers."""

Integers: TypeAlias = NDArray[np.int64]
"""An array of 64-bit integers."""

Bools: TypeAlias = NDArray[np.bool_]
"""An array of Booleans."""

T = TypeVar("T")

Work: TypeAlias = Generator[None, None, T]
"""A long computation in pieces of at most about 50 ms: it yields after each, and returns a value.

The caller can stop between two pieces, for a time limit or for Ctrl-C.
"""


def completed(work: Work[T]) -> T:
    """Do all the work at once, and return its value."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            value: T = end.value
            return value


def completed_within(work: Work[T], seconds: float) -> T | None:
    """Work for about this long; return the value, or None if there was not enough time."""
    until = time.monotonic() + seconds
    while True:
        try:
            next(work)
        except StopIteration as end:
            value: T = end.value
            return value
        if time.monotonic() >= until:
            return None
