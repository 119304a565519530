"""A TCP proxy in front of a server that cuts its connections, for tests of broken networks."""

from __future__ import annotations

import contextlib
import random
import select
import socket
import struct
import threading
import time
from typing import Self

ABORT = struct.pack("ii", 1, 0)


class FlappingProxy:
    """Passes bytes to a port of this machine, and cuts all connections every so often.

    Parameters
    ----------
    target
        The port of the server.
    every, down
        Mean number of seconds that connections live, and in which new ones are refused; each time
        is drawn at random, between half and one and a half times the mean. Without them,
        connections are cut by `cut` only.
    """

    def __init__(self, target: int, every: float = 0.0, down: float = 0.0) -> None:
        self._target = target
        self._every = every
        self._down = down
        self._pairs: dict[socket.socket, socket.socket] = {}
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._refusing = False
        self.cuts = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(0.05)
        self.port: int = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        if every:
            self._threads.append(threading.Thread(target=self._flap, daemon=True))

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self.cut()
        for thread in self._threads:
            thread.join(10)
        self._listener.close()

    def cut(self) -> None:
        """Break all connections, in the middle of whatever they carry."""
        with self._lock:
            sockets, self._pairs = list(self._pairs), {}
            self.cuts += bool(sockets)
        for each in sockets:
            with contextlib.suppress(OSError):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)
                each.shutdown(socket.SHUT_RDWR)

    def _flap(self) -> None:
        while not self._closed.wait(self._every * random.uniform(0.5, 1.5)):
            self._refusing = True
            self.cut()
            self._closed.wait(self._down * random.uniform(0.5, 1.5))
            self._refusing = False

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                near, _ = self._listener.accept()
            except TimeoutError:
                continue
            if self._refusing:
                near.close()
                continue
            try:
                far = socket.create_connection(("127.0.0.1", self._target), 5.0)
            except OSError:
                near.close()
                continue
            with self._lock:
                self._pairs |= {near: far, far: near}
            threading.Thread(target=self._pass, args=(near, far), daemon=True).start()

    def _pass(self, near: socket.socket, far: socket.socket) -> None:
        with near, far, contextlib.suppress(OSError):
            while not self._closed.is_set():
                ready, _, _ = select.select([near, far], [], [], 0.2)
                for source in ready:
                    data = source.recv(2**16)
                    if not data:
                        return
                    (far if source is near else near).sendall(data)
        time.sleep(0)
