"""Signatures on a study."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import final

from isthmus.joint.agreement.identity import digest, key_bytes, key_text
from isthmus.joint.agreement.toml import Reader, document

FORMAT = "isthmus-signatures/1"
AUTHOR = "author"


@final
@dataclass(frozen=True)
class Signature:
    """A signature on a study.

    Attributes
    ----------
    role
        ``"author"``, or the name of the site.
    key
        The public key.
    value
        The signature.
    """

    role: str
    key: bytes
    value: bytes


def signed_bytes(study: bytes, role: str) -> bytes:
    """Return the bytes that are signed: the hash of the study, bound to the role."""
    return digest(b"isthmus study signature", study, role.encode())


def write_signatures(path: str | os.PathLike[str], signatures: Iterable[Signature]) -> None:
    """Write signatures to a file beside the study."""
    entries: list[dict[str, object]] = [
        {"role": s.role, "key": key_text(s.key), "value": s.value.hex()} for s in signatures
    ]
    text = document({"format": FORMAT}, {"signatures": entries})
    Path(path).write_text(text, encoding="utf-8")


def read_signatures(path: str | os.PathLike[str]) -> list[Signature]:
    """Read a file that `write_signatures` wrote."""
    top = Reader.parse(Path(path).read_bytes(), "file of signatures", FORMAT)
    signatures = []
    for entry in top.tables("signatures"):
        role = entry.take("role", str)
        key, value = entry.convert("key", key_bytes), entry.convert("value", bytes.fromhex)
        entry.reject_other_keys()
        if key is not None and value is not None:
            signatures.append(Signature(role, key, value))
    top.finish()
    return signatures
