"""A link inside of a process, for protocols that need no engine."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Full, Queue
from typing import Any

WINDOW = 4
"""Messages that can be sent before the other end receives."""


class Link:
    """One end of a link inside of a process, which keeps what it received.

    As with the real one, a party that sends waits while several messages were not received.
    """

    def __init__(self, rank: int, queues: list[Queue[Any]]) -> None:
        self.rank = rank
        self.seen: list[bytes] = []
        self._queues = queues

    def send(self, data: bytes) -> None:
        self._queues[1 - self.rank].put(data, timeout=20)

    def receive(self) -> bytes:
        data = self._queues[self.rank].get(timeout=20)
        if data is None:
            raise RuntimeError("the other end is gone")
        self.seen.append(data)
        return self.seen[-1]

    def leave(self) -> None:
        """Tell the other end that this one is gone."""
        with suppress(Full):
            self._queues[1 - self.rank].put_nowait(None)


def ends() -> list[Link]:
    """Return both ends of a link."""
    queues: list[Queue[Any]] = [Queue(WINDOW), Queue(WINDOW)]
    return [Link(rank, queues) for rank in (0, 1)]


def at_both(
    function: Callable[[Any], Any], links: list[Link] | None = None
) -> tuple[list[Any], list[Link]]:
    """Run a function at both ends of a link; return results, or errors, and the ends."""
    links = ends() if links is None else links
    results: list[Any] = [None, None]

    def run(rank: int) -> None:
        try:
            results[rank] = function(links[rank])
        except Exception as error:  # noqa: BLE001 - told to the test
            results[rank] = error
            links[rank].leave()

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results, links
