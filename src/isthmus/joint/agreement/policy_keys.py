"""The keys in a policy file: those of pinned peers, and those that were revoked."""

from __future__ import annotations

from isthmus.errors import IsthmusError
from isthmus.joint.agreement.identity import key_bytes
from isthmus.joint.agreement.roster import Member
from isthmus.joint.agreement.toml import Reader


def read_revoked(top: Reader) -> tuple[bytes, ...]:
    """Read the revoked keys."""
    found = []
    for text in top.strings("revoked"):
        try:
            found.append(key_bytes(text))
        except IsthmusError as error:
            top.problems.append(f"revoked: {str(error).rstrip('.')}")
    return tuple(found)


def read_peers(top: Reader) -> tuple[Member, ...]:
    """Read the pinned parties."""
    found = []
    for entry in top.tables("peers", empty=True):
        name, organisation = entry.take("name", str), entry.take("organisation", str)
        key = entry.convert("key", key_bytes)
        entry.reject_other_keys()
        if key is not None:
            found.append(Member(name, organisation, key))
    return tuple(found)
