"""Two ends of a connection that trust one certificate each: messages, silence, strangers."""

from __future__ import annotations

import os
import resource
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from isthmus.errors import AbortedError, FormatError
from isthmus_joint.records.private_files import write_private
from isthmus_joint.transport import pinned_channel, pinned_connection
from isthmus_joint.transport.certificates import fingerprint, free_port, own_certificate
from isthmus_joint.transport.pinned_channel import PinnedChannel
from isthmus_joint.transport.pinned_connection import Credentials

Pair = tuple[PinnedChannel, PinnedChannel]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    for name in ("bank", "shop", "thief"):
        certificate, key = own_certificate(name)
        (folder / f"{name}.crt").write_bytes(certificate)
        write_private(folder / f"{name}.pem", key)
    return folder


def credentials(folder: Path, own: str, other: str) -> Credentials:
    trusted = folder / f"{other}.crt"
    return Credentials(
        folder / f"{own}.crt", folder / f"{own}.pem", trusted, fingerprint(trusted.read_bytes())
    )


@pytest.fixture
def connect(certificates: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Pair]]:
    monkeypatch.setattr(pinned_connection, "STRANGERS", 0.5)
    made: list[PinnedChannel] = []

    def both(
        first: tuple[str, str] = ("bank", "shop"),
        second: tuple[str, str] = ("shop", "bank"),
        seconds: float = 5.0,
    ) -> Pair:
        address = ("127.0.0.1", free_port())
        with ThreadPoolExecutor() as pool:
            listening = pool.submit(
                PinnedChannel.listen, address, credentials(certificates, *first), "shop", seconds
            )
            dialling = pool.submit(
                PinnedChannel.dial, address, credentials(certificates, *second), "bank", 5.0
            )
            made.extend(e.result() for e in (listening, dialling) if e.exception() is None)
            return listening.result(), dialling.result()

    yield both
    for channel in made:
        channel.close()


def test_messages_both_ways(connect: Callable[..., Pair]) -> None:
    bank, shop = connect()
    for i in range(50):
        bank.send({"rows": i})
    shop.send({"text": "e" * 10000})
    assert [shop.take("rows", 5.0) for _ in range(50)] == list(range(50))
    assert bank.take("text", 5.0) == "e" * 10000


def test_a_process_with_many_open_files(connect: Callable[..., Pair]) -> None:
    with ExitStack() as stack:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard < 4096:
            pytest.skip("more than 4096 open files are not allowed here")
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
        for _ in range(1024):
            stack.callback(os.close, os.dup(0))
        bank, shop = connect()
        bank.send({"rows": 7})
        assert shop.take("rows", 5.0) == 7


def test_long_messages_both_ways_at_once(connect: Callable[..., Pair]) -> None:
    """A party that can write no more reads, however little the network holds."""
    ends = connect()
    for end in ends:
        for buffer in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            end._connection.setsockopt(socket.SOL_SOCKET, buffer, 2**16)
    text = "e" * 2**20
    with ThreadPoolExecutor() as pool:
        for sending in [pool.submit(end.send, {"share": text}) for end in ends]:
            sending.result()
    assert all(end.take("share", 5.0) == text for end in ends)


def test_who_only_writes_is_not_waited_for(
    connect: Callable[..., Pair], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Signs of life do not replace reading."""
    bank, shop = connect()
    monkeypatch.setattr(pinned_channel, "WRITE", 0.5)
    beat, more = pinned_channel._encoded({"beat": 0}), True

    def only_write(_: float) -> bool:
        while more:
            with suppress(ssl.SSLWantWriteError):
                shop._connection.send(beat)
            time.sleep(0.01)
        return True

    def send_much() -> None:
        for _ in range(50):
            bank.send({"share": "e" * 2**20})

    monkeypatch.setattr(shop, "_read", only_write)
    try:
        with pytest.raises(AbortedError, match="it reads nothing") as caught:
            send_much()
        assert caught.value.reason == "disconnected"
    finally:
        more = False


def test_an_answer_is_taken_whatever_follows(
    connect: Callable[..., Pair], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other party answers and is gone before the sender, on a busy machine, goes on."""
    bank, shop = connect()
    put = bank._put

    def put_and_wait(message: pinned_channel.Message) -> None:
        put(message)
        assert shop.take("done", 5.0) == 1
        shop.send({"done": 2})
        shop.close()
        bank._thread.join(5.0)

    monkeypatch.setattr(bank, "_put", put_and_wait)
    bank.send({"done": 1})
    assert bank.take("done", 5.0) == 2


def test_the_end_has_a_name(connect: Callable[..., Pair]) -> None:
    bank, shop = connect()
    bank.close("too few people")
    with pytest.raises(AbortedError, match=r"'bank' .*too few people") as caught:
        shop.take("rows", 5.0)
    assert caught.value.reason == "ended: too few people"


def test_an_interrupted_run_can_be_resumed(connect: Callable[..., Pair]) -> None:
    bank, shop = connect()
    bank.close("interrupted")
    with pytest.raises(AbortedError, match="Run the same command again at both parties"):
        shop.take("rows", 5.0)


@pytest.mark.parametrize("reason", ["\x1b[2Jdone", "done\nDONE: a network", "x" * 41, 7, None])
def test_the_end_is_named_in_plain_words(connect: Callable[..., Pair], reason: object) -> None:
    """Nobody writes to the terminal or to the status file of the other party."""
    bank, shop = connect()
    bank.send({"end": reason})
    with pytest.raises(AbortedError, match="'bank' ended the run: unknown") as caught:
        shop.take("rows", 5.0)
    assert caught.value.reason == "ended: unknown"


def test_messages_that_nobody_reads_do_not_pile_up(connect: Callable[..., Pair]) -> None:
    bank, shop = connect()
    for i in range(pinned_channel.WAITING + 1):
        bank.send({"rows": i})
    while shop._trouble is None:
        time.sleep(0.1)
    with pytest.raises(AbortedError, match="too many messages") as caught:
        shop.check()
    assert caught.value.reason == "broken message"
    assert shop._inbox.qsize() == pinned_channel.WAITING


def test_a_closed_connection(connect: Callable[..., Pair]) -> None:
    bank, shop = connect()
    bank.close()
    with pytest.raises(AbortedError, match="'bank' closed the connection") as caught:
        shop.take("rows", 5.0)
    assert (caught.value.reason, caught.value.silent) == ("disconnected", ("bank",))


def test_silence_is_noticed(connect: Callable[..., Pair], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pinned_channel, "BEAT", 1e6)
    bank, _shop = connect()
    bank._silence = 0.3
    with pytest.raises(AbortedError, match="no sign of life") as caught:
        bank.take("rows", 5.0)
    assert caught.value.reason == "silent"
    with pytest.raises(AbortedError, match=r"'rows' within 0\.2"):
        _shop.take("rows", 0.2)


def test_signs_of_life(connect: Callable[..., Pair], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pinned_channel, "BEAT", 0.1)
    bank, _shop = connect()
    bank._silence = 2.0
    time.sleep(2.5)
    bank.check()


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff",
        b"\x04\x00\x00\x00ABCD",
        b"\x02\x00\x00\x00[]",
        b"\x02\x00\x00\x00{}",
        b"\x0d\x00\x00\x00" + b'{"a":1,"b":2}',
        b"\x00\x00\x10\x00" + b"[" * 2**20,
        b"\x0d\x00\x00\x00" + b'{"rows":[[]]}',  # much memory for few bytes
        b"\x11\x00\x00\x00" + b'{"rows":{"a":[]}}',
        b"\x0c\x00\x00\x00" + b'{"rows":NaN}',
        b"\x11\x00\x00\x00" + b'{"rows":"\\ud800"}',  # what no text can have
    ],
)
def test_garbage_ends_in_a_sentence(connect: Callable[..., Pair], data: bytes) -> None:
    bank, shop = connect()
    shop._outbox.put(data)
    shop._ring()
    with pytest.raises(AbortedError, match="'shop' violated the protocol") as caught:
        bank.take("rows", 5.0)
    assert caught.value.reason == "broken message"


def test_an_unexpected_message(connect: Callable[..., Pair]) -> None:
    bank, shop = connect()
    shop.send({"columns": 2})
    with pytest.raises(AbortedError, match=r"\['columns'\] .*'rows'"):
        bank.take("rows", 5.0)


# If the other end resets the connection within `wrap_socket`, Python leaves the socket to the
# garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("bank", "shop"), ("thief", "bank")),  # a thief dials
        (("thief", "shop"), ("shop", "bank")),  # a thief listens
        (("bank", "thief"), ("shop", "bank")),  # the bank expects someone else
    ],
)
def test_a_wrong_certificate_is_refused(
    connect: Callable[..., Pair], first: tuple[str, str], second: tuple[str, str]
) -> None:
    with pytest.raises(AbortedError, match="certificates is not the one") as caught:
        connect(first, second, 1.5)
    assert caught.value.reason == "wrong certificate"


def test_strangers_neither_end_the_wait_nor_delay_it(certificates: Path) -> None:
    """z14: port scans, silent connections, and a TLS client with no certificate or another one."""
    address = ("127.0.0.1", free_port())
    anyone = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anyone.check_hostname, anyone.verify_mode = False, ssl.CERT_NONE
    thief = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    thief.check_hostname, thief.verify_mode = False, ssl.CERT_NONE
    thief.load_cert_chain(certificates / "thief.crt", certificates / "thief.pem")
    with ThreadPoolExecutor() as pool, ExitStack() as silent:
        listening = pool.submit(
            PinnedChannel.listen, address, credentials(certificates, "bank", "shop"), "shop", 30.0
        )
        for _ in range(50):
            try:
                silent.enter_context(socket.create_connection(address, timeout=1.0))
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
        for _ in range(5):
            silent.enter_context(socket.create_connection(address))
        for data in (b"", b"GET / HTTP/1.1\r\n\r\n", bytes(1000)):
            with socket.create_connection(address, timeout=1.0) as scan:
                scan.sendall(data)
        for context in (anyone, thief):
            raw = silent.enter_context(socket.create_connection(address, timeout=5.0))
            with suppress(OSError), context.wrap_socket(raw) as secured:
                assert secured.recv(1) == b""
        start = time.monotonic()
        given = credentials(certificates, "shop", "bank")
        dialled = PinnedChannel.dial(address, given, "bank", 10.0)
        dialled.send({"rows": 3})
        channel = listening.result()
        assert channel.take("rows", 5.0) == 3
        assert time.monotonic() - start < pinned_connection.HANDSHAKE
        dialled.close()
        channel.close()


def test_a_flood_of_silent_connections_does_not_delay_the_other_party(certificates: Path) -> None:
    address = ("127.0.0.1", free_port())
    with ThreadPoolExecutor() as pool, ExitStack() as silent:
        listening = pool.submit(
            PinnedChannel.listen, address, credentials(certificates, "bank", "shop"), "shop", 30.0
        )
        opened = 0
        while opened < 3 * pinned_connection.HANDSHAKES:
            try:
                silent.enter_context(socket.create_connection(address, timeout=1.0))
                opened += 1
            except (ConnectionRefusedError, TimeoutError):  # it does not listen yet, or is busy
                time.sleep(0.05)
        start = time.monotonic()
        given = credentials(certificates, "shop", "bank")
        dialled = PinnedChannel.dial(address, given, "bank", 25.0)
        dialled.send({"rows": 3})
        channel = listening.result()
        assert channel.take("rows", 5.0) == 3
        assert time.monotonic() - start < pinned_connection.HANDSHAKE / 2
        dialled.close()
        channel.close()


def test_nobody_comes(certificates: Path) -> None:
    address = ("127.0.0.1", free_port())
    given = credentials(certificates, "bank", "shop")
    with pytest.raises(AbortedError, match=r"'shop' did not connect") as caught:
        PinnedChannel.listen(address, given, "shop", 0.3)
    assert caught.value.silent == ("shop",)
    with pytest.raises(AbortedError, match=r"'shop' does not listen"):
        PinnedChannel.dial(address, given, "shop", 0.3)


def test_a_server_that_speaks_no_tls(certificates: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pinned_connection, "STRANGERS", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor() as pool:

        def answer() -> None:
            connection, _ = server.accept()
            connection.recv(1)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            connection.close()

        pool.submit(answer)
        with pytest.raises(AbortedError, match=r"TLS|listen") as caught:
            PinnedChannel.dial(
                server.getsockname(), credentials(certificates, "bank", "shop"), "shop", 1.0
            )
    assert caught.value.reason == "broken message"


def test_only_tls_13(certificates: Path) -> None:
    context = credentials(certificates, "bank", "shop").context(ssl.PROTOCOL_TLS_SERVER)
    assert context.minimum_version == ssl.TLSVersion.TLSv1_3
    with pytest.raises(FormatError, match="not a certificate"):
        fingerprint("no certificate")


@pytest.mark.parametrize("damaged", ["bank.crt", "bank.pem", "shop.crt"])
def test_a_damaged_certificate_or_key_is_named(
    certificates: Path, tmp_path: Path, damaged: str
) -> None:
    for name in ("bank.crt", "bank.pem", "shop.crt"):
        write_private(tmp_path / name, (certificates / name).read_bytes())
    broken = credentials(tmp_path, "bank", "shop")
    (tmp_path / damaged).write_text("junk")
    with pytest.raises(FormatError, match=f"{damaged}.* is damaged"):
        broken.context(ssl.PROTOCOL_TLS_CLIENT)


def test_a_key_that_others_can_read_is_not_used(certificates: Path) -> None:
    given = credentials(certificates, "bank", "shop")
    given.key.chmod(0o644)
    with pytest.raises(FormatError, match="can be read or changed by others"):
        given.context(ssl.PROTOCOL_TLS_CLIENT)
    given.key.chmod(0o600)
