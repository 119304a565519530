"""Flower's programs and the environment that they run in."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from importlib.metadata import distribution
from pathlib import Path

from isthmus.errors import FederationError

HERE = Path(__file__).parent
APP = HERE / "relay"
"""The app that passes messages on, at the coordinator and at the sites."""

SOCKET = "ISTHMUS_SOCKET"
"""The environment variable that tells the app where to pass messages on."""


def flower_environment(home: Path) -> dict[str, str]:
    """Return environment variables: no telemetry, no check for updates, a folder of their own."""
    programs = str(Path(sys.executable).parent)
    return os.environ | {
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_HOME": str(home),
        "PATH": programs + os.pathsep + os.environ.get("PATH", ""),
    }


def app_environment(home: Path, program: str, socket: Path) -> dict[str, str]:
    """Return the environment of a SuperExec that runs our own app and no other.

    Flower's SuperExec starts one program per task and looks for it on ``PATH``. Here it finds
    `program` with the hooks of ``own_code_only.py``. All others exit at once.

    Parameters
    ----------
    home
        Flower's folder.
    program
        Name of the program that runs apps, ``"flwr-clientapp"`` or ``"flwr-serverapp"``.
    socket
        Path of the socket to which the app forwards messages.
    """
    folder = home / "programs"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    scripts = distribution("flwr").entry_points.select(group="console_scripts")
    hooked = shlex.join([sys.executable, "-P", str(HERE / "own_code_only.py"), program])
    for name in scripts.names:
        if name.startswith("flwr-"):
            command = f'exec {hooked} "$@"' if name == program else "exit 1"
            (folder / name).write_text(f"#!/bin/sh\n{command}\n", encoding="utf-8")
            (folder / name).chmod(0o700)
    environment = flower_environment(home)
    return environment | {
        "PATH": str(folder) + os.pathsep + environment["PATH"],
        "PYTHONPATH": str(APP),
        SOCKET: str(socket),
    }


def flower_program(name: str) -> str:
    """Return the path of a program, or raise `FederationError` if it is not installed."""
    beside = Path(sys.executable).parent / name
    path = str(beside) if beside.exists() else shutil.which(name)
    if path is None:
        raise FederationError(
            f"The program {name} of Flower was not found. Install isthmus-flower again."
        )
    return path
