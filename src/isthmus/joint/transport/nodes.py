"""Sites behind the nodes of another system for federated computing, such as Flower or NVFlare.

Such a system carries messages between its server and its nodes, and has its own names for them. The
coordinator therefore greets every node; a site answers with its signature, and is from then on
reached at that node.
"""

from __future__ import annotations

import secrets
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from isthmus.joint.agreement.identity import KEY, Identity, Verifier
from isthmus.joint.agreement.roster import Roster
from isthmus.joint.transport.base import RemoteTransport, SiteState, Timeouts, Watcher, ignore

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
    timeouts, watch
        As for `RemoteTransport`.
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
