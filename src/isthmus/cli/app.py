"""The command `isthmus`. Each subcommand is a module with a function `add`.

It uses `argparse`, so that it works without extra packages.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

from isthmus.cli import coordinator, learn, party, site
from isthmus.cli.exit_codes import ExitCode, code_of
from isthmus.errors import IsthmusError, IsthmusWarning

COMMANDS: tuple[Callable[[Any], None], ...] = (learn.add, site.add, coordinator.add, party.add)
"""Functions that add a subcommand, and set ``run``: a function from options to an exit code."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    options = parser().parse_args(arguments)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", IsthmusWarning)
            warnings.showwarning = _show
            code: ExitCode = options.run(options)
            sys.stdout.flush()
    except KeyboardInterrupt:
        return _fail(ExitCode.INTERRUPTED, "interrupted before there was a result")
    except BrokenPipeError:
        # The reader closed the pipe; Python must not flush to it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitCode.DONE)
    except (IsthmusError, OSError) as error:
        return _fail(code_of(error), str(error))
    return int(code)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    root = argparse.ArgumentParser(
        prog="isthmus",
        description="Learn Bayesian networks from data that cannot be brought together.",
    )
    root.add_argument("--version", action="version", version=f"isthmus {version('isthmus')}")
    commands = root.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add in COMMANDS:
        add(commands)
    return root


def _fail(code: ExitCode, message: str) -> int:
    name = code.name.lower().replace("_", " ")
    sys.stderr.write(f"isthmus: error {int(code)} ({name}): {message}\n")
    return int(code)


def _show(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning without its location in the code."""
    sys.stderr.write(f"note: {message}\n")
