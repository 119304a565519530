"""Processes that are started, watched, and ended together with this one."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import final

from isthmus.errors import MissingExtraError

PATIENCE = 10.0
"""Seconds that a process has to end when it is asked to."""

_BOUND = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # when the parent dies
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""
"""Runs before a program, so that a killed parent leaves nothing behind."""


def flower_environment(home: Path) -> dict[str, str]:
    """For Flower's programs: no telemetry, no look for updates, a folder of their own."""
    programs = str(Path(sys.executable).parent)
    return os.environ | {
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_HOME": str(home),
        "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.5",
        "PATH": programs + os.pathsep + os.environ.get("PATH", ""),
    }


def flower_program(name: str) -> str:
    """Where a program of Flower's is; `MissingExtraError` where it is not installed."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise MissingExtraError("flwr", "horizontal", "A federation over a network")
    return found


def free_port() -> int:
    """A port of this machine that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        found: int = probe.getsockname()[1]
        return found


@final
class Child:
    """A process in a group of its own that is started again when it ends.

    Parameters
    ----------
    command, environment
        What to start.
    log
        The file for what it prints.
    again
        Seconds to wait before it is started again; twice as long every time, up to a minute.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        again: float = 2.0,
    ) -> None:
        self._command = list(command)
        if sys.platform.startswith("linux"):
            self._command = [sys.executable, "-c", _BOUND, str(os.getpid()), *command]
        self._environment = dict(environment)
        self._log = log
        self._first = again
        self._wait = again
        self._due = 0.0
        self._process: subprocess.Popen[bytes] | None = None
        self._since = 0.0
        self.starts = 0

    @property
    def running(self) -> bool:
        """Whether it is there."""
        return self._process is not None and self._process.poll() is None

    @property
    def code(self) -> int | None:
        """With what it ended last; ``None`` while it runs."""
        return None if self._process is None else self._process.poll()

    def tend(self) -> bool:
        """Start it if it is not there and it is time to; whether it was started now."""
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

    def stop(self) -> None:
        """End it and all that it started."""
        process, self._process = self._process, None
        if process is None:
            return
        for how in (signal.SIGTERM, signal.SIGKILL):
            _signal(process.pid, how)
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                continue
            break
        _signal(process.pid, signal.SIGKILL)  # what it left behind


def _signal(group: int, how: signal.Signals) -> None:
    try:
        os.killpg(group, how)
    except ProcessLookupError:
        return
