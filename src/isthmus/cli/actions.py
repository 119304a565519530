"""Actions of the commands that work in a folder of their own."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from isthmus.cli.exit_codes import ExitCode


def add_action(
    actions: Any,
    whose: str,
    name: str,
    meaning: str,
    run: Callable[[argparse.Namespace], ExitCode],
    *,
    study: bool = True,
) -> argparse.ArgumentParser:
    """Describe an action on HOME, the folder of ``whose`` it is, and on the folder of a study."""
    found: argparse.ArgumentParser = actions.add_parser(name, help=meaning, description=meaning)
    found.add_argument("home", type=Path, metavar="HOME", help=f"the {whose}'s own folder")
    if study:
        found.add_argument("study", type=Path, metavar="STUDY", help="the study's folder")
    found.set_defaults(run=run)
    return found
