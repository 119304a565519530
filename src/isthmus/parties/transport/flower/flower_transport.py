"""The transport between machines: messages over Flower."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import final

from isthmus.errors import AbortedError
from isthmus.parties.transport.base import SiteState, Timeouts, Transport, Watcher
from isthmus.parties.transport.flower.superlink import FlowerSuperLink
from isthmus.parties.transport.sockets import PING

LOOK = 0.5
"""Seconds between two checks of Flower's processes."""

PROBE = 60.0
"""Seconds for a site to answer whether it is running."""


@final
class FlowerTransport(Transport):
    """Sites that run Flower's SuperNode.

    Parameters
    ----------
    link
        The coordinator's SuperLink.
    timeouts
        How long to wait.
    watch
        Called when the state of a site changes.
    """

    def __init__(
        self,
        link: FlowerSuperLink,
        timeouts: Timeouts = Timeouts(),
        watch: Watcher = lambda _site, _state: None,
    ) -> None:
        self._link = link
        self._timeouts = timeouts
        self._watch = watch
        self._ids = count(1)
        self._deadline: float | None = None

    def gather(self, names: Iterable[str]) -> None:
        """Wait until all of these sites are connected.

        Raises
        ------
        AbortedError
            Some sites did not connect in time; the message names them.
        """
        missing = set(names)
        for name in sorted(missing):
            self._watch(name, SiteState.AWAITED)
        end = time.monotonic() + self._timeouts.gather
        while missing and time.monotonic() < end:
            here = self._online()
            for name in sorted(missing & here):
                self._watch(name, SiteState.ANSWERED)
            missing -= here
            if missing:
                time.sleep(LOOK)
        if missing:
            raise AbortedError(
                f"The sites {sorted(missing)} did not connect within {self._timeouts.gather:.0f} "
                "seconds. No request was sent; run again when they can connect.",
                silent=tuple(sorted(missing)),
            )

    def _online(self) -> set[str]:
        self._link.ensure_running()
        if not self._link.send({"nodes": True}):
            return set()
        end = time.monotonic() + 10.0
        while time.monotonic() < end:
            for head, _ in self._link.receive(LOOK):
                if "nodes" in head:
                    here = set(head["nodes"])
                    return {name for name, node in self._link.nodes.items() if node in here}
        return set()

    def exchange(self, outgoing: Mapping[str, bytes]) -> Iterable[bytes]:
        return self._exchange(outgoing, self._timeouts.answer, self._watch)

    def _exchange(
        self, outgoing: Mapping[str, bytes], seconds: float, watch: Watcher
    ) -> Iterator[bytes]:
        end = time.monotonic() + seconds
        waiting: dict[int, str] = {}
        self._link.ensure_running()
        while not self._link.connected and time.monotonic() < end:
            self._link.ensure_running()
            self._link.receive(LOOK)
        for name, data in outgoing.items():
            number, node = next(self._ids), self._link.nodes[name]
            watch(name, SiteState.ASKED)
            if self._link.send({"id": number, "node": node, "seconds": seconds}, data):
                waiting[number] = name
            else:
                watch(name, SiteState.SILENT)
        whole = len(waiting) == len(outgoing)
        while waiting and self._link.connected and time.monotonic() < end:
            for head, data in self._link.receive(LOOK):
                name = waiting.pop(head.get("id", 0), "")
                if name and head["there"]:
                    watch(name, SiteState.ANSWERED)
                    yield data
                elif name:
                    whole = False
                    watch(name, SiteState.SILENT)
            self._link.ensure_running()
        for name in waiting.values():
            watch(name, SiteState.SILENT)
        if whole and not waiting:
            self._deadline = None

    def wait(self, silent: tuple[str, ...]) -> bool:
        if self._deadline is None:
            self._deadline = time.monotonic() + self._timeouts.pause
        deadline = self._deadline
        for name in silent:
            self._watch(name, SiteState.AWAITED)
        while (left := deadline - time.monotonic()) > 0:
            if set(silent) <= self._online():
                pings = dict.fromkeys(silent, PING)
                answers = list(self._exchange(pings, min(PROBE, left), lambda _site, _state: None))
                self._deadline = deadline  # this answer does not count as an answer to a request
                if answers == [PING] * len(silent):
                    return True
            time.sleep(min(LOOK, max(left, 0.0)))
        return False
