"""`files` and `erase` of sites, coordinators and parties: what a private folder contains."""

from __future__ import annotations

import argparse
import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from isthmus.cli.exit_codes import ExitCode
from isthmus.cli.output import give, say

LEDGER = "ledger.jsonl"
ANSWER = re.compile(r"[0-9a-f]{64}")
"""Names of files in the folder ``ledger.jsonl.kept`` that hold an answer with noise."""

KINDS = (
    (r"identity\.pem", "private key, which signs", "while studies name it"),
    (r"identity-.*\.pem", "earlier private key", "not needed any more"),
    (r"connection\.pem", "private key of connections", "while studies name it"),
    (
        r"card\.toml|succession.*\.toml|.*\.crt|invitation|confirmed",
        "public keys, address, codes",
        "with the keys",
    ),
    (r"policy\.toml|STOP", "rules of the site", "while it takes part in studies"),
    (r"lock", "says which process uses the folder", "empty between runs"),
    (r"ledger\.jsonl(\.(part|torn)-.*)?", "what was sent; no values", "as long as the data"),
    (r"ledger\.jsonl\.kept", "answers with noise, as they were sent", "until the study is over"),
    (r"extract-.*", "rows that were frozen for a study", "until the study is over"),
    (r"study-.*", "state of a study, to resume it", "until the study is over"),
    (r"result-.*", "result of a study", "as long as you want"),
    (r"nvflare\.log", "why the site did not answer", "not needed between runs"),
    (r"flower-.*", "results of a run of Flower", "as long as you want"),
)
"""Names of files, what they contain, and how long they are needed; see files-at-rest.md."""


def add_file_actions(action: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the actions on the files of a private folder."""
    action("files", "list what the folder contains, and how long it is needed", _files, study=False)
    erased = action("erase", "delete what is not needed after a study", _erase, study=False)
    which = erased.add_mutually_exclusive_group(required=True)
    which.add_argument("--study", type=Path, metavar="STUDY", help="shared folder of the study")
    which.add_argument("--all", action="store_true", help="all studies are over")


def _files(options: argparse.Namespace) -> ExitCode:
    found = [_described(path) for path in sorted(options.home.iterdir())]
    width = max((len(file["name"]) for file in found), default=0)
    now, mode = datetime.now(UTC), options.home.stat().st_mode & 0o777
    for file in found:
        age = f"{max((now - file['changed']).days, 0)} days"
        say(
            f"{file['name']:<{width}}  {file['bytes']:>12,} bytes  {age:>9}  {file['content']}; "
            f"keep: {file['keep']}"
        )
    if mode & 0o077:
        say(f"Others can enter the folder (mode {mode:o}). Run chmod 700 on it.")
    give(files=found, mode=f"{mode:o}")
    return ExitCode.DONE


def _described(path: Path) -> dict[str, Any]:
    inside = [path, *path.rglob("*")] if path.is_dir() else [path]
    known = (kind[1:] for kind in KINDS if re.fullmatch(kind[0], path.name))
    content, keep = next(known, ("not written by Isthmus", "your decision"))
    return {
        "name": path.name,
        "bytes": sum(p.stat().st_size for p in inside if p.is_file()),
        "changed": datetime.fromtimestamp(max(p.stat().st_mtime for p in inside), UTC),
        "content": content,
        "keep": keep,
    }


def _erase(options: argparse.Namespace) -> ExitCode:
    from isthmus.joint.agreement.cards import Folder

    study = None if options.all else Folder(options.study).study().identity.hex()
    deleted = _erased(options.home, study)
    for path in deleted:
        say(f"Deleted {path}")
    if not deleted:
        say("Nothing was left of it.")
    if (options.home / LEDGER).exists():
        say("The ledger stays: it is how this folder knows what was sent, it contains no values,")
        say("and other organisations do not go on with a party that has lost it. Delete the whole")
        say("folder when it never takes part in a study again.")
    give(deleted=[str(path) for path in deleted])
    return ExitCode.DONE


def _erased(home: Path, study: str | None) -> list[Path]:
    """Delete what is not needed after a study, or after all, and return what it was."""
    from isthmus.joint.records.journal import FileJournal, FolderLock
    from isthmus.joint.records.private_files import sync_folder

    with FolderLock(home, "the deletion of files"):
        name = "*" if study is None else study[:16]
        patterns = [f"study-{name}", f"extract-{name}", f"result-{name}.*"]
        patterns += ["identity-*.pem", "flower-*", "nvflare.log"] if study is None else []
        paths = [path for pattern in patterns for path in sorted(home.glob(pattern))]
        for journal in (path / "journal" for path in paths):
            if journal.exists():
                FileJournal(journal).close()  # raises an error if a run uses it
        paths += _answers(home, study)
        for path in paths:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for folder in {path.parent for path in paths}:
            sync_folder(folder)
        return paths


def _answers(home: Path, study: str | None) -> list[Path]:
    """Return the answers with noise that were sent in a study, or in all."""
    from isthmus.joint.records.ledger import FileLedger

    kept = home / f"{LEDGER}.kept"
    names = {path.name for path in kept.glob("*") if ANSWER.fullmatch(path.name)}
    if study is not None and names:
        entries = FileLedger(home / LEDGER).read()
        names &= {str(e["answer"]) for e in entries if "answer" in e and e.get("study") == study}
    return [kept / name for name in sorted(names)]
