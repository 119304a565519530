"""Entries of a ledger: how they are chained, hashed, signed and written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

from isthmus.joint.agreement.identity import Identity, digest

FORMAT = "isthmus-ledger/2"

START = "0" * 64
"""The hash before the first entry, which is the head of an empty ledger."""

Entry: TypeAlias = Mapping[str, Any]


def chained(
    last: Entry | None, event: str, details: Mapping[str, Any], identity: Identity | None
) -> Entry:
    """Return the entry that follows the last one, signed if there is an identity."""
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
