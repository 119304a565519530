"""The interface of transports, and the transport within one process for research and tests."""

from __future__ import annotations

import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Protocol, TypeAlias, TypeVar, final

from isthmus.errors import AbortedError
from isthmus.options import require_number
from isthmus_joint.agreement.identity import KEY, Identity, Verifier
from isthmus_joint.agreement.roster import Roster

PING = b""
"""The message that asks whether a site is running; the answer is empty, too."""


class RejectedMessageError(Exception):
    """A message that cannot be accepted. It carries nothing of the message's content."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason.replace("_", " "))
        self.reason = reason


class Round(Protocol):
    """The coordinator's side of one round of a protocol, as transports see it."""

    def begin(self) -> dict[str, bytes]:
        """Return the first message to each site."""

    def receive(self, data: bytes) -> None:
        """Take a message of a site, or raise `RejectedMessageError` and change nothing."""

    def advance(self) -> dict[str, bytes]:
        """Return the next messages, given the sites that answered; or raise `AbortedError`.

        No more messages means that the round is complete.
        """


@final
@dataclass(frozen=True)
class Timeouts:
    """How long a coordinator waits, in seconds. There are no other time limits.

    Attributes
    ----------
    answer
        Time for a site to answer one message. A site that takes longer is considered silent.
    gather
        Time for all sites to connect at the beginning.
    pause
        Time for silent sites to come back, if a round cannot continue without them.
    reconnect
        Time for a site to connect again if its connection broke before it answered; at most
        `answer`. A site that takes longer is considered silent.
    """

    answer: float = 300.0
    gather: float = 3600.0
    pause: float = 86400.0
    reconnect: float = 60.0

    def __post_init__(self) -> None:
        for name in ("answer", "gather", "pause", "reconnect"):
            require_number(self, name, least=0)


class SiteState(StrEnum):
    """State of a site, as seen by the coordinator."""

    AWAITED = "awaited"
    ASKED = "asked"
    ANSWERED = "answered"
    SILENT = "silent"


Watcher: TypeAlias = Callable[[str, SiteState], None]
"""Called with the name of each site whose state changes."""


class Transport(ABC):
    """Delivers a message to each of some sites and returns their answers."""

    @abstractmethod
    def exchange(self, outgoing: Mapping[str, bytes]) -> Iterable[bytes]:
        """Deliver the messages and return the answers that arrive in time, in any order."""

    def wait(self, silent: tuple[str, ...]) -> bool:
        """Wait until silent sites may be back; ``False`` if waiting is of no use."""
        return False


@final
class InProcess(Transport):
    """Sites as objects in this process.

    Parameters
    ----------
    sites
        A function per site that answers its messages.
    lost
        Deliveries that fail: pairs of a site and the number of the exchange, counted from zero.
        The site does not receive the message, nor any later one.
    muted
        The same, but the site receives the message and its answer is lost.
    """

    def __init__(
        self,
        sites: Mapping[str, Callable[[bytes], bytes]],
        *,
        lost: Iterable[tuple[str, int]] = (),
        muted: Iterable[tuple[str, int]] = (),
    ) -> None:
        self._sites = dict(sites)
        self._lost = frozenset(lost)
        self._muted = frozenset(muted)
        self._dead: set[str] = set()
        self.exchanges = 0
        self.sent = 0
        self.received = 0

    def exchange(self, outgoing: Mapping[str, bytes]) -> Iterable[bytes]:
        number, self.exchanges = self.exchanges, self.exchanges + 1
        for name, message in outgoing.items():
            if (name, number) in self._lost:
                self._dead.add(name)
            if name in self._dead:
                continue
            self.sent += len(message)
            answer = self._sites[name](message)
            if (name, number) in self._muted:
                self._dead.add(name)
                continue
            self.received += len(answer)
            yield answer


def drive(round_: Round, transport: Transport) -> None:
    """Drive a round to its end.

    Raises
    ------
    AbortedError
        Too few sites were left. Only the names of the silent ones are known.
    """
    outgoing = round_.begin()
    rejected: list[str] = []
    while outgoing:
        for answer in transport.exchange(outgoing):
            try:
                round_.receive(answer)
            except RejectedMessageError as error:
                rejected.append(error.reason)
        try:
            outgoing = round_.advance()
        except AbortedError as error:
            if rejected:
                reasons = sorted(set(rejected))
                error.add_note(f"{len(rejected)} messages were rejected: {reasons}.")
            raise


def ignore(_site: str, _state: SiteState) -> None:
    """Watch nothing."""


class RemoteTransport(Transport):
    """A transport to sites that come and go.

    Parameters
    ----------
    timeouts
        How long to wait.
    watch
        Called when the state of a site changes.
    """

    look = 0.1
    """Seconds between two checks of which sites are connected."""

    probe = 60.0
    """Seconds for a site to answer whether it is running."""

    def __init__(self, timeouts: Timeouts = Timeouts(), watch: Watcher = ignore) -> None:
        self._timeouts = timeouts
        self._watch = watch
        self._deadline: float | None = None

    @abstractmethod
    def _online(self) -> set[str]:
        """Return the sites that can be asked."""

    @abstractmethod
    def _deliver(
        self, outgoing: Mapping[str, bytes], seconds: float, watch: Watcher
    ) -> Iterator[bytes]:
        """Deliver messages and return the answers that arrive in time."""

    def gather(self, names: Iterable[str]) -> None:
        """Wait until all of these sites are connected.

        Raises
        ------
        AbortedError
            Some sites did not connect in time; the message names them.
        """
        missing = set(names)
        for name in sorted(missing):
            self._watch(name, SiteState.AWAITED)
        end = time.monotonic() + self._timeouts.gather
        while missing and time.monotonic() < end:
            here = self._online()
            for name in sorted(missing & here):
                self._watch(name, SiteState.ANSWERED)
            missing -= here
            if missing:
                time.sleep(self.look)
        if missing:
            raise AbortedError(
                f"The sites {sorted(missing)} did not connect within {self._timeouts.gather:.0f} "
                "seconds. No request was sent; run again when they can connect.",
                silent=tuple(sorted(missing)),
            )

    def exchange(self, outgoing: Mapping[str, bytes]) -> Iterator[bytes]:
        answered = 0
        for answer in self._deliver(outgoing, self._timeouts.answer, self._watch):
            answered += 1
            yield answer
        if answered == len(outgoing):
            self._deadline = None

    def wait(self, silent: tuple[str, ...]) -> bool:
        if self._deadline is None:
            self._deadline = time.monotonic() + self._timeouts.pause
        for name in silent:
            self._watch(name, SiteState.AWAITED)
        while (left := self._deadline - time.monotonic()) > 0:
            if set(silent) <= self._online():
                pings = dict.fromkeys(silent, PING)
                answers = list(self._deliver(pings, min(self.probe, left), ignore))
                if answers == [PING] * len(silent):
                    return True
            time.sleep(min(self.look, max(left, 0.0)))
        return False


# --- Greetings, and nodes that answer them -------------------------------------------------------
#
# Sites behind the nodes of another system for federated computing, such as Flower or NVFlare.
#
# Such a system carries messages between its server and its nodes, and has its own names for them.
# The coordinator therefore greets every node; a site answers with its signature, and is from then
# on reached at that node.

HELLO = b"isthmus hello/1\0"
"""First bytes of a greeting; the study and random bytes follow. No envelope begins with them."""

_ANSWER = b"isthmus greeting of a node/1\0"

Node = TypeVar("Node")


def is_greeting(message: bytes) -> bool:
    """Return whether a message is a greeting, rather than an envelope of the protocol."""
    return message.startswith(HELLO)


def answer_greeting(message: bytes, study: bytes, identity: Identity) -> bytes:
    """Return a site's answer: its public key and signature; nothing if it is about another study.

    The answer contains nothing of the data, and the signature serves no other purpose.
    """
    rest = message[len(HELLO) :]
    if len(rest) != 2 * KEY or rest[:KEY] != study:
        return b""
    return identity.public + identity.sign(_ANSWER + rest)


class NodeTransport(RemoteTransport, Generic[Node]):
    """A transport over the nodes of another system.

    A subclass says which nodes there are, and carries bytes to them and back. It does not have to
    be trusted: everything in the bytes is signed and checked by their sender and receiver.

    Parameters
    ----------
    roster
        The study and its sites, which are behind the nodes.
    """

    def __init__(
        self, roster: Roster, timeouts: Timeouts = Timeouts(), watch: Watcher = ignore
    ) -> None:
        super().__init__(timeouts, watch)
        self._study = roster.study
        self._names = {member.key: member.name for member in roster.members}
        self._verifier = Verifier()
        self._places: dict[str, Node] = {}

    @abstractmethod
    def _nodes(self) -> Iterable[Node]:
        """Return the nodes that are connected."""

    @abstractmethod
    def _send(self, messages: Mapping[Node, bytes], seconds: float) -> Iterator[tuple[Node, bytes]]:
        """Send a message to each of some nodes; yield each answer that arrives in time."""

    def _online(self) -> set[str]:
        nodes = set(self._nodes())
        self._places = {name: node for name, node in self._places.items() if node in nodes}
        if strangers := nodes - set(self._places.values()):
            rest = self._study + secrets.token_bytes(KEY)
            for node, answer in self._send(dict.fromkeys(strangers, HELLO + rest), self.probe):
                name, signature = self._names.get(answer[:KEY]), answer[KEY:]
                if name and self._verifier.verify(answer[:KEY], signature, _ANSWER + rest):
                    self._places[name] = node
        return set(self._places)

    def _deliver(
        self, outgoing: Mapping[str, bytes], seconds: float, watch: Watcher
    ) -> Iterator[bytes]:
        silent = dict.fromkeys(outgoing)
        for name in silent:
            watch(name, SiteState.ASKED)
        places = {self._places[name]: name for name in silent if name in self._places}
        for node, answer in self._send({n: outgoing[places[n]] for n in places}, seconds):
            silent.pop(places[node], None)
            watch(places[node], SiteState.ANSWERED)
            yield answer
        for name in silent:
            self._places.pop(name, None)  # greeted again, perhaps at another node
            watch(name, SiteState.SILENT)
