"""At the coordinator: relays messages of the coordinator's process to the nodes, and back.

It connects to the coordinator's socket and tells the number of its run: the coordinator listens to
its own runs only. Then it receives messages, each a JSON header followed by bytes:
``{"id", "node", "seconds"}`` to send, ``{"nodes"}`` to list connected nodes, ``{"stop"}`` to end.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import time

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.serverapp import Grid, ServerApp

LENGTH = struct.Struct("<I")
PAUSE = 0.1
"""Seconds between two requests for answers."""

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Relay messages until the coordinator's process ends or sends a stop message."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(os.environ["ISTHMUS_SOCKET"])
        run = str(context.run_id).encode()
        connection.sendall(LENGTH.pack(len(run)) + run)
        Relay(grid, connection).run()


class Relay:
    """Relays messages in both directions."""

    def __init__(self, grid: Grid, connection: socket.socket) -> None:
        self._grid = grid
        self._connection = connection
        self._waiting: dict[str, int] = {}
        self._buffer = bytearray()

    def run(self) -> None:
        """Read from the socket and from the grid, in turns."""
        self._connection.settimeout(PAUSE)
        while True:
            try:
                part = self._connection.recv(2**20)
                if not part:
                    return
                self._buffer += part
            except TimeoutError:
                pass
            while (item := self._item()) is not None:
                if not self._do(*item):
                    return
            self._pull()

    def _item(self) -> tuple[dict[str, object], bytes] | None:
        """Return a complete header with its bytes, or ``None``."""
        if len(self._buffer) < 2 * LENGTH.size:
            return None
        head, body = (LENGTH.unpack_from(self._buffer, at)[0] for at in (0, LENGTH.size))
        start = 2 * LENGTH.size
        if len(self._buffer) < start + head + body:
            return None
        header = json.loads(self._buffer[start : start + head])
        data = bytes(self._buffer[start + head : start + head + body])
        del self._buffer[: start + head + body]
        return header, data

    def _do(self, head: dict[str, object], data: bytes) -> bool:
        if "stop" in head:
            return False
        if "nodes" in head:
            self._send({"nodes": [str(n) for n in self._grid.get_node_ids()]}, b"")
            return True
        seconds = float(str(head["seconds"]))
        content = RecordDict({"frame": ConfigRecord({"data": data, "seconds": seconds})})
        message = Message(
            content=content,
            dst_node_id=int(str(head["node"])),
            message_type="query.frame",
            ttl=seconds,
        )
        number = int(str(head["id"]))
        for sent in self._grid.push_messages([message]):
            if sent:
                self._waiting[sent] = number
            else:
                self._send({"id": number, "there": False}, b"")
        return True

    def _pull(self) -> None:
        if not self._waiting:
            return
        for reply in self._grid.pull_messages(list(self._waiting)):
            # An error does not name its node; the answer is the same.
            number = self._waiting.pop(reply.metadata.reply_to_message_id, None)
            if number is None:
                continue
            there, data = False, b""
            if not reply.has_error():
                frame = reply.content.config_records["frame"]
                value = frame["data"]
                there = bool(frame["there"])
                data = value if isinstance(value, bytes) else b""
            self._send({"id": number, "there": there}, data)
        time.sleep(0)

    def _send(self, head: dict[str, object], data: bytes) -> None:
        text = json.dumps(head).encode()
        self._connection.settimeout(None)
        self._connection.sendall(LENGTH.pack(len(text)) + LENGTH.pack(len(data)) + text + data)
        self._connection.settimeout(PAUSE)
