"""The command line: one module a command, each with a function `add` that describes it.

Written on `argparse`, so that the command works wherever the core is installed.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

from isthmus.cli import coordinator, learn, site
from isthmus.cli.exit_codes import ExitCode, code_of
from isthmus.errors import IsthmusError, IsthmusWarning

COMMANDS: tuple[Callable[[Any], None], ...] = (learn.add, site.add, coordinator.add)
"""Each adds its command to the sub-parsers, and sets ``run``: from options to an exit code."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and give the number with which it ends."""
    options = parser().parse_args(arguments)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", IsthmusWarning)
            warnings.showwarning = _show
            code: ExitCode = options.run(options)
            sys.stdout.flush()
    except KeyboardInterrupt:
        return _ended(ExitCode.INTERRUPTED, "interrupted before there was a result")
    except BrokenPipeError:
        # Whoever read the output has seen enough; nothing may be flushed to it at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitCode.DONE)
    except (IsthmusError, OSError) as error:
        return _ended(code_of(error), str(error))
    return int(code)


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    whole = argparse.ArgumentParser(
        prog="isthmus",
        description="Learn Bayesian networks from data that cannot be brought together.",
    )
    whole.add_argument("--version", action="version", version=f"isthmus {version('isthmus')}")
    commands = whole.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add in COMMANDS:
        add(commands)
    return whole


def _ended(code: ExitCode, message: str) -> int:
    name = code.name.lower().replace("_", " ")
    sys.stderr.write(f"isthmus: error {int(code)} ({name}): {message}\n")
    return int(code)


def _show(message: Warning | str, *_: object, **__: object) -> None:
    """Warnings for people: the sentence, without a line of code."""
    sys.stderr.write(f"note: {message}\n")
