"""What parties give to each other: the card of a site, and the folder of a study."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

from isthmus.errors import StudyError
from isthmus_joint.agreement.identity import (
    Identity,
    Key,
    Signature,
    Verifier,
    digest,
    key_text,
    read_signatures,
    write_signatures,
)
from isthmus_joint.agreement.policy import Policy
from isthmus_joint.agreement.roster import Member
from isthmus_joint.agreement.study import Study
from isthmus_joint.agreement.toml import Hex, Reader, document, plain

FORMAT = "isthmus-card/1"
SHARED_FILE_NAME = re.compile(r"[A-Za-z0-9._-]*[A-Za-z0-9][A-Za-z0-9._-]*")


@final
@dataclass(frozen=True)
class Card:
    """The public description of a site. It contains no secret.

    Attributes
    ----------
    member
        Name, organisation and public key.
    certificate
        The certificate with which it connects to others, in PEM format.
    address
        Host and port under which another party reaches it; empty if none does.
    """

    member: Member
    certificate: str
    address: str = ""

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Card:
        """Read a file that `write` wrote."""
        top = Reader.parse(Path(path).read_bytes(), "card", FORMAT)
        member = top.record(Member)
        certificate, address = top.take("certificate", str), top.take("address", str, "")
        top.finish()
        return cls(member(), certificate, address)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a TOML file."""
        values = {"certificate": self.certificate} | ({"address": a} if (a := self.address) else {})
        text = document({"format": FORMAT, **plain(self.member), **values}, {})
        Path(path).write_text(text, encoding="utf-8")


@final
class Folder:
    """The folder that all parties of a study share: the study, its signatures, how to connect.

    Parameters
    ----------
    path
        The folder, with ``study.toml``, one ``NAME.signature`` per signature, the ``cards`` of the
        sites, and, if there is a coordinator, ``coordinator.crt`` and ``connect.toml``.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @property
    def certificate(self) -> Path:
        """The certificate of the coordinator."""
        return self.path / "coordinator.crt"

    def study(self) -> Study:
        """Read the study."""
        return Study.read(self.path / "study.toml")

    def signatures(self) -> list[Signature]:
        """Read all signatures in the folder."""
        files = sorted(self.path.glob("*.signature"))
        return [signature for file in files for signature in read_signatures(file)]

    def sign(self, signature: Signature) -> Path:
        """Write a signature into the folder and return its path."""
        if not SHARED_FILE_NAME.fullmatch(signature.role):
            raise StudyError(
                f"{signature.role!r} cannot be used as the name of a file. Use letters, digits, "
                "'-', '_' and '.' in the names of sites."
            )
        path = self.path / f"{signature.role}.signature"
        write_signatures(path, [signature])
        return path

    def cards(self) -> dict[str, Card]:
        """Read the cards of the sites, which must be those of the study."""
        study = self.study()
        cards = [Card.read(p) for p in sorted((self.path / "cards").glob("*.toml"))]
        if {c.member for c in cards} != set(study.members):
            raise StudyError(
                f"The cards in {self.path / 'cards'} are not those of the study. "
                "Draft the study again with the cards that the sites gave you."
            )
        return {c.member.name: c for c in cards}

    def address(self) -> str:
        """Read host and port of the coordinator."""
        top = Reader.parse((self.path / "connect.toml").read_bytes(), "file connect.toml")
        address = top.take("address", str)
        top.finish()
        return address

    def write(self, study: Study, cards: list[Card]) -> None:
        """Create the folder with everything except the signatures and the coordinator."""
        (self.path / "cards").mkdir(parents=True)
        study.write(self.path / "study.toml")
        for i, card in enumerate(cards):
            card.write(self.path / "cards" / f"{i:03}.toml")

    def write_coordinator(self, certificate: bytes, address: str) -> None:
        """Add how the sites reach the coordinator."""
        self.certificate.write_bytes(certificate)
        text = document({"address": address}, {})
        (self.path / "connect.toml").write_text(text, encoding="utf-8")


# --- Succession: a party replaces its key by a new one, and the old key vouches for it ----------

SUCCESSION_FORMAT = "isthmus-succession/1"


@final
@dataclass(frozen=True)
class Succession:
    """The statement of an old key that a new one replaces it."""

    old: Key
    new: Key
    value: Hex

    @classmethod
    def sign(cls, old: Identity, new: Identity) -> Succession:
        """State that a new identity replaces an old one."""
        return cls(old.public, new.public, old.sign(_signed(old.public, new.public)))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Succession:
        """Read a file that `write` wrote, and check the signature."""
        top = Reader.parse(Path(path).read_bytes(), "succession", SUCCESSION_FORMAT)
        make = top.record(cls)
        top.finish()
        read = make()
        if not Verifier().verify(read.old, read.value, _signed(read.old, read.new)):
            raise StudyError(f"The succession {path} is not signed by the key that it replaces.")
        return read

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a TOML file."""
        text = document({"format": SUCCESSION_FORMAT, **plain(self)}, {})
        Path(path).write_text(text, encoding="utf-8")

    def accept(self, policy: Policy) -> Policy:
        """Return the policy with the new key of the peer; the old one is revoked.

        Raises
        ------
        StudyError
            The policy does not know the old key, or it was revoked before, or the new key is not
            new.
        """
        peers = policy.peers or ()
        if self.old in policy.revoked or all(m.key != self.old for m in peers):
            raise StudyError(
                f"The key {key_text(self.old)} is not that of a peer of the policy, so it cannot "
                "vouch for another one. Confirm the new key with its owner, and add it by hand."
            )
        if self.new in policy.revoked or any(m.key == self.new for m in peers):
            raise StudyError(
                f"The key {key_text(self.new)} was revoked or is that of a peer already, so it "
                "cannot follow another one. Ask its owner for a new key."
            )
        renewed = tuple(replace(m, key=self.new) if m.key == self.old else m for m in peers)
        return replace(policy, peers=renewed, revoked=(*policy.revoked, self.old))


def _signed(old: bytes, new: bytes) -> bytes:
    return digest(b"isthmus succession", old, new)
