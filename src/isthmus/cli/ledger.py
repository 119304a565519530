"""`isthmus ledger`: what has left a site or a party, entry by entry."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from isthmus.cli.actions import add_action
from isthmus.cli.exit_codes import ExitCode
from isthmus.cli.keys import load_identity, own_keys
from isthmus.cli.output import give, say


def add(command: argparse.ArgumentParser) -> None:
    """Describe the command."""
    command.description = (
        "The ledger of a site or a party: everything that has left, and everything that was "
        "refused. HOME is its private folder."
    )
    actions = command.add_subparsers(title="actions", metavar="ACTION", required=True)
    action = partial(add_action, actions, "site or party", study=False)
    show = action("show", "verify the ledger and print it", _show)
    verify = action("verify", "verify the ledger", _verify)
    for each in (show, verify):
        each.add_argument(
            "--head", metavar="HASH", help="hash of an entry that the ledger must contain"
        )
    action("repair", "put an incomplete last line aside, after a power failure", _repair)
    action("rotate", "begin a new file that continues the chain", _rotate)


def _show(options: argparse.Namespace) -> ExitCode:
    from isthmus.parties.records.ledger import readable, summary

    entries = _entries(options.home, options.head)
    say(readable(entries))
    give(ledger=entries)
    if released := summary(entries):
        say(f"Data released:\n{released}")
    return _say_intact(entries)


def _verify(options: argparse.Namespace) -> ExitCode:
    return _say_intact(_entries(options.home, options.head))


def _repair(options: argparse.Namespace) -> ExitCode:
    from isthmus.parties.records import ledger

    torn = ledger.repair(_path(options.home), load_identity(options.home / "identity.pem"))
    say(f"Put an incomplete line of {torn} bytes aside." if torn else "No line is incomplete.")
    give(bytes_put_aside=torn)
    return _say_intact(_entries(options.home, None))


def _rotate(options: argparse.Namespace) -> ExitCode:
    from isthmus.parties.records import ledger

    aside = ledger.rotate(_path(options.home))
    say(f"The entries so far are in {aside}. Keep it: the ledger needs all its parts.")
    give(earlier_part=str(aside))
    return _say_intact(_entries(options.home, None))


def _path(home: Path) -> Path:
    path = home / "ledger.jsonl"
    if not path.exists():
        raise FileNotFoundError(
            f"There is no ledger {str(path)!r}. Name the private folder of a site or a party; the "
            "ledger begins with its first answer."
        )
    return path


def _entries(home: Path, head: str | None) -> list[Mapping[str, Any]]:
    from isthmus.parties.records.ledger import verify

    return list(verify(_path(home), head=head, keys=own_keys(home)))


def _say_intact(entries: list[Mapping[str, Any]]) -> ExitCode:
    say(f"The ledger has {len(entries)} entries and is intact.")
    give(entries=len(entries), head=str(entries[-1]["hash"]) if entries else None)
    if entries:
        say("The other sites keep the hash of its last entry at every round. It is now:")
        say(str(entries[-1]["hash"]))
    return ExitCode.DONE
