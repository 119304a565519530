"""The protocol of a study: how its parties compute together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import ClassVar, Self

from isthmus_joint.agreement.roster import Member, Roster
from isthmus_joint.agreement.toml import Reader, plain
from isthmus_joint.noise.accounting import DifferentialPrivacy
from isthmus_joint.records.journal import Event

COLUMNS_PER_ROW = 0.33
"""The ratio of DataSHIELD: at most this many parameters of a model per row."""

LARGEST_SHARE = 0.5
"""The largest share of one person in a sum of squares."""


class Protocol(ABC):
    """How the parties of a study compute together, with the options that the study fixes.

    An implementation is a frozen dataclass. Its fields are the protocol's own section of the study
    file, and `protocol_catalogue` makes it known by its name. Everything else that a joint
    computation needs (identities, roster, policy, ledger, journal, transport) is the same for all
    protocols.

    Attributes
    ----------
    name
        Name in study and policy files.
    minimum_parties
        Smallest number of parties, and of organisations behind them, that the protocol protects.
    events
        The ledger entries that it writes.
    requests
        Names of the requests that it can carry; `register_request` adds those of other packages.
    results_add_up
        Whether results are sums over the parties, and the sites answer from extracts.
    has_coordinator
        Whether someone beside the parties asks them and learns the results.
    optional
        Names of the fields that a study file may leave out.
    """

    name: ClassVar[str]
    minimum_parties: ClassVar[int]
    events: ClassVar[tuple[Event, ...]]
    requests: ClassVar[tuple[str, ...]] = ()
    results_add_up: ClassVar[bool] = False
    has_coordinator: ClassVar[bool] = True
    optional: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def read(cls, section: Reader) -> Self:
        """Read the protocol's section of a study file, without its ``name``."""
        return section.record(cls, optional=cls.optional)()

    def to_dict(self) -> dict[str, object]:
        """Return the section of a study file, without its ``name`` and optional empty fields."""
        section: dict[str, object] = plain(self)
        return {k: v for k, v in section.items() if k not in self.optional or v not in ("", [])}

    def fitted(self, members: Sequence[Member]) -> Self:
        """Return the protocol with what it leaves open chosen for these parties."""
        return self

    @abstractmethod
    def problems(self, roster: Roster) -> list[str]:
        """Return a phrase for each reason why these parties cannot use the protocol."""

    def variable_problems(self, names: tuple[str, ...]) -> list[str]:
        """Return a phrase for each reason why the protocol cannot use these variables."""
        return []

    def fitted_privacy(
        self, privacy: DifferentialPrivacy, members: Sequence[Member]
    ) -> DifferentialPrivacy:
        """Return the section on privacy with what it leaves open chosen for these parties."""
        return privacy

    def privacy_problems(
        self, privacy: DifferentialPrivacy, requests: Collection[str]
    ) -> list[str]:
        """Return a phrase for each reason why the protocol cannot add such noise."""
        return [f"the protocol {self.name!r} has no differential privacy; leave privacy out"]

    @abstractmethod
    def describe(self, roster: Roster) -> str:
        """Describe in one phrase what protects a party, for someone who signs the study."""
