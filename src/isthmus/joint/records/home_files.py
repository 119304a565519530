"""What a site, a coordinator or a party keeps in its private folder, and how it is erased."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import final

from isthmus.joint.agreement.study import Study
from isthmus.joint.records.folder_lock import FolderLock
from isthmus.joint.records.journal import FileJournal
from isthmus.joint.records.ledger import FileLedger
from isthmus.joint.records.private_files import sync_folder

LEDGER = "ledger.jsonl"
ANSWERS = "ledger.jsonl.kept"
COHORTS = "cohorts"
ANSWER = re.compile(r"[0-9a-f]{64}")

KINDS = (
    (r"identity\.pem", "private key, which signs", "while studies name it"),
    (r"identity-.*\.pem", "earlier private key", "not needed any more"),
    (r"(node|server|certificate)\.pem", "private key of connections", "while studies name it"),
    (r"card\.toml|succession.*\.toml|.*\.crt|host", "public keys and address", "with the keys"),
    (r"policy\.toml|STOP", "rules of the site", "while it takes part in studies"),
    (r"lock", "says which process uses the folder", "empty between runs"),
    (r"ledger\.jsonl(\.(part|torn)-.*)?", "what was sent; no values", "as long as the data"),
    (r"ledger\.jsonl\.kept", "answers with noise, as they were sent", "until the study is over"),
    (r"cohorts", "frozen rows of the table", "until 'isthmus site retire'"),
    (r"study-.*", "state of a study, to resume it", "until the study is over"),
    (r"result-.*", "result of a study", "as long as you want"),
    (r"flower.*", "messages of Flower", "not needed between runs"),
)
"""Names of files, what they contain, and how long they are needed."""


@final
@dataclass(frozen=True)
class StoredFile:
    """A file or folder in a private folder.

    Attributes
    ----------
    path
        Where it is.
    size
        Number of bytes; of a folder, of everything in it.
    changed
        When it was last changed.
    content, needed
        What it contains, and how long it is needed.
    """

    path: Path
    size: int
    changed: datetime
    content: str
    needed: str


def stored_files(home: str | os.PathLike[str]) -> list[StoredFile]:
    """Return what a private folder contains."""
    found = []
    for path in sorted(Path(home).iterdir()):
        inside = [path, *path.rglob("*")] if path.is_dir() else [path]
        states = [p.stat() for p in inside]
        known = (kind[1:] for kind in KINDS if re.fullmatch(kind[0], path.name))
        content, needed = next(known, ("not written by Isthmus", "your decision"))
        changed = datetime.fromtimestamp(max(s.st_mtime for s in states), UTC)
        size = sum(s.st_size for p, s in zip(inside, states, strict=True) if p.is_file())
        found.append(StoredFile(path, size, changed, content, needed))
    return found


def erase(home: str | os.PathLike[str], study: Study | None = None) -> list[Path]:
    """Delete what is not needed after a study, or after all studies, and return what it was.

    These are the state and the result of a study, answers with noise, and after all studies also
    earlier private keys and messages of Flower. The ledger stays: without it, a site does not know
    what it has released, and other sites refuse to go on with it. Cohorts stay, too.

    Parameters
    ----------
    home
        The private folder of a site, a coordinator or a party.
    study
        The study that is over; by default all.

    Raises
    ------
    FederationError, LedgerError
        A process uses the folder. Nothing is deleted.
    """
    folder = Path(home)
    with FolderLock(folder, "the deletion of files"):
        of_a_study = "*" if study is None else study.identity.hex()[:16]
        names = [f"study-{of_a_study}", f"result-{of_a_study}.*"]
        names += ["identity-*.pem", "flower*"] if study is None else []
        paths = [path for name in names for path in sorted(folder.glob(name))]
        for journal in (path / "journal" for path in paths):
            if journal.exists():
                FileJournal(journal).close()  # raises an error if a run uses it
        paths += _answers(folder, study)
        for path in paths:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for changed in {path.parent for path in paths}:
            sync_folder(changed)
        return paths


def _answers(home: Path, study: Study | None) -> list[Path]:
    """Return the answers with noise that were sent in a study, or in all."""
    kept = home / ANSWERS
    names = {path.name for path in kept.glob("*") if ANSWER.fullmatch(path.name)}
    if study is not None and names:
        name, entries = study.identity.hex(), FileLedger(home / LEDGER).read()
        names &= {str(e["answer"]) for e in entries if "answer" in e and e.get("study") == name}
    return [kept / name for name in sorted(names)]
