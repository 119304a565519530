"""The roster of a study: its parties, their organisations and their pinned keys."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import final

from isthmus.errors import StudyError
from isthmus.joint.agreement.identity import KEY, Key


@final
@dataclass(frozen=True)
class Member:
    """A party of a study.

    Attributes
    ----------
    name
        Name of the site.
    organisation
        The legal entity that operates it. Several sites may belong to one organisation.
    key
        Its Ed25519 public key, 32 bytes.
    """

    name: str
    organisation: str
    key: Key


@final
@dataclass(frozen=True)
class Roster:
    """The parties of a study.

    Parameters
    ----------
    study
        SHA-256 of the study file.
    members
        The parties, in the order of the study.
    coordinator
        The Ed25519 public key of the coordinator; ``None`` if the protocol has none.
    """

    study: bytes
    members: tuple[Member, ...]
    coordinator: bytes | None

    def __post_init__(self) -> None:
        problems = [
            f"two sites have the same {field}"
            for field in ("name", "key")
            if len({getattr(m, field) for m in self.members}) != len(self.members)
        ]
        keys = [m.key for m in self.members]
        others = [self.study] if self.coordinator is None else [self.coordinator, self.study]
        if any(len(key) != KEY for key in (*keys, *others)):
            problems.append("keys and the hash of the study must have 32 bytes")
        if self.coordinator in keys:
            problems.append("the coordinator must not use the key of a site")
        if problems:
            raise StudyError("The roster cannot be used: " + "; ".join(problems) + ".")

    def __len__(self) -> int:
        return len(self.members)

    def position(self, name: str) -> int:
        """Return the position of a party in the roster."""
        try:
            return self._positions[name]
        except KeyError:
            raise StudyError(
                f"The study has no site {name!r}; its sites are {[m.name for m in self.members]}."
            ) from None

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {m.name: i for i, m in enumerate(self.members)}

    def names(self, positions: frozenset[int]) -> list[str]:
        """Return the names of the parties at these positions, in the order of the roster."""
        return [self.members[i].name for i in sorted(positions)]

    def organisations(self, positions: frozenset[int]) -> set[str]:
        """Return the organisations behind the parties at these positions."""
        return {self.members[i].organisation for i in positions}

    def sites_of_organisations(self) -> Counter[str]:
        """Return how many sites each organisation operates."""
        return Counter(m.organisation for m in self.members)

    @property
    def everyone(self) -> frozenset[int]:
        """The positions of all parties."""
        return frozenset(range(len(self.members)))
