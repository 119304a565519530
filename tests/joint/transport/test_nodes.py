"""Sites behind the nodes of another system: who is where, and who only says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from isthmus_joint import Identity
from isthmus_joint.agreement.roster import Member, Roster
from isthmus_joint.transport.base import (
    PING,
    NodeTransport,
    SiteState,
    Timeouts,
    answer_greeting,
    is_greeting,
)

STUDY, OTHER = bytes(32), bytes([1]) * 32
KEYS = {name: Identity.generate() for name in ("north", "east")}
ROSTER = Roster(
    STUDY,
    tuple(Member(name, f"{name} hospital", key.public) for name, key in KEYS.items()),
    Identity.generate().public,
)


def site(name: str, study: bytes = STUDY) -> Callable[[bytes], bytes]:
    def handle(message: bytes) -> bytes:
        if is_greeting(message):
            return answer_greeting(message, study, KEYS[name])
        return message and f"{name}: {message.decode()}".encode()

    return handle


class Nodes(NodeTransport[int]):
    """Nodes as functions; ``None`` for one that does not answer."""

    look = 0.01

    def __init__(self, *nodes: Callable[[bytes], bytes] | None) -> None:
        self.states: list[tuple[str, SiteState]] = []
        super().__init__(ROSTER, Timeouts(1.0, 0.1, 0.2), lambda *pair: self.states.append(pair))
        self.nodes = dict(enumerate(nodes))

    def _nodes(self) -> Iterable[int]:
        return list(self.nodes)

    def _send(self, messages: Mapping[int, bytes], seconds: float) -> Iterator[tuple[int, bytes]]:
        for number, message in messages.items():
            if (node := self.nodes.get(number)) is not None:
                yield number, node(message)


def ask(nodes: Nodes, *names: str) -> list[bytes]:
    return sorted(nodes.exchange({name: f"to {name}".encode() for name in names}))


def test_sites_are_found_by_their_signatures_whatever_else_is_connected() -> None:
    strangers = [None, lambda _: b"", lambda _: bytes(96), site("north", OTHER)]
    nodes = Nodes(*strangers, site("east"), site("north"))
    nodes.gather(["north", "east"])
    assert ask(nodes, "north", "east") == [b"east: to east", b"north: to north"]


def test_a_node_cannot_pretend_to_be_a_site() -> None:
    """Neither with the site's public key, nor with an answer that the site gave before."""
    said: list[bytes] = []

    def honest(message: bytes) -> bytes:
        said.append(site("north")(message))
        return said[-1]

    nodes = Nodes(honest)
    assert nodes._online() == {"north"}
    nodes.nodes = {1: lambda _: KEYS["north"].public + bytes(64), 2: lambda _: said[0]}
    assert nodes._online() == set()
    assert ask(nodes, "north") == []


def test_a_site_that_moves_to_another_node_is_found_again() -> None:
    nodes = Nodes(site("north"), site("east"))
    nodes.gather(["north", "east"])
    nodes.nodes = {1: site("east"), 7: site("north")}
    nodes.states.clear()
    assert ask(nodes, "north", "east") == [b"east: to east"]
    assert nodes.states[-1] == ("north", SiteState.SILENT)
    assert nodes.wait(("north",))
    assert ask(nodes, "north") == [b"north: to north"]
    assert list(nodes.exchange({"north": PING})) == [PING]
