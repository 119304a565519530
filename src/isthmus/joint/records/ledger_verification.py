"""Verification of a ledger: its chain, its signatures, and what other ledgers know of it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from isthmus.errors import LedgerError
from isthmus.joint.agreement.identity import Verifier
from isthmus.joint.records.ledger_entries import (
    FORMAT,
    START,
    Entry,
    canonical,
    hash_of,
    signed_bytes,
)


def parts(path: str | os.PathLike[str]) -> list[Path]:
    """Return the files of a ledger, oldest first: those that `rotate` put aside, and the last."""
    last = Path(path)
    return [*sorted(last.parent.glob(last.name + ".part-*")), last]


def verify(
    path: str | os.PathLike[str],
    *,
    head: str | Iterable[str] | None = None,
    keys: Iterable[bytes] | None = None,
) -> tuple[Entry, ...]:
    """Verify all entries of a ledger.

    Parameters
    ----------
    path
        The file. Parts that `rotate` put aside are found beside it.
    head
        Hashes of entries that the ledger must contain, noted elsewhere earlier or remembered by
        other sites. A chain alone cannot show that entries were removed from its end.
    keys
        Public keys of the site. If they are given, one of them must have signed every entry.

    Returns
    -------
    tuple
        The entries.

    Raises
    ------
    LedgerError
        The ledger was changed. The message names the first line that is wrong.
    """
    lines, torn = split_lines(path)
    if torn:
        raise LedgerError(
            f"The ledger {path} ends in the middle of line {len(lines) + 1}: it was cut off. "
            "After a power failure, 'isthmus ledger repair' puts the incomplete line aside. "
            "Otherwise keep the file as it is, and find out who had access to it."
        )
    return verify_lines(path, lines, head=head, keys=keys)


def split_lines(path: str | os.PathLike[str]) -> tuple[list[bytes], bytes]:
    """Return the complete lines of a ledger, and an incomplete one at its end."""
    *lines, torn = b"".join(part.read_bytes() for part in parts(path)).split(b"\n")
    return lines, torn


def verify_lines(
    path: str | os.PathLike[str],
    lines: list[bytes],
    *,
    head: str | Iterable[str] | None = None,
    keys: Iterable[bytes] | None = None,
) -> tuple[Entry, ...]:
    """Verify complete lines of a ledger, as `verify` does."""
    entries: list[Entry] = []
    before = START
    for number, line in enumerate(lines, start=1):
        try:
            entry = json.loads(line)
            valid = (
                entry["previous"] == before
                and entry["number"] == number
                and entry["format"] == FORMAT
                and entry["hash"] == hash_of(entry)
                and canonical(entry) == line
            )
        except (ValueError, KeyError, TypeError, RecursionError):
            valid = False
        if not valid:
            raise LedgerError(
                f"The ledger {path} was changed: line {number} does not follow from the ones "
                "before it. Keep the file as it is, and find out who had access to it."
            )
        before = entry["hash"]
        entries.append(entry)
    if keys is not None:
        require_signed(entries, {key.hex() for key in keys})
    required = {head} if isinstance(head, str) else set(head or ())
    missing = sorted(required - {START} - {e["hash"] for e in entries})
    if missing:
        raise LedgerError(
            f"The ledger {path} does not contain the entry {missing[0][:16]}… that was noted "
            "earlier, for instance by another site: its end was cut off, or it is another ledger. "
            "Restore it from a backup."
        )
    return tuple(entries)


def remembered_heads(entries: Iterable[Entry]) -> dict[str, str]:
    """Return the last head of each other party's ledger that this one relies on, by key."""
    heads: dict[str, str] = {}
    for entry in entries:
        remember(heads, entry)
    return heads


def remember(heads: dict[str, str], entry: Entry) -> None:
    """Update what is known of other ledgers by an entry.

    ``heads`` come from parties that had confirmed, in the same round, that they still have what
    this ledger remembered of them. ``seen`` come from parties that had not yet. They count only if
    nothing else is known: the head of a ledger that was cut must not replace that of the whole.
    """
    heads |= {k: v for k, v in entry.get("seen", {}).items() if k not in heads}
    heads |= entry.get("heads", {})


def missed_by_witnesses(entries: Iterable[Entry]) -> list[tuple[int, str]]:
    """Return entries that other sites remember and the ledger lacks, and where it says so.

    A site that meets a witness of a lost entry refuses to answer, and writes this down.
    """
    entries = list(entries)
    present = {e["hash"] for e in entries}
    return [
        (e["number"], e["missing"])
        for e in entries
        if e.get("missing", START) not in present | {START}
    ]


def require_signed(entries: Iterable[Entry], keys: set[str] | None = None) -> None:
    """Raise `LedgerError` for an entry that is not signed, or by none of these keys."""
    verifier = Verifier()
    for entry in entries:
        signer, value = str(entry.get("signer", "")), str(entry.get("signature", ""))
        try:
            valid = (keys is None or signer in keys) and verifier.verify(
                bytes.fromhex(signer), bytes.fromhex(value), signed_bytes(entry["hash"])
            )
        except ValueError:
            valid = False
        if not valid:
            raise LedgerError(
                f"Entry {entry['number']} of the ledger is not signed by this site: someone else "
                "wrote it. Keep the file as it is, and find out who had access to it."
            )
