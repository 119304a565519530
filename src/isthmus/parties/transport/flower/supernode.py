"""A site's side of Flower: a SuperNode, and the process that relays messages to the site."""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import final

from isthmus.parties.certificates import write_private
from isthmus.parties.transport.flower.programs import flower_environment
from isthmus.parties.transport.supervised_process import SupervisedProcess, free_port

CHECK = 0.5
"""Seconds between two checks of the processes."""


@final
class FlowerSuperNode:
    """Runs Flower's SuperNode for a site, and restarts it when it ends.

    Neither of its processes sees the data or the keys of the site: messages go to the socket of the
    site's own process. By default Flower would start one process per message and run the code that
    the coordinator sent in it. One permanent process replaces this, and runs no foreign code.

    Parameters
    ----------
    state
        The private folder of the site.
    socket
        The socket of the site's own process.
    coordinator
        Host and port, for instance ``"example.org:9092"``.
    authority
        File of the certificate of the authority that signed the coordinator's certificate.
    key
        File of the private key that identifies this node to Flower.
    """

    def __init__(
        self, state: Path, socket: Path, coordinator: str, authority: Path, key: Path
    ) -> None:
        home = state.absolute() / "flower"
        home.mkdir(mode=0o700, exist_ok=True)
        relay = str(Path(__file__).parent / "relay")
        environment = flower_environment(home) | {"PYTHONPATH": relay}
        port = str(free_port())
        secret = home / "secret"
        secret.unlink(missing_ok=True)
        write_private(secret, secrets.token_bytes(32))
        node = [
            *(sys.executable, "-m", "isthmus_relay.node"),
            *("--superlink", coordinator, "--root-certificates", str(authority.resolve())),
            *("--auth-supernode-private-key", str(key.resolve())),
            *("--host", "127.0.0.1", "--port", port),
            *("--isolation", "process", "--superexec-auth-secret-file", str(secret)),
        ]
        runner = [
            *(sys.executable, "-m", "isthmus_relay.site_runner"),
            *(f"127.0.0.1:{port}", str(secret), str(socket.absolute())),
        ]
        self.log = state / "flower.log"
        self._processes = [
            SupervisedProcess(node, environment, self.log, delay=5.0),
            SupervisedProcess(runner, environment, self.log),
        ]

    def ensure_running(self) -> None:
        """Start the processes that are not running."""
        for process in self._processes:
            process.ensure_running()

    def run(self, until: Callable[[], bool]) -> None:
        """Keep the processes running until a condition is met."""
        while not until():
            self.ensure_running()
            time.sleep(CHECK)

    def stop(self) -> None:
        """Stop all processes."""
        for process in reversed(self._processes):
            process.stop()
