"""Who takes part: sites, their organisations and pinned keys, and how many must stay."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

from isthmus.errors import StudyError
from isthmus.parties.identity import KEY, digest
from isthmus.sources.horizontal.secure_sum.shamir import MOST

FEWEST = 3
"""With two, each learns the other's statistics from the sum."""


@final
@dataclass(frozen=True)
class Member:
    """A site of the roster.

    Attributes
    ----------
    name
        Name of the site.
    organisation
        The legal person behind it; several sites may belong to one.
    key
        Its Ed25519 public key, 32 bytes.
    """

    name: str
    organisation: str
    key: bytes


@final
@dataclass(frozen=True)
class Terms:
    """What all parties of a study agreed on before any message.

    Parameters
    ----------
    study
        SHA-256 of the study file.
    members
        The sites, in the order of the study.
    coordinator
        The Ed25519 public key of the coordinator.
    threshold
        How many sites must answer at every stage; by default more than two thirds.
    organisations
        How many organisations must be behind them, at least three.
    """

    study: bytes
    members: tuple[Member, ...]
    coordinator: bytes
    threshold: int = 0
    organisations: int = FEWEST

    def __post_init__(self) -> None:
        k = len(self.members)
        if self.threshold == 0:
            object.__setattr__(self, "threshold", max(default_threshold(k), FEWEST))
        wrong = []
        if not FEWEST <= k <= MOST:
            wrong.append(f"{k} sites were given; from {FEWEST} to {MOST} are allowed")
        if not max(FEWEST, k // 2 + 1) <= self.threshold <= max(k, FEWEST):
            wrong.append(
                f"the threshold is {self.threshold}; with {k} sites it must lie between "
                f"{max(FEWEST, k // 2 + 1)} and {k}"
            )
        if self.organisations < FEWEST:
            wrong.append(f"at least {FEWEST} organisations are needed, not {self.organisations}")
        if len({m.organisation for m in self.members}) < self.organisations:
            wrong.append(f"fewer than {self.organisations} organisations are behind the sites")
        wrong += [
            f"two sites have the same {what}"
            for what in ("name", "key")
            if len({getattr(m, what) for m in self.members}) != k
        ]
        keys = [m.key for m in self.members] + [self.coordinator]
        if any(len(key) != KEY for key in keys) or len(self.study) != KEY:
            wrong.append("keys and the study's hash have 32 bytes")
        if self.coordinator in keys[:-1]:
            wrong.append("the coordinator must not have the key of a site")
        if wrong:
            raise StudyError("The roster cannot be used: " + "; ".join(wrong) + ".")

    @cached_property
    def digest(self) -> bytes:
        """All of it in 32 bytes."""
        parts = [p for m in self.members for p in (m.name.encode(), m.organisation.encode(), m.key)]
        numbers = b"%d of %d" % (self.threshold, self.organisations)
        return digest(b"isthmus terms 1", self.study, numbers, self.coordinator, *parts)

    @property
    def tolerated(self) -> int:
        """How many sites may collude with the coordinator without a single one being exposed.

        Two different active sets would each need `threshold` signatures.
        """
        return 2 * self.threshold - len(self.members) - 1

    def position(self, name: str) -> int:
        """Position of a site in the roster."""
        try:
            return self._positions[name]
        except KeyError:
            raise StudyError(f"There is no site {name!r} in the study.") from None

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {m.name: i for i, m in enumerate(self.members)}

    def enough(self, sites: frozenset[int]) -> bool:
        """Whether these sites may form a sum."""
        behind = {self.members[i].organisation for i in sites}
        return len(sites) >= self.threshold and len(behind) >= self.organisations


def default_threshold(sites: int) -> int:
    """More than two thirds of the sites."""
    return 2 * sites // 3 + 1
