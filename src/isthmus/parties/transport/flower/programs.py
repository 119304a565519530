"""Flower's programs and the environment that they run in."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from isthmus.errors import MissingExtraError


def flower_environment(home: Path) -> dict[str, str]:
    """Return environment variables: no telemetry, no check for updates, a folder of their own."""
    programs = str(Path(sys.executable).parent)
    return os.environ | {
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_HOME": str(home),
        "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.5",
        "PATH": programs + os.pathsep + os.environ.get("PATH", ""),
    }


def flower_program(name: str) -> str:
    """Return the path of a program, or raise `MissingExtraError` if it is not installed."""
    beside = Path(sys.executable).parent / name
    path = str(beside) if beside.exists() else shutil.which(name)
    if path is None:
        raise MissingExtraError("flwr", "flower", "A federation over Flower")
    return path
