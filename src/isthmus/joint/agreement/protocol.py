"""The protocol of a study: how its parties compute together, and the names of its requests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import ClassVar, Self, TypeVar

from isthmus.errors import StudyError
from isthmus.joint.agreement.roster import Member, Roster
from isthmus.joint.agreement.toml import Reader
from isthmus.joint.noise.section import Privacy
from isthmus.joint.records.events import COMMON, Event
from isthmus.lazy import provided


class Protocol(ABC):
    """How the parties of a study compute together, with the options that the study fixes.

    An implementation is a frozen dataclass. Its fields are the protocol's own section of the study
    file, and `register_protocol` makes it known by its name. Everything else that a joint
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
    results_add_up
        Whether results are sums over the parties, so that the difference of two of them is the
        share of the parties in which they differ.
    has_coordinator
        Whether someone beside the parties asks them and learns the results.
    """

    name: ClassVar[str]
    minimum_parties: ClassVar[int]
    events: ClassVar[tuple[Event, ...]]
    results_add_up: ClassVar[bool] = False
    has_coordinator: ClassVar[bool] = True

    @classmethod
    @abstractmethod
    def read(cls, section: Reader) -> Self:
        """Read the protocol's section of a study file, without its ``name``."""

    @abstractmethod
    def to_dict(self, parties: int) -> dict[str, object]:
        """Return the section for a study of this many parties, without its ``name``."""

    def fitted(self, members: Sequence[Member]) -> Self:
        """Return the protocol with what it leaves open chosen for these parties."""
        return self

    @property
    def keeps_membership(self) -> bool:
        """Whether all results of a study are over the same parties."""
        return True

    @abstractmethod
    def problems(self, roster: Roster) -> list[str]:
        """Return a phrase for each reason why these parties cannot use the protocol."""

    def variable_problems(self, names: tuple[str, ...]) -> list[str]:
        """Return a phrase for each reason why the protocol cannot use these variables."""
        return []

    def fitted_privacy(self, privacy: Privacy, members: Sequence[Member]) -> Privacy:
        """Return the section on privacy with what it leaves open chosen for these parties."""
        return privacy

    def privacy_problems(self, privacy: Privacy, requests: Collection[str]) -> list[str]:
        """Return a phrase for each reason why the protocol cannot add such noise."""
        return [f"the protocol {self.name!r} has no differential privacy; leave privacy out"]

    @abstractmethod
    def describe(self, roster: Roster) -> str:
        """Describe in one phrase what protects a party, for someone who signs the study."""


_PROTOCOLS: dict[str, type[Protocol]] = {}
_EVENTS: dict[str, Event] = {event.name: event for event in COMMON}
_REQUESTS: dict[str, set[str]] = {}

P = TypeVar("P", bound=type[Protocol])


def register_protocol(protocol: P) -> P:
    """Make a protocol known by its name; use it as a decorator of the class."""
    _PROTOCOLS[protocol.name] = protocol
    _EVENTS.update({event.name: event for event in protocol.events})
    return protocol


def protocol_names() -> tuple[str, ...]:
    """Return the names of the registered protocols."""
    _load_registered()
    return tuple(sorted(_PROTOCOLS))


def protocol_named(name: str) -> type[Protocol]:
    """Return a registered protocol.

    Raises
    ------
    StudyError
        There is no protocol of this name.
    """
    _load_registered()
    try:
        return _PROTOCOLS[name]
    except KeyError:
        raise StudyError(
            f"there is no protocol {name!r}; known are {list(protocol_names())}. A protocol of "
            "another package is known after the package is imported."
        ) from None


def register_request_name(protocol: str, name: str) -> None:
    """Make the name of a request known, so that studies and policies may allow it."""
    _REQUESTS.setdefault(protocol, set()).add(name)


def request_names(protocol: str) -> tuple[str, ...]:
    """Return the names of the requests that a protocol can carry."""
    _load_registered()
    return tuple(sorted(_REQUESTS.get(protocol, ())))


def known_event(name: str) -> Event:
    """Return the kind of a ledger entry.

    An entry that no registered protocol describes counts as a round and as a statistic: a limit
    must not become weaker because a protocol is not installed any more.
    """
    _load_registered()
    event = _EVENTS.get(name)
    return Event(name, opens_round=True, sends_statistic=True) if event is None else event


def _load_registered() -> None:
    """Import the modules of higher layers that register protocols and requests."""
    provided("protocols and requests of studies")
