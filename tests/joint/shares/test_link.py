"""Messages between two engines, with TLS and without: long ones, silence, lies."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from isthmus.errors import AbortedError, ArgumentError
from isthmus_joint.records.private_files import write_private
from isthmus_joint.shares import link
from isthmus_joint.shares.link import EngineLink, LinkOptions, connect, connect_local
from isthmus_joint.transport.certificates import fingerprint, free_port, own_certificate

Pair = tuple[EngineLink, EngineLink]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    for rank in (0, 1):
        certificate, key = own_certificate(f"party {rank}")
        (folder / f"{rank}.crt").write_bytes(certificate)
        write_private(folder / f"{rank}.pem", key)
    return folder


def options(folder: Path, rank: int, port: int, session: str, timeout: float) -> LinkOptions:
    own, trusted = folder / f"{rank}.crt", folder / f"{1 - rank}.crt"
    key, pin = str(own.with_suffix(".pem")), fingerprint(trusted.read_bytes())
    address = ("127.0.0.1", port)
    return LinkOptions(session, rank, address, str(own), key, str(trusted), pin, timeout)


@pytest.fixture(params=["tls", "plain"])
def linked(request: pytest.FixtureRequest, certificates: Path) -> Iterator[Callable[..., Pair]]:
    """Connects two ends."""
    made: list[EngineLink] = []

    def make(timeout: float = 20.0) -> Pair:
        port = free_port()

        def end(rank: int) -> EngineLink:
            if request.param == "plain":
                return connect_local(rank, port, timeout)
            return connect(options(certificates, rank, port, "session", timeout))

        with ThreadPoolExecutor() as pool:
            made.extend(pool.map(end, (0, 1)))
        return made[-2], made[-1]

    yield make
    for each in made:
        each.close()


def send_much(end: EngineLink) -> None:
    """Send more than the buffers of the system hold."""
    for _ in range(100):
        end.send(bytes(2**20))


def test_messages_in_their_order(linked: Callable[..., Pair]) -> None:
    first, second = linked()
    assert (first.rank, second.rank) == (0, 1)
    sent = [b"", b"x", bytes(range(256)) * 1000, b"y"]
    for data in sent:
        first.send(data)
    assert [second.receive() for _ in sent] == sent
    second.send(b"answer")
    assert first.receive() == b"answer"


@pytest.mark.long
def test_both_send_much_at_once(linked: Callable[..., Pair]) -> None:
    """More than the buffers of the system hold, so that neither would go on without reading."""
    ends = linked()
    messages = [bytes([rank]) * 2**24 for rank in (0, 1)]

    def swap(end: EngineLink) -> list[bytes]:
        for _ in range(2):
            end.send(messages[end.rank])
        return [end.receive() for _ in range(2)]

    with ThreadPoolExecutor() as pool:
        first, second = pool.map(swap, ends)
    assert first == [messages[1]] * 2
    assert second == [messages[0]] * 2


@pytest.mark.long
def test_no_more_waits_than_allowed(
    linked: Callable[..., Pair], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two parties that never receive: both stop, with a bounded number of bytes in memory."""
    monkeypatch.setattr(link, "WAITING", 2**20)
    ends = linked(2.0)

    def flood(end: EngineLink) -> None:
        with pytest.raises(AbortedError, match="within 2 seconds"):
            send_much(end)

    with ThreadPoolExecutor() as pool:
        list(pool.map(flood, ends))
    for end in ends:
        assert 2**20 < len(end._received) <= 2**20 + link.PIECE


def test_silence_ends_in_time(linked: Callable[..., Pair]) -> None:
    first, _ = linked(0.3)
    start = time.monotonic()
    with pytest.raises(AbortedError, match=r"did not answer in time.*within 0\.3 seconds"):
        first.receive()
    assert 0.3 <= time.monotonic() - start < 5.0


def test_a_party_that_does_not_read(linked: Callable[..., Pair]) -> None:
    first, _ = linked(0.3)
    with pytest.raises(AbortedError, match="did not answer in time"):
        send_much(first)


def test_the_last_message_arrives_after_the_end(linked: Callable[..., Pair]) -> None:
    first, second = linked()
    data = bytes(2**20)

    def send_and_leave() -> None:
        first.send(data)
        first.close()

    sending = threading.Thread(target=send_and_leave)
    sending.start()
    time.sleep(0.2)
    assert second.receive() == data
    sending.join()
    with pytest.raises(AbortedError, match="it closed the connection"):
        second.receive()
    first.close()


def test_a_party_that_is_gone(linked: Callable[..., Pair]) -> None:
    first, second = linked()
    first.close()
    with pytest.raises(AbortedError, match="did not answer in time"):
        send_much(second)


@pytest.mark.parametrize("size", [link.LONGEST + 1, 2**64 - 1])
def test_a_message_that_is_too_long(linked: Callable[..., Pair], size: int) -> None:
    first, second = linked()
    first._write(memoryview(link.LENGTH.pack(size) + b"x"))
    with pytest.raises(AbortedError) as caught:
        second.receive()
    assert caught.value.reason == "broken message"
    assert len(second._received) < 100
    with pytest.raises(ArgumentError, match="at most"):
        first.send(memoryview(bytearray(link.LONGEST + 1)))  # type: ignore[arg-type]


def test_both_name_the_session(certificates: Path) -> None:
    port = free_port()

    def end(rank: int) -> Any:
        with pytest.raises(AbortedError) as caught:
            connect(options(certificates, rank, port, f"session {rank}", 5.0))
        return caught.value.reason

    with ThreadPoolExecutor() as pool:
        assert list(pool.map(end, (0, 1))) == ["broken message"] * 2


@pytest.mark.parametrize("rank", [0, 1])
def test_nobody_connects(certificates: Path, rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "CONNECTING", 0.3)
    with pytest.raises(AbortedError, match="engine of the other party") as caught:
        connect(options(certificates, rank, free_port(), "session", 5.0))
    assert caught.value.reason == "no engine"


def test_the_port_is_in_use(certificates: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(AbortedError, match="did not connect") as caught:
            connect(options(certificates, 0, port, "session", 5.0))
    assert caught.value.reason == "no engine"
