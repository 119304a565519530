"""A site's side of Flower: a SuperNode, and a SuperExec that runs the app for each message."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import final

from isthmus.joint.records.private_files import write_private
from isthmus.joint.transport.child_process import free_port
from isthmus_flower.programs import (
    app_environment,
    flower_environment,
    flower_program,
)
from isthmus_flower.supervised_process import SupervisedProcess

CHECK = 0.5
"""Seconds between two checks of the processes."""


@final
class FlowerSuperNode:
    """Runs ``flower-supernode`` and ``flower-superexec``, and restarts them when they end.

    For each message Flower starts a process that runs an app. The app is always our own: it passes
    the message to the socket of the site's own process, where data and keys are. Code that the
    coordinator sends is not run.

    Parameters
    ----------
    state
        The private folder of the site.
    socket
        The socket of the site's own process.
    coordinator
        Host and port, for instance ``"example.org:9092"``.
    certificate
        File of the certificate of the coordinator.
    key
        File of the private key that identifies this node to Flower.
    """

    def __init__(
        self, state: Path, socket: Path, coordinator: str, certificate: Path, key: Path
    ) -> None:
        home = state.absolute() / "flower"
        home.mkdir(mode=0o700, exist_ok=True)
        port = str(free_port())
        secret = home / "secret"
        secret.unlink(missing_ok=True)
        write_private(secret, secrets.token_bytes(32))
        node = [
            flower_program("flower-supernode"),
            *("--superlink", coordinator, "--root-certificates", str(certificate.resolve())),
            *("--auth-supernode-private-key", str(key.resolve())),
            *("--host", "127.0.0.1", "--port", port),
            *("--isolation", "process", "--superexec-auth-secret-file", str(secret)),
        ]
        executor = [
            flower_program("flower-superexec"),
            *("--runtime-api-address", f"127.0.0.1:{port}", "--insecure"),  # within this machine
            *("--superexec-auth-secret-file", str(secret)),
        ]
        ours = app_environment(home, "flwr-clientapp", socket.absolute())
        self.log = state / "flower.log"
        self._processes = [
            SupervisedProcess(node, flower_environment(home), self.log, delay=5.0),
            SupervisedProcess(executor, ours, self.log),
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
