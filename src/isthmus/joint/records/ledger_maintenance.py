"""Maintenance of a ledger that no process is using: repair after a crash, and rotation."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from isthmus.errors import LedgerError
from isthmus.joint.agreement.identity import Identity
from isthmus.joint.records.events import REPAIRED
from isthmus.joint.records.folder_lock import FolderLock
from isthmus.joint.records.journal import sync_folder
from isthmus.joint.records.ledger import FileLedger
from isthmus.joint.records.ledger_verification import parts, split_lines, verify, verify_lines


def repair(path: str | os.PathLike[str], identity: Identity, *, heads: Iterable[str] = ()) -> int:
    """Put an incomplete last line aside, and write an entry about it.

    An entry is on disk before anything is sent. Whatever an incomplete line describes did not
    happen, if a crash has torn it. If another site has seen the entry, somebody has cut it.

    Parameters
    ----------
    path
        The file.
    identity
        The key of the site.
    heads
        Hashes of entries of this ledger that other sites remember (``isthmus ledger heads``).

    Returns
    -------
    int
        Length of the incomplete line; zero if the ledger is complete.

    Raises
    ------
    LedgerError
        The ledger was changed, or an entry that others remember is not in it. Nothing is repaired.
    FederationError
        A site or another command uses the ledger.
    """
    last = Path(path)
    with FolderLock(last.parent, "the repair of the ledger"):
        lines, torn = split_lines(path)
        try:
            verify_lines(path, lines, head=heads)
        except LedgerError as error:
            if not torn:
                raise
            raise LedgerError(
                f"{error} The incomplete last line is not repaired: if a crash had torn it, the "
                "lines before it would be intact, and nobody would know more than they say."
            ) from error
        if not torn:
            return 0
        aside = last.with_name(f"{last.name}.torn-{hashlib.sha256(torn).hexdigest()[:16]}")
        handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(torn)
            file.flush()
            os.fsync(file.fileno())
        with last.open("r+b") as file:
            file.truncate(last.stat().st_size - len(torn))
            os.fsync(file.fileno())
        ledger = FileLedger(path)
        ledger.bind(identity)
        ledger.append(REPAIRED.name, bytes=len(torn), sha256=hashlib.sha256(torn).hexdigest())
        return len(torn)


def rotate(path: str | os.PathLike[str]) -> Path:
    """Put the entries so far aside, and begin a new file that continues the chain.

    Raises
    ------
    FederationError
        A site or another command uses the ledger.
    """
    last = Path(path)
    with FolderLock(last.parent, "the rotation of the ledger"):
        verify(path)
        aside = last.with_name(f"{last.name}.part-{len(parts(path)):06}")
        last.rename(aside)
        handle = os.open(last, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.fsync(handle)
        os.close(handle)
        sync_folder(last.parent)
        return aside
