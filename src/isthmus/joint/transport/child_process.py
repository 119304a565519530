"""Processes that this one starts, and that end with it."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import final

PATIENCE = 10.0
"""Seconds that a process has to terminate after it was asked to."""

_BOUND = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # when the parent dies
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""
"""Runs before a program and ties it to its parent: if the parent is killed, it ends too."""


def free_port() -> int:
    """Return a TCP port that, with the next one, is not in use at the moment.

    It is not one of those that systems give to outgoing connections, which may take it meanwhile.
    """
    while True:
        port = secrets.choice(range(10_000, 32_000, 2))
        with suppress(OSError), socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", port))
            second.bind(("127.0.0.1", port + 1))
            return port


@final
class ChildProcess:
    """A process in a process group of its own, whose output is added to a file.

    It inherits the open files with the numbers ``inherited``.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        inherited: Sequence[int] = (),
    ) -> None:
        bound = [sys.executable, "-c", _BOUND, str(os.getpid())]
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                [*(bound if sys.platform.startswith("linux") else ()), *command],
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
                pass_fds=inherited,
            )
        self.pid = self._process.pid

    @property
    def code(self) -> int | None:
        """Its exit code; ``None`` while it runs."""
        return self._process.poll()

    def stop(self, patience: float = PATIENCE) -> None:
        """Stop the process and everything that it started; kill it after this many seconds."""
        for how in (signal.SIGTERM, signal.SIGKILL):
            self._signal(how)
            try:
                self._process.wait(patience)
            except subprocess.TimeoutExpired:
                continue
            break
        self._signal(signal.SIGKILL)  # processes that it left behind

    def _signal(self, how: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, how)
