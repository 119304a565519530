"""At a site: passes a message to the site's own process, and returns its answer.

Flower starts one process per message, so this module imports only what it needs. The data and the
keys stay in the process at the other end of the socket.
"""

from __future__ import annotations

import os
import socket
import struct

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

LENGTH = struct.Struct("<I")
LONGEST = 2**29

app = ClientApp()


@app.query("frame")
def relay(message: Message, _context: Context) -> Message:
    """Return the answer of the site, or that the site is not running."""
    sent = message.content.config_records["frame"]
    data, seconds = sent["data"], sent["seconds"]
    reply: dict[str, bytes | bool] = {"there": False, "data": b""}
    if isinstance(data, bytes) and isinstance(seconds, float):
        try:
            answer = ask(os.environ["ISTHMUS_SOCKET"], data, seconds)
            reply = {"there": True, "data": answer}
        except (OSError, ValueError):
            pass
    return Message(content=RecordDict({"frame": ConfigRecord(dict(reply))}), reply_to=message)


def ask(path: str, data: bytes, seconds: float) -> bytes:
    """Send a message with its length, and return the answer."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(seconds)
        connection.connect(path)
        connection.sendall(LENGTH.pack(len(data)) + data)
        (size,) = LENGTH.unpack(exactly(connection, LENGTH.size))
        if size > LONGEST:
            raise ValueError(f"the answer has {size} bytes; at most {LONGEST} are allowed")
        return exactly(connection, size)


def exactly(source: socket.socket, size: int) -> bytes:
    """Receive exactly this many bytes."""
    data = bytearray()
    while len(data) < size:
        part = source.recv(min(size - len(data), 2**20))
        if not part:
            raise OSError("the connection was closed")
        data += part
    return bytes(data)
