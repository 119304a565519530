"""Succession: a party replaces its key by a new one, and the old key vouches for it."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

from isthmus.errors import StudyError
from isthmus.joint.agreement.identity import Identity, Key, Verifier, digest, key_text
from isthmus.joint.agreement.policy import Policy
from isthmus.joint.agreement.toml import Hex, Reader, document, plain

FORMAT = "isthmus-succession/1"


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
        top = Reader.parse(Path(path).read_bytes(), "succession", FORMAT)
        make = top.record(cls)
        top.finish()
        read = make()
        if not Verifier().verify(read.old, read.value, _signed(read.old, read.new)):
            raise StudyError(f"The succession {path} is not signed by the key that it replaces.")
        return read

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a TOML file."""
        text = document({"format": FORMAT, **plain(self)}, {})
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
