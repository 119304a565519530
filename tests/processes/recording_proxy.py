"""A proxy on loopback that records every byte in both directions."""

from __future__ import annotations

import socket
import threading
import time
from typing import final

from tests.processes.companies import Companies

from isthmus_joint.shares.two_party import address_of
from isthmus_joint.transport.certificates import free_port


@final
class Recording:
    """Forwards connections to a port, and keeps what passed."""

    def __init__(self, target: int, port: int | None = None) -> None:
        self.port = free_port() if port is None else port
        self._target = target
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self.forth: list[bytearray] = []
        self.back: list[bytearray] = []
        self._listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = self._connected()
            if server is None:
                client.close()
                continue
            forth, back = bytearray(), bytearray()
            self._sockets += [client, server]
            with self._lock:
                self.forth.append(forth)
                self.back.append(back)
            for ends in ((client, server, forth), (server, client, back)):
                threading.Thread(target=self._copy, args=ends, daemon=True).start()

    def _connected(self) -> socket.socket | None:
        """Connect to the target, which may not listen yet."""
        for _ in range(100):
            try:
                return socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                time.sleep(0.1)
        return None

    def _copy(self, source: socket.socket, to: socket.socket, record: bytearray) -> None:
        try:
            while data := source.recv(2**16):
                record += data
                to.sendall(data)
            to.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def close(self) -> None:
        self._listener.close()
        for each in self._sockets:
            each.close()


def proxies_of(world: Companies) -> tuple[Recording, Recording]:
    """Return proxies of the bank's two ports, of its engine and of its greeting."""
    card = (world.home("bank") / "card.toml").read_text()
    port = address_of(card.split('address = "')[1].split('"')[0])[1]
    own = free_port()
    return Recording(port, own), Recording(port + 1, own + 1)
