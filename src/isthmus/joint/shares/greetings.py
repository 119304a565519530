"""Reads what the other party claims in its greeting; anything else is an error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from isthmus.errors import AbortedError
from isthmus.joint.agreement.identity import Verifier
from isthmus.joint.records.ledger_entries import START, signed_bytes
from isthmus.joint.shares.openings import PastRun

HASH_DIGITS = 64
HEAD = re.compile("[0-9a-f]{64}([0-9a-f]{128})?")
"""The hash of an entry and its signature. `bytes.fromhex` would also read blanks, without end."""


def read_head(head: object, key: bytes) -> str:
    """Return the hash of a ledger's entry and its signature by this key from a message."""
    text = head if isinstance(head, str) and HEAD.fullmatch(head) else ""
    entry, signature = text[:HASH_DIGITS], bytes.fromhex(text[HASH_DIGITS:])
    if text != START and not Verifier().verify(key, signature, signed_bytes(entry)):
        raise AbortedError(
            "The other party sent a hash of its ledger or of this party's that the owner of the "
            "ledger has not signed. Check that both parties have the same version.",
            reason="broken message",
        )
    return text


def read_past(claims: Mapping[str, Any], most: int) -> PastRun:
    """Read what a party claims about its latest run; anything else is an error.

    Each run counts at one of the two parties at least, so that there are at most `most`.
    """
    finished, closed, sessions = map(claims.get, ("finished", "closed", "sessions"))
    number, rows = read_number(claims.get("run")), read_number(claims.get("rows"))
    if not isinstance(finished, bool) or not isinstance(closed, bool) or number > most:
        raise incomplete()
    if not isinstance(sessions, Mapping):
        raise incomplete()
    named = {str(label): str(session) for label, session in sessions.items()}
    return PastRun(number, finished or closed, rows, named, closed)


def read_number(value: object) -> int:
    """Return a number that is not negative from a message."""
    if type(value) is not int or value < 0:
        raise incomplete()
    return value


def incomplete() -> AbortedError:
    """Return the error for a greeting that cannot be read."""
    return AbortedError(
        "The other party sent a greeting that is not complete. Check that both parties have the "
        "same version.",
        reason="broken message",
    )
