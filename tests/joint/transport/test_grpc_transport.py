"""gRPC between a coordinator and sites in this process: who gets in, what survives, what is cut."""

from __future__ import annotations

import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.joint.transport.flapping_proxy import FlappingProxy

from isthmus.errors import AbortedError, FederationError, StudyError
from isthmus_joint.transport.base import SiteState, Timeouts
from isthmus_joint.transport.certificates import fingerprint, own_certificate
from isthmus_joint.transport.over_grpc import (
    ADMITTED,
    CIPHER_SUITES_OF_TLS_1_2,
    HEAD,
    METHOD,
    NO_MESSAGE,
    PIECE,
    SERVER_OPTIONS,
    SERVICE,
    SUITES,
    Assembler,
    BrokenPieceError,
    CoordinatorCredentials,
    GrpcSite,
    GrpcTransport,
    SiteCredentials,
    grpc_library,
    pieces,
    require_pinned,
)

if find_spec("grpc") is None:
    pytest.skip("needs the extra horizontal", allow_module_level=True)
STUDY = bytes(range(32))
LONGEST = 3 * PIECE
TIMES = Timeouts(30.0, 30.0, 30.0)


class World:
    """A coordinator that listens, and the credentials of its sites."""

    def __init__(self, names: tuple[str, ...] = ("a", "b"), timeouts: Timeouts = TIMES) -> None:
        self.certificate, key = own_certificate("test", ["localhost", "127.0.0.1"])
        self.sites = {name: self.credentials(name) for name in names}
        self.states: list[tuple[str, SiteState]] = []
        pinned = {name: c.certificate for name, c in self.sites.items()}
        self.own = CoordinatorCredentials(self.certificate, key, pinned)
        self.transport = GrpcTransport(
            "127.0.0.1",
            0,
            self.own,
            STUDY,
            LONGEST,
            timeouts,
            lambda site, state: self.states.append((site, state)),
        )
        self.said: dict[str, list[str]] = {}
        self._stack = ExitStack()
        self._stack.enter_context(self.transport)

    def credentials(self, name: str, coordinator: bytes | None = None) -> SiteCredentials:
        own = own_certificate(name)
        return SiteCredentials(*own, coordinator or self.certificate)

    def join(
        self,
        name: str,
        handle: Callable[[bytes], bytes] = lambda data: data[::-1],
        *,
        credentials: SiteCredentials | None = None,
        study: bytes = STUDY,
        port: int | None = None,
        longest: int = LONGEST,
        reject: Callable[[], None] = lambda: None,
    ) -> GrpcSite:
        said = self.said.setdefault(name, [])
        site = GrpcSite(
            f"127.0.0.1:{port or self.transport.port}",
            credentials or self.sites[name],
            study,
            handle,
            longest,
            reject=reject,
            watch=said.append,
        )
        return self._stack.enter_context(site)

    def await_said(self, name: str, text: str) -> None:
        end = time.monotonic() + 30
        while not any(text in line for line in self.said[name]):
            assert time.monotonic() < end, self.said[name]
            time.sleep(0.02)

    def close(self) -> None:
        self._stack.close()


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.close()


def test_messages_of_all_sizes(world: World) -> None:
    world.join("a")
    world.join("b")
    world.transport.gather(["a", "b"])
    for size in (0, 1, PIECE - 1, PIECE, PIECE + 1, LONGEST):
        message = (b"0123456789" * (size // 10 + 1))[:size]
        answers = list(world.transport.exchange({"a": message, "b": message}))
        assert answers == [message[::-1]] * 2
    assert world.states[:2] == [("a", SiteState.AWAITED), ("b", SiteState.AWAITED)]
    assert ("b", SiteState.ANSWERED) in world.states


def test_certificates_that_the_study_does_not_name(world: World) -> None:
    """Another key, another coordinator, no study of ours: nobody gets in, and the site says why."""
    world.join("stranger", credentials=world.credentials("a"))
    misled = world.credentials("a", own_certificate("another")[0])
    world.join("misled", credentials=misled)
    world.join("astray", credentials=world.sites["b"], study=bytes(32))
    world.await_said("stranger", "not connected")
    world.await_said("misled", "is not the one that the study names")
    world.await_said("astray", "runs another study")
    assert world.transport._online() == set()
    world.join("a")
    world.transport.gather(["a"])


def test_a_site_that_is_sent_away_does_not_dial_in_a_hurry(world: World) -> None:
    """It was never let in, so that it waits longer each time, and says so once."""
    world.join("astray", credentials=world.sites["b"], study=bytes(32))
    world.await_said("astray", "runs another study")
    end = time.monotonic() + 1.0
    while time.monotonic() < end:
        assert not [line for line in world.said["astray"] if line.startswith("connected")]
        time.sleep(0.05)


def test_a_second_certificate_behind_the_pinned_one_is_not_trusted(world: World) -> None:
    """Whoever passes on the study's folder appends a certificate of their own, and listens."""
    other, key = own_certificate("other", ["localhost"])
    credentials = CoordinatorCredentials(other, key, world.own.sites)
    both, own = world.certificate + other, world.sites["a"]
    require_pinned(both, fingerprint(world.certificate), "the coordinator")
    with GrpcTransport("127.0.0.1", 0, credentials, STUDY, LONGEST, TIMES) as impostor:
        misled = SiteCredentials(own.certificate, own.key, both)
        world.join("a", credentials=misled, port=impostor.port)
        world.await_said("a", "is not the one that the study names")
        assert impostor._online() == set()


@pytest.mark.long
def test_a_certificate_speaks_for_its_own_site_only(world: World) -> None:
    """Site b cannot answer for site a: the certificate decides whose stream it is."""
    asked: list[bytes] = []
    world.join("b", lambda data: asked.append(data) or b"of b")  # type: ignore[func-returns-value]
    world.transport.gather(["b"])
    transport = GrpcTransport("127.0.0.1", 0, world.own, STUDY, LONGEST, Timeouts(5.0, 3.0, 0.0))
    with transport:
        world.join("other", credentials=world.sites["b"], port=transport.port)
        transport.gather(["b"])
        assert list(transport.exchange({"a": b"?"})) == []
        with pytest.raises(AbortedError, match=r"\['a'\] did not connect"):
            transport.gather(["a"])
        with pytest.raises(FederationError, match="no certificates"):
            list(transport.exchange({"nobody": b"?"}))
    assert asked == []


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_tls_1_3_only(world: World, tmp_path: Path, version: ssl.TLSVersion) -> None:
    """A client with the right certificate gets no connection over TLS 1.2."""
    if version is ssl.TLSVersion.TLSv1_2 and os.environ.get(SUITES) != CIPHER_SUITES_OF_TLS_1_2:
        pytest.skip("gRPC was loaded with other suites; tests/processes tries it with a process")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = context.maximum_version = version
    context.set_alpn_protocols(["h2"])
    context.load_verify_locations(cadata=world.certificate.decode())
    pair = tmp_path / "crt", tmp_path / "pem"
    pair[0].write_bytes(world.sites["a"].certificate)
    pair[1].write_bytes(world.sites["a"].key)
    context.load_cert_chain(*pair)
    address = ("127.0.0.1", world.transport.port)
    with socket.create_connection(address, 10.0) as raw:
        if version is ssl.TLSVersion.TLSv1_2:
            with pytest.raises((ssl.SSLError, ConnectionError)):
                context.wrap_socket(raw, server_hostname="localhost")
        else:
            with context.wrap_socket(raw, server_hostname="localhost") as shaken:
                assert shaken.version() == "TLSv1.3"


def test_garbage_on_the_port(world: World) -> None:
    """Bytes, half a handshake, a handshake without a certificate, nothing: the sites go on."""
    world.join("a")
    world.transport.gather(["a"])
    address = ("127.0.0.1", world.transport.port)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["h2"])
    context.load_verify_locations(cadata=world.certificate.decode())
    hello = bytes.fromhex("160301020001000001fc0303")  # a client that says hello, cut off
    with ExitStack() as stack:
        for data in (b"", b"\0" * 999, os.urandom(10_000), b"GET / HTTP/1.1\r\n\r\n", hello) * 20:
            raw = stack.enter_context(socket.create_connection(address, 10.0))
            with suppress(ConnectionError):
                raw.sendall(data)
        with suppress(ssl.SSLError, ConnectionError):
            raw = stack.enter_context(socket.create_connection(address, 10.0))
            shaken = stack.enter_context(context.wrap_socket(raw, server_hostname="localhost"))
            shaken.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(1000))
            assert shaken.recv(100) == b""
        assert world.transport._online() == {"a"}
        assert list(world.transport.exchange({"a": b"12"})) == [b"21"]
        world.join("b")  # newcomers get in beside all these connections
        world.transport.gather(["b"])
        assert list(world.transport.exchange({"b": b"12"})) == [b"21"]


@pytest.mark.timing
def test_a_site_that_is_gone_is_silent_long_before_the_time_for_an_answer() -> None:
    """As soon as the time for a new connection is over, counted from the loss of the old one."""
    world = World(timeouts=Timeouts(60.0, 30.0, 0.0, 1.0))
    try:
        site = world.join("a")
        world.join("b", lambda data: time.sleep(2.0) or data)  # type: ignore[func-returns-value]
        world.transport.gather(["a", "b"])
        site.stop()
        start = time.monotonic()
        assert list(world.transport.exchange({"a": b"?", "b": b"!"})) == [b"!"]
        assert 1.0 < time.monotonic() - start < 20.0
        assert world.states[-2:] == [("a", SiteState.SILENT), ("b", SiteState.ANSWERED)]
        world.join("a")
        world.transport.gather(["a"])
        assert list(world.transport.exchange({"a": b"12"})) == [b"21"]
    finally:
        world.close()


def test_a_second_coordinator_does_not_share_the_port(world: World) -> None:
    with pytest.raises(FederationError, match="cannot listen"):
        GrpcTransport("127.0.0.1", world.transport.port, world.own, STUDY, LONGEST)


def test_a_broken_connection_loses_no_answer(world: World) -> None:
    """The answer is given once, however often the connection breaks before it arrives."""
    proxy = FlappingProxy(world.transport.port)
    handled: list[bytes] = []

    def handle(data: bytes) -> bytes:
        handled.append(data)
        if len(handled) % 2:
            proxy.cut()  # while the site is working
        return b"answer to " + data

    with proxy:
        world.join("a", handle, port=proxy.port)
        world.transport.gather(["a"])
        for i in range(6):
            question = f"question {i}".encode()
            assert list(world.transport.exchange({"a": question})) == [b"answer to " + question]
            assert handled[-1] == question
    assert len(handled) == 6
    assert proxy.cuts >= 3


@pytest.mark.long
def test_a_flapping_network_loses_nothing(world: World) -> None:
    """Until the fifth cut, however long that takes; tests/processes has a run of minutes."""
    proxy = FlappingProxy(world.transport.port, every=0.3, down=0.2)
    handled: list[bytes] = []

    def handle(data: bytes) -> bytes:
        handled.append(data)
        return data * 500

    with proxy:
        world.join("a", handle, port=proxy.port)
        world.join("b")
        world.transport.gather(["a", "b"])
        i = 0
        while proxy.cuts < 5:
            question = f"{i:08}".encode() * 500
            answers = list(world.transport.exchange({"a": question, "b": question}))
            assert sorted(answers) == sorted([question * 500, question[::-1]])
            i += 1
    assert len(handled) == i


def test_a_newer_stream_of_a_site_replaces_the_older(world: World) -> None:
    world.join("a", lambda _: b"old")
    world.transport.gather(["a"])
    assert list(world.transport.exchange({"a": b"?"})) == [b"old"]
    world.join("again", lambda _: b"new", credentials=world.sites["a"])
    world.await_said("again", "connected")
    answers = {next(iter(world.transport.exchange({"a": b"?"}))) for _ in range(3)}
    assert answers <= {b"old", b"new"}  # one of them, and never both or none


def test_silent_sites_are_waited_for() -> None:
    world = World(timeouts=Timeouts(0.3, 5.0, 30.0))
    try:
        release = threading.Event()

        def slow(data: bytes) -> bytes:
            release.wait(20)
            return data

        world.join("a", slow)
        world.transport.gather(["a"])
        assert list(world.transport.exchange({"a": b"?"})) == []
        assert world.states[-1] == ("a", SiteState.SILENT)
        threading.Timer(0.5, release.set).start()
        assert world.transport.wait(("a",))
        assert list(world.transport.exchange({"a": b"!"})) == [b"!"]
    finally:
        release.set()
        world.close()


@pytest.mark.timing
def test_messages_that_are_too_long(world: World) -> None:
    """A site refuses them over the same connection, and is not asked again and again."""
    asked: list[bytes] = []

    def refuse(message: bytes) -> bytes:
        asked.append(message)
        return b"refused" if message == NO_MESSAGE else message[::-1]

    world.join("a", lambda _: bytes(LONGEST + 1))
    world.join("b", refuse, longest=100)
    world.transport.gather(["a", "b"])
    start = time.monotonic()
    assert list(world.transport.exchange({"a": b"?"})) == []  # at once, not after the time limit
    assert time.monotonic() - start < TIMES.answer
    for size in (101, 2 * PIECE + 1):
        assert list(world.transport.exchange({"b": bytes(size)})) == [b"refused"]
    assert list(world.transport.exchange({"b": b"12"})) == [b"21"]
    assert asked == [NO_MESSAGE, NO_MESSAGE, b"12"]
    assert sum("connected" in line for line in world.said["b"]) == 1


@pytest.mark.timing
def test_a_coordinator_that_reads_no_answers_does_not_fill_the_memory_of_a_site(
    world: World,
) -> None:
    grpc = grpc_library()
    asked, handled, read, reads = 60, [0], [0], threading.Event()

    def connected(answers: Iterator[bytes], context: Any) -> Iterator[bytes]:
        context.send_initial_metadata(ADMITTED)
        for i in range(asked):
            yield from pieces(i.to_bytes(16, "little"), b"?")
        reads.wait(60)
        for _ in range(asked):
            next(answers)
            read[0] += 1

    def handle(_: bytes) -> bytes:
        handled[0] += 1
        return bytes(PIECE)

    server = grpc.server(ThreadPoolExecutor(2), options=SERVER_OPTIONS)
    method = grpc.stream_stream_rpc_method_handler(connected)
    service = grpc.method_handlers_generic_handler(SERVICE, {METHOD: method})
    server.add_generic_rpc_handlers((service,))
    port = server.add_secure_port("127.0.0.1:0", world.own.server())
    server.start()
    try:
        site = world.join("a", handle, port=port)
        world.await_said("a", "connected")
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            assert handled[0] < asked
            time.sleep(0.05)
        assert handled[0] > 0
        reads.set()
        end = time.monotonic() + 30
        while read[0] < asked:
            assert time.monotonic() < end, read
            time.sleep(0.02)
        assert handled[0] == asked
        site.stop()
        assert not site._thread.is_alive()
    finally:
        reads.set()
        server.stop(0)


def test_pieces_that_are_none() -> None:
    number = bytes(16)
    (first, second) = pieces(number, bytes(PIECE + 1))
    assert Assembler(2 * PIECE).add(first) is None
    wrong = [b"", first[:10], second, HEAD.pack(number, 2**32 - 1, 0), HEAD.pack(number, 5, 0)]
    wrong += [HEAD.pack(number, 1, 0) + b"12"]
    for piece in wrong:
        with pytest.raises(BrokenPieceError):
            Assembler(2 * PIECE).add(piece)
    unwanted = Assembler(2 * PIECE, lambda _: False)
    assert [unwanted.add(first), unwanted.add(second)] == [None, None]
    assert unwanted._parts == []
    again = Assembler(2 * PIECE)  # cut, and sent from its start
    assert [again.add(first), again.add(first)] == [None, None]
    assert again.add(second) == (number, bytes(PIECE + 1))


def test_pins_are_checked_before_a_connection(world: World) -> None:
    text = world.certificate
    require_pinned(text, fingerprint(text), "the coordinator")
    with pytest.raises(StudyError, match="the study names"):
        require_pinned(own_certificate("other")[0], fingerprint(text), "the coordinator")
    with pytest.raises(StudyError, match="names no certificates"):
        require_pinned(text, "", "the coordinator")
