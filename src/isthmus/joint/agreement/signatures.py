"""Signatures on a study."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import final

from isthmus.joint.agreement.identity import Key, digest
from isthmus.joint.agreement.toml import Hex, Reader, document, plain

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
    key: Key
    value: Hex


def signed_bytes(study: bytes, role: str) -> bytes:
    """Return the bytes that are signed: the hash of the study, bound to the role."""
    return digest(b"isthmus study signature", study, role.encode())


def write_signatures(path: str | os.PathLike[str], signatures: Iterable[Signature]) -> None:
    """Write signatures to a file beside the study."""
    text = document({"format": FORMAT}, {"signatures": [plain(s) for s in signatures]})
    Path(path).write_text(text, encoding="utf-8")


def read_signatures(path: str | os.PathLike[str]) -> list[Signature]:
    """Read a file that `write_signatures` wrote."""
    top = Reader.parse(Path(path).read_bytes(), "file of signatures", FORMAT)
    signatures = top.records("signatures", Signature)
    top.finish()
    return signatures
