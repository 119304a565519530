"""Messages from the coordinator to sites as messages of Flower."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import final

from flwr.app import Message
from flwr.serverapp import Grid

from isthmus_flower.messages import packed, unpacked
from isthmus_joint import Roster, Timeouts
from isthmus_joint.transport.base import NodeTransport, Watcher

LOOK = 0.5
"""Seconds between two checks for answers."""


@final
class FlowerTransport(NodeTransport[int]):
    """Sites behind the nodes of a run.

    Parameters
    ----------
    grid
        What Flower gives to the ServerApp.
    roster, timeouts, watch
        As for `NodeTransport`.
    """

    look = 2.0
    probe = 180.0  # Flower starts a process at the node first

    def __init__(self, grid: Grid, roster: Roster, timeouts: Timeouts, watch: Watcher) -> None:
        super().__init__(roster, timeouts, watch)
        self._grid = grid

    def _nodes(self) -> Iterable[int]:
        return self._grid.get_node_ids()

    def _send(self, messages: Mapping[int, bytes], seconds: float) -> Iterator[tuple[int, bytes]]:
        end = time.monotonic() + seconds
        sent = [Message(packed(m), n, "query", ttl=seconds) for n, m in messages.items()]
        numbers = self._grid.push_messages(sent)
        waiting = {number: node for number, node in zip(numbers, messages, strict=False) if number}
        while waiting and time.monotonic() < end:
            for reply in self._grid.pull_messages(list(waiting)):
                # An error does not name its node, but the message that it answers.
                node = waiting.pop(reply.metadata.reply_to_message_id, None)
                answer = None if reply.has_error() else unpacked(reply.content)
                if node is not None and answer is not None:
                    yield node, answer
            time.sleep(LOOK)
