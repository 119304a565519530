"""Entries of a ledger: how they are chained, hashed, signed, written and verified."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from isthmus.errors import LedgerError
from isthmus_joint.agreement.identity import Identity, Verifier, digest

FORMAT = "isthmus-ledger/2"

HASH = 64
"""Length of a hash in hexadecimal digits."""

START = "0" * 64
"""The hash before the first entry, which is the head of an empty ledger."""

LONGEST_ENTRY = 2**20
"""Maximum number of bytes of an entry: more than one about a sum over 1,000 sites has."""

Entry: TypeAlias = Mapping[str, Any]


def chained(
    last: Entry | None, event: str, details: Mapping[str, Any], identity: Identity | None
) -> Entry:
    """Return the entry that follows the last one, signed if there is an identity.

    Raises
    ------
    LedgerError
        The entry would have more than `LONGEST_ENTRY` bytes.
    """
    entry: dict[str, Any] = {
        "format": FORMAT,
        "number": 1 if last is None else last["number"] + 1,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "event": event,
        **details,
        "previous": START if last is None else last["hash"],
    }
    if identity is not None:
        entry["signer"] = identity.public.hex()
    entry["hash"] = hash_of(entry)
    if identity is not None:
        entry["signature"] = identity.sign(signed_bytes(entry["hash"])).hex()
    if len(canonical(entry)) > LONGEST_ENTRY:
        raise LedgerError(
            f"An entry of the ledger would have more than {LONGEST_ENTRY:,} bytes, so nothing is "
            "sent. Draft a study with fewer sites."
        )
    return entry


def signed_bytes(entry: str) -> bytes:
    """Return the bytes that a site signs for an entry with this hash."""
    return digest(b"isthmus ledger entry", entry.encode())


def hash_of(entry: Entry) -> str:
    """Return the hash of an entry, which covers everything but itself and the signature."""
    rest = {k: v for k, v in entry.items() if k not in ("hash", "signature")}
    return hashlib.sha256(canonical(rest)).hexdigest()


def canonical(entry: Entry) -> bytes:
    """Return an entry as it is written, without the end of the line."""
    return json.dumps(dict(entry), ensure_ascii=True, separators=(",", ":")).encode()


def parts(path: str | os.PathLike[str]) -> list[Path]:
    """Return the files of a ledger, oldest first: those that `rotate` put aside, and the last."""
    last = Path(path)
    return [*sorted(last.parent.glob(last.name + ".part-*")), last]


def lines_of(path: str | os.PathLike[str], start: int = 0) -> Iterator[bytes]:
    """Read the lines of a ledger one by one, from a number of bytes on."""
    for part in parts(path):
        with part.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if start < size:
                file.seek(start)
                yield from file
            start = max(start - size, 0)


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
    entries = tuple(verified(path, lines_of(path)))
    if keys is not None:
        require_signed(entries, {key.hex() for key in keys})
    require_heads(path, entries, head)
    return entries


def verified(path: str | os.PathLike[str], lines: Iterable[bytes]) -> Iterator[Entry]:
    """Verify the chain of the lines of a ledger, and yield the entries one by one."""
    before = START
    for number, line in enumerate(lines, start=1):
        if not line.endswith(b"\n"):
            raise LedgerError(
                f"The ledger {path} ends in the middle of line {number}: it was cut off. After a "
                "power failure, 'isthmus ledger repair' puts the incomplete line aside. Otherwise "
                "keep the file as it is, and find out who had access to it."
            )
        try:
            entry = json.loads(line)
            valid = (
                entry["previous"] == before
                and entry["number"] == number
                and entry["format"] == FORMAT
                and entry["hash"] == hash_of(entry)
                and canonical(entry) + b"\n" == line
            )
        except (ValueError, KeyError, TypeError, RecursionError):
            valid = False
        if not valid:
            raise LedgerError(
                f"The ledger {path} was changed: line {number} does not follow from the ones "
                "before it. Keep the file as it is, and find out who had access to it."
            )
        before = entry["hash"]
        yield entry


def require_heads(
    path: str | os.PathLike[str], entries: Iterable[Entry], head: str | Iterable[str] | None
) -> None:
    """Raise `LedgerError` if an entry that others remember is not among these."""
    required = {head} if isinstance(head, str) else set(head or ())
    missing = sorted(required - {START} - hashes_of(entries))
    if missing:
        raise LedgerError(
            f"The ledger {path} does not contain the entry {missing[0][:16]}… that was noted "
            "earlier, for instance by another site: its end was cut off, or it is another ledger. "
            "If it was restored from a backup, 'isthmus ledger restore' counts what it lacks."
        )


def hashes_of(entries: Iterable[Entry]) -> set[str]:
    """Return the hashes of entries, and of those that a restoration has counted."""
    return {h for e in entries for h in (e["hash"], *e.get("restored", ()))}


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
    present = hashes_of(entries)
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
