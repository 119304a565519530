"""Messages over Flower."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from itertools import count
from typing import final

from isthmus.joint.transport.base import RemoteTransport, SiteState, Timeouts, Watcher, ignore
from isthmus_flower.superlink import FlowerSuperLink

LOOK = 0.5
"""Seconds between two checks of Flower's processes."""


@final
class FlowerTransport(RemoteTransport):
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

    look = LOOK

    def __init__(
        self,
        link: FlowerSuperLink,
        timeouts: Timeouts = Timeouts(),
        watch: Watcher = ignore,
    ) -> None:
        super().__init__(timeouts, watch)
        self._link = link
        self._ids = count(1)

    def _online(self) -> set[str]:
        self._link.ensure_running()
        if not self._link.send({"nodes": True}):
            return set()
        end = time.monotonic() + 10.0
        while time.monotonic() < end:
            for head, _ in self._link.receive(LOOK):
                if "nodes" in head:
                    here = set(head["nodes"])
                    online = {name for name, node in self._link.nodes.items() if node in here}
                    if len(online) < len(self._link.nodes):
                        self._link.review()
                    return online
        return set()

    def _deliver(
        self, outgoing: Mapping[str, bytes], seconds: float, watch: Watcher
    ) -> Iterator[bytes]:
        end = time.monotonic() + seconds
        waiting: dict[int, str] = {}
        self._link.ensure_running()
        while not self._link.connected and time.monotonic() < end:
            self._link.ensure_running()
            self._link.receive(LOOK)
        for name, data in outgoing.items():
            number, node = next(self._ids), self._link.nodes.get(name)
            watch(name, SiteState.ASKED)
            question = {"id": number, "node": node, "seconds": seconds}
            if node is not None and self._link.send(question, data):
                waiting[number] = name
            else:
                watch(name, SiteState.SILENT)
        while waiting and self._link.connected and time.monotonic() < end:
            for head, data in self._link.receive(LOOK):
                name = waiting.pop(head.get("id", 0), "")
                if name and head["there"]:
                    watch(name, SiteState.ANSWERED)
                    yield data
                elif name:
                    watch(name, SiteState.SILENT)
            self._link.ensure_running()
        for name in waiting.values():
            watch(name, SiteState.SILENT)
