"""Messages between processes of one user, over Unix domain sockets.

Only processes of the same user can open the socket: its folder has mode 0700, and the socket itself
has mode 0600. A message is sent as its length in four bytes, then its bytes. An empty message asks
whether the service is running, and the answer is empty too.
"""

from __future__ import annotations

import os
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import final

from isthmus.joint.transport.base import PING

LENGTH = struct.Struct("<I")
IDLE = 30.0
"""Seconds in which a client must send a complete message."""

MAX_CONNECTIONS = 32
"""Maximum number of connections at a time; further ones wait."""

LONGEST = 100
"""Longest path, in bytes, that every system accepts for a socket."""


def socket_path(folder: Path) -> Path:
    """Return the path of a folder's socket; outside of the folder if that path is too long."""
    path = folder / "socket"
    if len(os.fsencode(path)) <= LONGEST:
        return path
    return Path(tempfile.mkdtemp(prefix="isthmus-")) / "socket"


def send(to: socket.socket, data: bytes) -> None:
    """Send a message."""
    to.sendall(LENGTH.pack(len(data)) + data)


def receive(source: socket.socket, limit: int) -> bytes | None:
    """Receive a message; ``None`` if the connection is closed, `ValueError` if it is too long."""
    head = _exactly(source, LENGTH.size)
    if head is None:
        return None
    (size,) = LENGTH.unpack(head)
    if size > limit:
        raise ValueError(f"the message has {size} bytes; at most {limit} are allowed")
    return _exactly(source, size)


def _exactly(source: socket.socket, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        part = source.recv(min(size - len(data), 2**20))
        if not part:
            return None
        data += part
    return bytes(data)


@final
class Service:
    """Answers messages on a socket until it is closed.

    Parameters
    ----------
    path
        The socket. A socket that a killed process left behind is replaced.
    handle
        Returns the answer to a message. It is called by one thread at a time.
    limit
        Length of the longest message, in bytes.
    reject
        Called when a client sends something that is not a message.
    """

    def __init__(
        self,
        path: Path,
        handle: Callable[[bytes], bytes],
        limit: int,
        reject: Callable[[], None] = lambda: None,
    ) -> None:
        self._path = path
        self._handle = handle
        self._limit = limit
        self._reject = reject
        self._one = threading.Lock()
        self._free = threading.Semaphore(MAX_CONNECTIONS)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        path.chmod(0o600)
        self._listener.listen(MAX_CONNECTIONS)
        self._closed = False

    def serve(self) -> None:
        """Answer until `close` is called."""
        while not self._closed:
            self._free.acquire()
            try:
                connection, _ = self._listener.accept()
            except OSError:
                self._free.release()
                if self._closed:
                    return
                time.sleep(0.1)  # too many open files, perhaps; some client will disconnect
                continue
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def start(self) -> None:
        """Answer in a separate thread."""
        threading.Thread(target=self.serve, daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        try:
            with connection:
                connection.settimeout(IDLE)
                while (data := receive(connection, self._limit)) is not None:
                    if data == PING:
                        send(connection, PING)
                        continue
                    with self._one:
                        answer = self._handle(data)
                    send(connection, answer)
        except ValueError:
            with self._one:
                self._reject()
        except OSError:
            return  # the client disconnected, or was silent for too long
        finally:
            self._free.release()

    def close(self) -> None:
        """Stop answering."""
        self._closed = True
        # Wakes the thread that waits for a connection; closing the listener does not.
        self._listener.close()
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as last:
                last.connect(str(self._path))
        except OSError:
            pass
        self._path.unlink(missing_ok=True)


def ask(path: Path, data: bytes, limit: int, seconds: float) -> bytes | None:
    """Return the answer of a service, or ``None`` if there is none in time."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(seconds)
            connection.connect(str(path))
            send(connection, data)
            return receive(connection, limit)
    except (OSError, ValueError):
        return None
