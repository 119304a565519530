"""The card of a site, and the folder of a study: what parties hand to each other."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import final

from isthmus.errors import StudyError
from isthmus.parties.agreement.roster import Member
from isthmus.parties.agreement.study import (
    Signature,
    Study,
    read_signatures,
    write_signatures,
)
from isthmus.parties.agreement.toml import Reader, document
from isthmus.parties.identity import key_bytes, key_text

FORMAT = "isthmus-card/1"


@final
@dataclass(frozen=True)
class Card:
    """What a site tells of itself; nothing of it is secret.

    Attributes
    ----------
    member
        Name, organisation and public key.
    node
        The public key by which the transport knows the site, in OpenSSH's form.
    """

    member: Member
    node: str

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Card:
        """Read what `write` wrote."""
        top = Reader.of(Path(path).read_bytes(), "card")
        if top.take("format", str) != FORMAT:
            top.wrong.append(f"format must be {FORMAT!r}")
        name, behind = top.take("name", str), top.take("organisation", str)
        key, node = top.tried("key", key_bytes), top.take("node", str)
        top.finish()
        assert key is not None
        return cls(Member(name, behind, key), node)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a file of TOML."""
        text = document(
            {
                "format": FORMAT,
                "name": self.member.name,
                "organisation": self.member.organisation,
                "key": key_text(self.member.key),
                "node": self.node,
            },
            {},
        )
        Path(path).write_text(text, encoding="utf-8")


@final
class Folder:
    """A study, its signatures, and how to connect: one folder that all parties share.

    Parameters
    ----------
    path
        The folder: ``study.toml``, ``NAME.signature`` of each who signed, ``ca.crt``,
        ``connect.toml``, and the ``cards`` of the sites.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @property
    def authority(self) -> Path:
        """The certificate that the coordinator's must be signed by."""
        return self.path / "ca.crt"

    def study(self) -> Study:
        """The study."""
        return Study.read(self.path / "study.toml")

    def signatures(self) -> list[Signature]:
        """All signatures that are there."""
        files = sorted(self.path.glob("*.signature"))
        return [signature for file in files for signature in read_signatures(file)]

    def sign(self, signature: Signature) -> Path:
        """Put a signature into the folder."""
        if not signature.role.replace("-", "").replace("_", "").replace(".", "").isalnum():
            raise StudyError(f"{signature.role!r} is no name for a file.")
        path = self.path / f"{signature.role}.signature"
        write_signatures(path, [signature])
        return path

    def cards(self) -> dict[str, Card]:
        """The cards of the sites; they must be those of the study."""
        study = self.study()
        found = [Card.read(p) for p in sorted((self.path / "cards").glob("*.toml"))]
        cards = {c.member.name: c for c in found}
        if {c.member for c in found} != set(study.members):
            raise StudyError(
                f"The cards in {self.path / 'cards'} are not those of the study. "
                "Draft the study again with the cards that the sites gave you."
            )
        return cards

    def address(self) -> str:
        """Host and port of the coordinator."""
        top = Reader.of((self.path / "connect.toml").read_bytes(), "file connect.toml")
        found = top.take("address", str)
        top.finish()
        return found

    def write(self, study: Study, cards: list[Card], authority: bytes, address: str) -> None:
        """Put all but the signatures into a new folder."""
        (self.path / "cards").mkdir(parents=True)
        study.write(self.path / "study.toml")
        for i, card in enumerate(cards):
            card.write(self.path / "cards" / f"{i:03}.toml")
        self.authority.write_bytes(authority)
        text = document({"address": address}, {})
        (self.path / "connect.toml").write_text(text, encoding="utf-8")
