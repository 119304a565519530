"""The invitation to enrol, and the code by which people compare what they enrolled in."""

from __future__ import annotations

import base64
import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Self, final

from isthmus.errors import FormatError
from isthmus.joint.agreement.identity import digest, require
from isthmus.joint.agreement.study import Study
from isthmus.joint.records.private_files import write_private
from isthmus.joint.transport.certificates import fingerprint

_FORM = re.compile(r"isthmus://([^/\s]+:\d{1,5})/([0-9a-f]{32})/(sha256:[0-9a-f]{64})")

CODE = 15
"""Bytes of a roster's code: 24 characters."""

MEMORY, WORK = 2**14, 8
"""Cost of Scrypt: 16 MiB, about a third of a second. Somebody who controls the network and wants to
show two rosters with the same code needs 2^60 such computations, because any two rosters will do.
"""


READ_AS = str.maketrans("018", "OIB")
"""Codes have letters and the digits 2 to 7, so these digits are letters that were misread."""


@final
@dataclass(frozen=True)
class Invitation:
    """Where sites enrol: one line that the coordinator's operator sends to each of them.

    Attributes
    ----------
    address
        Host and port of the coordinator.
    token
        A number that keeps strangers out. It protects no data.
    certificate
        SHA-256 of the coordinator's certificate, the only one that a site accepts.
    """

    address: str
    token: str
    certificate: str

    @classmethod
    def create(cls, address: str, certificate: bytes) -> Self:
        """Invite to an address where a server shows this certificate."""
        return cls(address, secrets.token_hex(16), fingerprint(certificate))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the line."""
        found = _FORM.fullmatch(text.strip())
        if found is None:
            raise FormatError(
                f"{text[:200]!r} is not an invitation, which has the form "
                "isthmus://HOST:PORT/TOKEN/sha256:FINGERPRINT. Copy the whole line that "
                "'isthmus coordinator new' has printed."
            )
        return cls(*found.groups())

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file that `write` wrote."""
        return cls.parse(Path(path).read_text(encoding="utf-8"))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a file that only its owner can read."""
        write_private(path, f"{self}\n".encode())

    def __str__(self) -> str:
        return f"isthmus://{self.address}/{self.token}/{self.certificate}"


def roster_code(study: Study) -> str:
    """Return the code that people at the sites read to each other.

    It follows from the name, the organisation and the key of each site, and from the keys of the
    author and the coordinator. The same parties have the same code in every study.
    """
    require()
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    members = sorted((m.name, m.organisation, m.key) for m in study.members)
    texts = [(name.encode(), organisation.encode(), key) for name, organisation, key in members]
    parties = digest(study.author, study.coordinator or b"", *(digest(*m) for m in texts))
    kdf = Scrypt(salt=b"isthmus roster code", length=CODE, n=MEMORY, r=8, p=WORK)
    text = base64.b32encode(kdf.derive(parties)).decode()
    return "-".join(text[i : i + 4] for i in range(0, len(text), 4))


def same_code(typed: str, code: str) -> bool:
    """Return whether somebody typed this code, in capitals or not, with or without dashes."""
    letters = re.sub(r"[\s-]", "", typed).upper().translate(READ_AS)
    return letters == code.replace("-", "")
