"""At a site: hands a frame to the site's own process, and its answer back.

Flower starts a process for every message. This one imports Flower and a socket, and nothing that
takes long; data and keys stay in the process at the other end of the socket.
"""

from __future__ import annotations

import socket
import struct

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

LENGTH = struct.Struct("<I")
LONGEST = 2**29

app = ClientApp()


@app.query("frame")
def relay(message: Message, context: Context) -> Message:
    """Give the answer of the site, or say that nobody is there."""
    sent = message.content.config_records["frame"]
    data, seconds = sent["data"], sent["seconds"]
    found: dict[str, bytes | bool] = {"there": False, "data": b""}
    if isinstance(data, bytes) and isinstance(seconds, float):
        try:
            answer = ask(str(context.node_config["socket"]), data, seconds)
            found = {"there": True, "data": answer}
        except (OSError, ValueError):
            pass
    return Message(content=RecordDict({"frame": ConfigRecord(dict(found))}), reply_to=message)


def ask(path: str, data: bytes, seconds: float) -> bytes:
    """Send a message with its length before it, and receive one."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(seconds)
        connection.connect(path)
        connection.sendall(LENGTH.pack(len(data)) + data)
        (size,) = LENGTH.unpack(exactly(connection, LENGTH.size))
        if size > LONGEST:
            raise ValueError("the answer is too long")
        return exactly(connection, size)


def exactly(source: socket.socket, size: int) -> bytes:
    """Receive so many bytes."""
    found = bytearray()
    while len(found) < size:
        part = source.recv(min(size - len(found), 2**20))
        if not part:
            raise OSError("the other end is gone")
        found += part
    return bytes(found)
