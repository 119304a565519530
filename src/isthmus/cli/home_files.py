"""`files` and `erase` of sites, coordinators and parties: what a private folder contains."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from isthmus.cli.exit_codes import ExitCode
from isthmus.cli.output import give, say


def add_file_actions(action: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the actions on the files of a private folder."""
    action("files", "list what the folder contains, and how long it is needed", _files, study=False)
    erased = action("erase", "delete what is not needed after a study", _erase, study=False)
    which = erased.add_mutually_exclusive_group(required=True)
    which.add_argument("--study", type=Path, metavar="STUDY", help="shared folder of the study")
    which.add_argument("--all", action="store_true", help="all studies are over")


def _files(options: argparse.Namespace) -> ExitCode:
    from isthmus.joint.records.home_files import stored_files

    found, now = stored_files(options.home), datetime.now(UTC)
    width = max((len(file.path.name) for file in found), default=0)
    for file in found:
        age = f"{max((now - file.changed).days, 0)} days"
        say(
            f"{file.path.name:<{width}}  {file.size:>12,} bytes  {age:>9}  {file.content}; "
            f"keep: {file.needed}"
        )
    mode = options.home.stat().st_mode & 0o777
    if mode & 0o077:
        say(f"Others can enter the folder (mode {mode:o}). Run chmod 700 on it.")
    give(
        files=[
            {
                "path": str(file.path),
                "bytes": file.size,
                "changed": file.changed.isoformat(timespec="seconds"),
                "content": file.content,
                "keep": file.needed,
            }
            for file in found
        ],
        mode=f"{mode:o}",
    )
    return ExitCode.DONE


def _erase(options: argparse.Namespace) -> ExitCode:
    from isthmus.joint.agreement.cards import Folder
    from isthmus.joint.records.home_files import COHORTS, LEDGER, erase

    study = None if options.all else Folder(options.study).study()
    deleted = erase(options.home, study)
    for path in deleted:
        say(f"Deleted {path}")
    if not deleted:
        say("Nothing was left of it.")
    if (options.home / LEDGER).exists():
        say("The ledger stays: it is how this folder knows what was sent, it contains no values,")
        say("and other organisations do not go on with a party that has lost it. Delete the whole")
        say("folder when it never takes part in a study again.")
    if (options.home / COHORTS).exists():
        say("Frozen rows are deleted with 'isthmus site retire HOME NAME'.")
    give(deleted=[str(path) for path in deleted])
    return ExitCode.DONE
