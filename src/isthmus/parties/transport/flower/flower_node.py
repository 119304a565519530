"""A site's end of Flower: a SuperNode, and the process that carries frames to the station."""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import final

from isthmus.parties.certificates import write_private
from isthmus.parties.transport.children import (
    Child,
    flower_environment,
    flower_program,
    free_port,
)

LOOK = 0.5
"""Seconds between two looks after the processes."""


@final
class Node:
    """Runs Flower's SuperNode for a site, and starts it again when it ends.

    Neither process sees data or keys of the site; frames go to the station's socket. Flower's
    own way to run an app (a process a message, with the code that the coordinator sent) is
    replaced by one process that stays and runs no code of others.

    Parameters
    ----------
    state
        The site's folder.
    socket
        Where its station listens.
    coordinator
        Host and port, as in ``"example.org:9092"``.
    authority
        File of the certificate that the coordinator's must be signed by.
    key
        File of the private key by which Flower knows this node.
    stays
        Whether one process stays; otherwise Flower starts one for every message, which runs the
        code that the coordinator sent. It is there to be measured.
    """

    def __init__(
        self,
        state: Path,
        socket: Path,
        coordinator: str,
        authority: Path,
        key: Path,
        *,
        stays: bool = True,
    ) -> None:
        home = state.absolute() / "flower"
        home.mkdir(mode=0o700, exist_ok=True)
        environment = flower_environment(home)
        port = str(free_port())
        secret = home / "secret"
        secret.unlink(missing_ok=True)
        write_private(secret, secrets.token_bytes(32))
        program = [flower_program("flower-supernode")]
        if stays:
            environment |= {"PYTHONPATH": str(Path(__file__).parent / "relay")}
            program = [sys.executable, "-m", "isthmus_relay.node"]
        command = [
            *program,
            *("--superlink", coordinator, "--root-certificates", str(authority.resolve())),
            *("--auth-supernode-private-key", str(key.resolve())),
            *("--host", "127.0.0.1", "--port", port),
        ]
        if stays:
            command += ["--isolation", "process", "--superexec-auth-secret-file", str(secret)]
        else:
            command += ["--node-config", f'socket="{socket.absolute()}"']
        self.log = state / "flower.log"
        self._children = [Child(command, environment, self.log, again=5.0)]
        if stays:
            run = [sys.executable, "-m", "isthmus_relay.runner"]
            run += [f"127.0.0.1:{port}", str(secret), str(socket.absolute())]
            self._children.append(Child(run, environment, self.log))

    def tend(self) -> None:
        """Start what is not there."""
        for child in self._children:
            child.tend()

    def run(self, until: Callable[[], bool]) -> None:
        """Keep it running."""
        while not until():
            self.tend()
            time.sleep(LOOK)

    def stop(self) -> None:
        """End all."""
        for child in reversed(self._children):
            child.stop()
