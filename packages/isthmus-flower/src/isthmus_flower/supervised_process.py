"""Processes that are restarted when they end."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import final

from isthmus.joint.transport.child_process import ChildProcess


@final
class SupervisedProcess:
    """A process that is restarted when it ends.

    Parameters
    ----------
    command, environment, log
        The command, its environment variables, and the file for its output.
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
        self._command, self._environment, self._log = command, environment, log
        self._first = self._wait = delay
        self._due = self._since = 0.0
        self.process: ChildProcess | None = None
        self.starts = 0

    @property
    def running(self) -> bool:
        """Whether the process is running."""
        return self.process is not None and self.process.code is None

    @property
    def code(self) -> int | None:
        """Its last exit code; ``None`` while it runs."""
        return None if self.process is None else self.process.code

    def ensure_running(self) -> bool:
        """Start the process if it is not running and the delay is over; return whether it was."""
        now = time.monotonic()
        if self.running:
            if now - self._since > 60.0:
                self._wait = self._first
            return False
        if self.process is not None and self._due == 0.0:
            self._due, self._wait = now + self._wait, min(2 * self._wait, 60.0)
        if now < self._due:
            return False
        self.process = ChildProcess(self._command, self._environment, self._log)
        self._since, self._due = time.monotonic(), 0.0
        self.starts += 1
        return True

    def stop(self) -> None:
        """Stop the process and everything that it started."""
        process, self.process = self.process, None
        if process is not None:
            process.stop()
