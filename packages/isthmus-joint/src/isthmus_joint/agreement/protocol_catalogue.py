"""The protocols that studies can name, and the names of their requests."""

from __future__ import annotations

from typing import TypeVar

from isthmus.errors import StudyError
from isthmus_joint.agreement.protocol import Protocol
from isthmus_joint.records.journal import COMMON, Event
from isthmus_joint.secure_sum.protocol import SecureSums
from isthmus_joint.shares.protocol import TwoParties

PROTOCOLS: tuple[type[Protocol], ...] = (SecureSums, TwoParties)
"""The protocols of this package."""

P = TypeVar("P", bound=type[Protocol])

_protocols: dict[str, type[Protocol]] = {}
_events: dict[str, Event] = {event.name: event for event in COMMON}
_requests: dict[str, set[str]] = {}


def register_protocol(protocol: P) -> P:
    """Make a protocol of another package known by its name; use it as a decorator of the class."""
    _protocols[protocol.name] = protocol
    _events.update({event.name: event for event in protocol.events})
    _requests.setdefault(protocol.name, set()).update(protocol.requests)
    return protocol


for _protocol in PROTOCOLS:
    register_protocol(_protocol)


def protocol_names() -> tuple[str, ...]:
    """Return the names of the registered protocols."""
    return tuple(sorted(_protocols))


def protocol_named(name: str) -> type[Protocol]:
    """Return a registered protocol.

    Raises
    ------
    StudyError
        There is no protocol of this name.
    """
    try:
        return _protocols[name]
    except KeyError:
        raise StudyError(
            f"there is no protocol {name!r}; known are {list(protocol_names())}. A protocol of "
            "another package is known after the package is imported."
        ) from None


def register_request_name(protocol: str, name: str) -> None:
    """Make the name of a request known, so that studies and policies may allow it."""
    _requests.setdefault(protocol, set()).add(name)


def request_names(protocol: str) -> tuple[str, ...]:
    """Return the names of the requests that a protocol can carry."""
    return tuple(sorted(_requests.get(protocol, ())))


def known_event(name: str) -> Event:
    """Return the kind of a ledger entry.

    An entry that no registered protocol describes counts as a round and as a statistic: a limit
    must not become weaker because a protocol is not installed any more.
    """
    event = _events.get(name)
    return Event(name, opens_round=True, sends_statistic=True) if event is None else event
