"""Watches that stop a search at a given poll, and times of polls."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from isthmus.watch import Watch

T = TypeVar("T")


class Polls:
    """Stops at this poll, and keeps the times of all of them."""

    def __init__(self, most: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = most, clock
        self.times = [clock()]

    def __call__(self) -> bool:
        self.times.append(self._clock())
        return len(self.times) > self._most

    @property
    def longest(self) -> float:
        """The longest time between two polls, or before the first one."""
        return max(b - a for a, b in zip(self.times, self.times[1:], strict=False))


def stopped(work: Callable[[Watch], T]) -> Iterator[T]:
    """Results of work that was stopped at more and more polls."""
    polls = 1
    while True:
        watch = Watch(stop=Polls(polls))
        result = work(watch)
        if not watch.stopped:
            return
        yield result
        polls += max(1, polls // 8)
