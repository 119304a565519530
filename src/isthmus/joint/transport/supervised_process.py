"""Processes that are started, supervised, and stopped together with this one."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
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
    """Return a TCP port that is not in use at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@final
class SupervisedProcess:
    """A process in a process group of its own that is restarted when it ends.

    Parameters
    ----------
    delay
        Seconds to wait before a restart; doubled every time, up to a minute.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        delay: float = 2.0,
    ) -> None:
        self._command = list(command)
        if sys.platform.startswith("linux"):
            self._command = [sys.executable, "-c", _BOUND, str(os.getpid()), *command]
        self._environment = dict(environment)
        self._log = log
        self._first = delay
        self._wait = delay
        self._due = 0.0
        self._process: subprocess.Popen[bytes] | None = None
        self._since = 0.0
        self.starts = 0

    @property
    def running(self) -> bool:
        """Whether the process is running."""
        return self._process is not None and self._process.poll() is None

    @property
    def code(self) -> int | None:
        """Its last exit code; ``None`` while it runs."""
        return None if self._process is None else self._process.poll()

    def ensure_running(self) -> bool:
        """Start the process if it is not running and the delay is over; return whether it was."""
        now = time.monotonic()
        if self.running:
            if now - self._since > 60.0:
                self._wait = self._first
            return False
        if self._process is not None and self._due == 0.0:
            self._due, self._wait = now + self._wait, min(2 * self._wait, 60.0)
        if now < self._due:
            return False
        self._start()
        return True

    def _start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._since, self._due = time.monotonic(), 0.0
        self.starts += 1

    def stop(self, patience: float = PATIENCE) -> None:
        """Stop the process and everything that it started.

        Parameters
        ----------
        patience
            Seconds that it has to terminate before it is killed.
        """
        process, self._process = self._process, None
        if process is None:
            return
        for how in (signal.SIGTERM, signal.SIGKILL):
            _signal(process.pid, how)
            try:
                process.wait(patience)
            except subprocess.TimeoutExpired:
                continue
            break
        _signal(process.pid, signal.SIGKILL)  # processes that it left behind


def _signal(group: int, how: signal.Signals) -> None:
    try:
        os.killpg(group, how)
    except ProcessLookupError:
        return
