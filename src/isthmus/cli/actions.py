"""Arguments and options of commands on joint studies."""

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
    """Add an action with the arguments HOME, a private folder, and STUDY, a shared folder."""
    action: argparse.ArgumentParser = actions.add_parser(name, help=meaning, description=meaning)
    action.add_argument("home", type=Path, metavar="HOME", help=f"private folder of the {whose}")
    if study:
        action.add_argument("study", type=Path, metavar="STUDY", help="shared folder of the study")
    action.set_defaults(run=run, whose=whose)
    return action


LOOPBACK = "127.0.0.1"
