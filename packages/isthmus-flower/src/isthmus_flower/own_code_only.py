"""Runs a program of Flower in which code that came over the network is neither found nor executed.

    python -P own_code_only.py PROGRAM [ARGUMENT ...]

Flower's apps travel: a coordinator sends its app to the sites, and anyone who can connect to a
SuperLink can submit one. The programs of Flower that run apps save them in a folder, add the folder
to ``sys.path`` and import the app from there. This program starts them with an import hook and an
audit hook of Python, so that modules exist only in the folders that were on the path when Python
started. The app that Flower finds there is our own. Nothing of Flower is changed.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

FOLDERS = tuple(os.path.realpath(folder) for folder in sys.path if folder)
"""Python's own folders, installed packages, and the folder of our app."""

RECEIVED = os.path.realpath(os.environ.get("FLWR_HOME") or Path.home() / ".flwr")
"""The folder in which Flower saves apps: the one in its settings, or its default."""


def is_within(path: str, folder: str) -> bool:
    """Return whether a path is a folder, or is inside of it."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


@cache
def is_own(path: str) -> bool:
    """Return whether code at this path was installed here, rather than received."""
    real = os.path.realpath(path)
    return any(is_within(real, f) for f in FOLDERS) and not is_within(real, RECEIVED)


class NoModules:
    """Stands for a folder whose modules are not importable."""

    @staticmethod
    def find_spec(_name: str, _target: object = None) -> None:
        """Find nothing."""


def without_received(path: str) -> NoModules:
    """Claim the folders on ``sys.path`` that are not our own; leave the others to Python."""
    if is_own(path):
        raise ImportError
    return NoModules()


def refuse_received(event: str, arguments: tuple[object, ...]) -> None:
    """Raise an error before code is executed, or a library is loaded, from any other folder."""
    if event == "exec":
        file = getattr(arguments[0], "co_filename", None)
    elif event == "import":
        file = arguments[1]
    else:
        return
    if isinstance(file, str) and file.startswith(os.sep) and not is_own(file):
        raise ImportError("Isthmus does not run code that came over the network")


def keep_received_code_out() -> None:
    """Install both hooks."""
    sys.path_hooks.insert(0, without_received)
    sys.addaudithook(refuse_received)


def main() -> int | str | None:
    """Run the program whose name is the first argument."""
    sys.argv = sys.argv[1:]
    (program,) = distribution("flwr").entry_points.select(group="console_scripts", name=sys.argv[0])
    keep_received_code_out()
    code: int | str | None = program.load()()
    return code


if __name__ == "__main__":
    sys.exit(main())
