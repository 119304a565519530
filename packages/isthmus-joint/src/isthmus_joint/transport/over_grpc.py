"""The default transport between machines: gRPC over mutual TLS 1.3 with pinned certificates."""

from __future__ import annotations

import hashlib
import os
import queue
import random
import secrets
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Self, TypeAlias, final

from isthmus.errors import FederationError, StudyError
from isthmus_joint.agreement.roster import printable
from isthmus_joint.transport.base import PING, RemoteTransport, SiteState, Timeouts, Watcher, ignore
from isthmus_joint.transport.certificates import alone, fingerprint, require_in_time

# --- TLS of the gRPC transport: version 1.3 only, and only certificates that the study names ----

CIPHER_SUITES_OF_TLS_1_2 = "ECDHE-RSA-AES256-GCM-SHA384"
"""gRPC has no option for the lowest version of TLS. These suites of TLS 1.2 need an RSA key, and
our keys are on elliptic curves. So TLS 1.2 finds no common suite, and TLS 1.3 is not affected."""


SUITES = "GRPC_SSL_CIPHER_SUITES"


def grpc_library() -> Any:
    """Import gRPC with TLS 1.3 only."""
    if "grpc" not in sys.modules:
        os.environ[SUITES] = CIPHER_SUITES_OF_TLS_1_2  # read once, when gRPC is loaded
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # it would write refused connections to stderr
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")
    import grpc

    return grpc


@final
@dataclass(frozen=True)
class CoordinatorCredentials:
    """The coordinator's certificate, and the certificates that it accepts."""

    certificate: bytes
    key: bytes
    sites: Mapping[str, bytes]

    def server(self) -> Any:
        """Return the credentials of the server."""
        grpc = grpc_library()
        pinned = b"".join(map(alone, self.sites.values()))
        pair = (self.key, self.certificate)
        return grpc.ssl_server_credentials([pair], pinned, require_client_auth=True)

    def site_of(self, context: Any) -> str | None:
        """Return the site whose certificate a client has shown; ``None`` for no or another one."""
        shown: Mapping[str, list[bytes]] = context.auth_context()
        if not _is_tls_1_3(shown):
            return None
        certificates = shown.get("x509_pem_cert", [])
        if len(certificates) != 1:
            return None
        actual = fingerprint(certificates[0])
        names = [n for n, pinned in self.sites.items() if fingerprint(pinned) == actual]
        return names[0] if len(names) == 1 else None


def _is_tls_1_3(shown: Mapping[str, list[bytes]]) -> bool:
    """Return whether a connection uses TLS 1.3; gRPC tells it since version 1.85."""
    version = shown.get("ssl_tls_version")
    if version is None:
        return os.environ.get(SUITES) == CIPHER_SUITES_OF_TLS_1_2
    return version == [b"TLSv1.3"]


@final
@dataclass(frozen=True)
class SiteCredentials:
    """A site's certificate, and the only certificate that it accepts."""

    certificate: bytes
    key: bytes
    coordinator: bytes

    def channel(self) -> Any:
        """Return the credentials of a connection."""
        pinned = alone(self.coordinator)
        return grpc_library().ssl_channel_credentials(pinned, self.key, self.certificate)


def require_pinned(certificate: bytes | str, pinned: str, whose: str) -> None:
    """Raise `StudyError` unless a certificate is the one that the study names."""
    if not pinned:
        raise StudyError(
            "The study names no certificates, which connections need. Draft it again with the "
            "cards of its sites."
        )
    if fingerprint(certificate) != pinned:
        raise StudyError(
            f"The certificate of {whose} is not the one that the study names. Get the folder of "
            "the study again from its author."
        )
    require_in_time(certificate, whose)


# --- Messages in pieces --------------------------------------------------------------------------
#
# Messages in numbered pieces, so that flow control works and size limits hold before memory does.
#
# A piece is the number of its message (16 bytes), the length of the whole message and the
# position of the piece (4 bytes each), then its bytes. The answer to a message has the same
# number. A message that is sent again over a new connection starts at its first piece.

HEAD = struct.Struct("<16sII")
PIECE = 2**20
"""Longest piece, in bytes, without its head."""

LONGEST_PIECE = HEAD.size + PIECE


class BrokenPieceError(Exception):
    """The other end sent something that is not the next piece of a message."""


@final
class TooLongError(BrokenPieceError):
    """The other end sends a message that is longer than allowed."""

    def __init__(self, number: bytes, size: int, longest: int) -> None:
        super().__init__(f"a message has {size} bytes; at most {longest} are allowed")
        self.number = number


def numbers() -> Iterator[bytes]:
    """Return numbers for messages; no other process uses them."""
    session = secrets.token_bytes(8)
    for i in count():
        yield session + i.to_bytes(8, "little")


def pieces(number: bytes, message: bytes) -> Iterator[bytes]:
    """Split a message. An empty message is one empty piece."""
    size = len(message)
    view = memoryview(message)
    for start in range(0, max(size, 1), PIECE):
        yield HEAD.pack(number, size, start) + view[start : start + PIECE]


@final
class Assembler:
    """Puts the pieces of one connection together.

    Parameters
    ----------
    wanted
        Whether the message of a number is waited for; the pieces of others are dropped.
    """

    def __init__(self, longest: int, wanted: Callable[[bytes], bool] = lambda _: True) -> None:
        self._longest = longest
        self._wanted = wanted
        self._number = b""
        self._parts: list[memoryview] = []
        self._size = 0

    def add(self, piece: bytes) -> tuple[bytes, bytes] | None:
        """Take the next piece; return number and message if it is the last one of a message.

        Raises
        ------
        TooLongError
            The message is too long. Its other pieces may follow.
        BrokenPieceError
            It is not the next piece.
        """
        if len(piece) < HEAD.size:
            raise BrokenPieceError("a piece is too short")
        number, total, start = HEAD.unpack_from(piece)
        if total > self._longest:
            raise TooLongError(number, total, self._longest)
        if start == 0:
            self._number, self._size = number, 0
            self._parts.clear()
        if number != self._number or start != self._size:
            raise BrokenPieceError("a piece is not the next one of its message")
        part = memoryview(piece)[HEAD.size :]
        self._size += len(part)
        if self._size > total or (len(part) == 0 and total > 0):
            raise BrokenPieceError("a piece does not fit its message")
        if self._wanted(number):
            self._parts.append(part)
        if self._size < total:
            return None
        message = b"".join(self._parts)
        self._parts.clear()
        return (number, message) if len(message) == total else None


SERVER_NAME = "localhost"
"""A name in every coordinator's certificate. The certificate is pinned, so any name will do."""

SERVICE = "isthmus.Carrier"
METHOD = "Connect"
PATH = f"/{SERVICE}/{METHOD}"
STUDY, VERSION = "isthmus-study", "isthmus-carrier"
"""Keys of the metadata with which a site opens its stream."""

CARRIER = "1"
"""Version of what is sent over a stream."""

ADMITTED = ((VERSION, CARRIER),)
"""The metadata with which the coordinator lets a site in."""

KEEPALIVE = 10.0
"""Seconds without traffic after which an end asks whether the other one is still there."""

DEAD = 10.0
"""Seconds without an answer to that, after which a connection counts as broken."""

COMMON_OPTIONS = (
    ("grpc.max_send_message_length", LONGEST_PIECE),
    ("grpc.max_receive_message_length", LONGEST_PIECE),
    ("grpc.keepalive_time_ms", int(1000 * KEEPALIVE)),
    ("grpc.keepalive_timeout_ms", int(1000 * DEAD)),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
)
SERVER_OPTIONS = (
    *COMMON_OPTIONS,
    ("grpc.so_reuseport", 0),  # a second coordinator must not take over half of the connections
    ("grpc.http2.min_ping_interval_without_data_ms", int(500 * KEEPALIVE)),
    ("grpc.max_concurrent_streams", 4),
)
CHANNEL_OPTIONS = (
    *COMMON_OPTIONS,
    ("grpc.ssl_target_name_override", SERVER_NAME),
    ("grpc.enable_retries", 0),
    ("grpc.use_local_subchannel_pool", 1),  # a new channel is a new connection
)


# --- A site's end: it dials the coordinator, keeps one stream open, and answers questions -------

FIRST_DELAY, LONGEST_DELAY = 0.1, 5.0
"""Seconds before the site dials again: doubled after each attempt, up to the second one."""

CHECK = 0.2
"""Seconds between two checks of whether to stop."""

LONGEST_REASON = 200

NO_MESSAGE = b"\0"
"""Stands for a question that was not read. It is no message of any protocol."""

_Outbox: TypeAlias = "queue.Queue[Iterator[bytes] | None]"


@final
class GrpcSite:
    """Answers the coordinator over a stream, and dials again whenever the stream breaks.

    The site listens on no port. The last answer is kept: if the connection broke before it arrived,
    the coordinator sends the same question under the same number and gets the same bytes again.

    Parameters
    ----------
    handle
        Returns the answer to a message. It is called by one thread at a time.
    reject
        Called when the coordinator sends something that is not a message.
    """

    def __init__(
        self,
        address: str,
        credentials: SiteCredentials,
        study: bytes,
        handle: Callable[[bytes], bytes],
        longest: int,
        *,
        reject: Callable[[], None] = lambda: None,
        watch: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._grpc = grpc_library()
        self._address = address
        self._handle = handle
        self._longest = longest
        self._reject = reject
        self._watch = watch
        self._said = ""
        self._metadata = ((STUDY, study.hex()), (VERSION, CARRIER))
        self._last: tuple[bytes, bytes, bytes] | None = None
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._channel: Any = None
        self._credentials = credentials.channel()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def run(self, until: Callable[[], bool]) -> None:
        """Keep answering until a condition is met."""
        while not until():
            self._stopped.wait(CHECK)

    def stop(self) -> None:
        """Stop answering, and close the connection."""
        with self._lock:
            self._stopped.set()
            if self._channel is not None:
                self._channel.close()
        self._thread.join(10.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # --- the thread that answers ---------------------------------------------------------------

    def _work(self) -> None:
        delay = FIRST_DELAY
        while not self._stopped.is_set():
            connected, reason = self._session()
            if self._stopped.is_set():
                return
            delay = FIRST_DELAY if connected else min(2 * delay, LONGEST_DELAY)
            self._say(f"not connected to {self._address}: {reason}; trying again")
            # Sites that lost the same coordinator do not come back in step.
            self._stopped.wait(delay * random.uniform(0.5, 1.0))

    def _session(self) -> tuple[bool, str]:
        """Answer over one stream until it ends; return whether it was open, and why it ended.

        Each stream has a connection of its own: gRPC refuses clients that reset many streams.
        """
        outbox: _Outbox = queue.Queue(1)
        connected = False
        with self._lock:
            if self._stopped.is_set():
                return False, ""
            self._channel = channel = self._grpc.secure_channel(
                self._address, self._credentials, CHANNEL_OPTIONS
            )
        try:
            call = channel.stream_stream(PATH)(_sent(outbox), metadata=self._metadata)
            # Waits until the coordinator has let the site in, or sent it away.
            connected = set(ADMITTED) <= {tuple(pair) for pair in call.initial_metadata()}
            if connected:
                self._say(f"connected to {self._address}")
            for number, message in self._questions(call):
                self._send(outbox, pieces(number, self._answer(number, message)), call)
            return connected, "the coordinator ended the connection"
        except self._grpc.RpcError as error:
            return connected, _reason(error)
        except BrokenPieceError as error:
            self._reject()
            return False, str(error)  # as if it had not been open: the site does not hurry back
        except Exception as error:  # noqa: BLE001 - nothing may end the thread that dials again
            return connected, f"the site failed to answer ({type(error).__name__})"
        finally:
            channel.close()
            with suppress(queue.Empty):
                outbox.get_nowait()
            outbox.put_nowait(None)

    def _questions(self, call: Any) -> Iterator[tuple[bytes, bytes]]:
        """Yield number and text of each question, and `NO_MESSAGE` for one that is too long.

        The answer is then a refusal. A site that ended the connection instead would get the same
        question again over the next one.
        """
        assembler, refused = Assembler(self._longest), b""
        for piece in call:
            try:
                complete = assembler.add(piece)
            except TooLongError as error:
                if error.number != refused:
                    refused = error.number
                    self._say(str(error))
                    yield refused, NO_MESSAGE
                continue
            if complete is not None:
                yield complete

    def _send(self, outbox: _Outbox, answer: Iterator[bytes], call: Any) -> None:
        """Wait until the answer before was taken: else answers that nobody reads fill memory."""
        while call.is_active() and not self._stopped.is_set():
            with suppress(queue.Full):
                outbox.put(answer, timeout=CHECK)
                return

    def _answer(self, number: bytes, message: bytes) -> bytes:
        if message == PING:
            return PING
        content = hashlib.sha256(message).digest()
        if self._last is not None and self._last[:2] == (number, content):
            return self._last[2]
        answer = self._handle(message)
        self._last = number, content, answer
        return answer

    def _say(self, text: str) -> None:
        if text != self._said:
            self._said = text
            self._watch(text)


def _sent(outbox: _Outbox) -> Iterator[bytes]:
    while (message := outbox.get()) is not None:
        yield from message


def _reason(error: Any) -> str:
    """Return one line about why a stream ended."""
    details = str(error.details() or error.code())
    if "CERTIFICATE_VERIFY_FAILED" in details:
        return "the certificate at this address is not the one that the study names"
    if "Cancelling all calls" in details or "Socket closed" in details:
        return "the coordinator ended"
    if "Connection refused" in details:
        return "nothing listens there, as between runs"
    if "DNS resolution failed" in details:
        return "the name of the machine is not known here"
    return printable(details[:LONGEST_REASON])


# --- The coordinator's end: it listens on one port, and the sites keep a stream open to it ------

SPARE_THREADS = 8
GRACE = 1.0
"""Seconds for open streams to end when the transport stops."""

"""Seconds between two checks of which sites are not connected."""


@final
@dataclass(eq=False)
class _Question:
    """A message to a site. Its answer is ``None`` until it arrives."""

    number: bytes
    site: str
    message: bytes
    missed: float
    """Since when the site was not connected, if it is not."""

    answer: bytes | None = None
    broken: bool = False

    @property
    def is_done(self) -> bool:
        return self.broken or self.answer is not None


@final
@dataclass(eq=False)
class _Stream:
    """An open stream of a site, with the questions that are still to be sent over it."""

    context: Any
    outbox: queue.SimpleQueue[_Question | None] = field(default_factory=queue.SimpleQueue)

    def close(self) -> None:
        self.outbox.put(None)


@final
class GrpcTransport(RemoteTransport):
    """Sites that connect by gRPC over mutual TLS 1.3, each with its pinned certificate.

    A question whose stream breaks is sent again over the next one, until the time for the answer
    or for a new connection is over. A site that has answered it already gives the same answer
    again. So a network that comes and goes loses nothing.

    Parameters
    ----------
    host, port
        The address to listen on; port 0 is any free one, which `port` tells.
    study
        SHA-256 of the study. Sites that serve another study are sent away.
    """

    def __init__(
        self,
        host: str,
        port: int,
        credentials: CoordinatorCredentials,
        study: bytes,
        longest: int,
        timeouts: Timeouts = Timeouts(),
        watch: Watcher = ignore,
    ) -> None:
        super().__init__(timeouts, watch)
        self._grpc = grpc_library()
        self._credentials = credentials
        self._study = study.hex()
        self._longest = longest
        self._numbers = numbers()
        self._changed = threading.Condition()
        self._streams: dict[str, _Stream] = {}
        self._questions: dict[bytes, _Question] = {}
        self._server = self._listening(host, port)

    def _listening(self, host: str, port: int) -> Any:
        grpc = self._grpc
        threads = 2 * len(self._credentials.sites) + SPARE_THREADS
        server = grpc.server(ThreadPoolExecutor(max_workers=threads), options=SERVER_OPTIONS)
        handler = grpc.stream_stream_rpc_method_handler(self._connected)
        service = grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler})
        server.add_generic_rpc_handlers((service,))
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            self.port: int = server.add_secure_port(address, self._credentials.server())
        except RuntimeError as error:
            raise FederationError(
                f"The coordinator cannot listen on {address}. Check that the address belongs to "
                "this machine and that no other program uses the port."
            ) from error
        server.start()
        return server

    def stop(self) -> None:
        """Close all streams and stop listening."""
        self._server.stop(GRACE).wait(2 * GRACE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # --- streams of sites: each in a thread of its own -----------------------------------------

    def _connected(self, requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        """Serve the stream of a site: send questions, while another thread reads the answers."""
        site = self._admitted(context)
        stream = _Stream(context)
        if not context.add_callback(stream.close):
            return
        context.send_initial_metadata(ADMITTED)
        reader = threading.Thread(target=self._read, args=(site, stream, requests), daemon=True)
        reader.start()
        self._join(site, stream)
        try:
            while (question := stream.outbox.get()) is not None:
                if question.number in self._questions:
                    yield from pieces(question.number, question.message)
        finally:
            with self._changed:
                if self._streams.get(site) is stream:
                    del self._streams[site]
                    for question in self._questions.values():
                        if question.site == site:
                            question.missed = time.monotonic()

    def _admitted(self, context: Any) -> str:
        """Return the site at the other end, or end the stream."""
        code = self._grpc.StatusCode
        metadata = dict(context.invocation_metadata())
        site = self._credentials.site_of(context)
        if site is None:
            context.abort(code.UNAUTHENTICATED, "the study does not name this certificate")
        if metadata.get(VERSION) != CARRIER:
            context.abort(code.FAILED_PRECONDITION, "the coordinator has another version")
        if metadata.get(STUDY) != self._study:
            context.abort(code.FAILED_PRECONDITION, "the coordinator runs another study")
        assert site is not None
        return site

    def _join(self, site: str, stream: _Stream) -> None:
        """Make this the stream of a site, and send over it what is not answered yet."""
        with self._changed:
            older = self._streams.pop(site, None)
            self._streams[site] = stream
            for question in self._questions.values():
                if question.site == site and not question.is_done:
                    stream.outbox.put(question)
        if older is not None:
            older.context.cancel()

    def _read(self, site: str, stream: _Stream, requests: Iterable[bytes]) -> None:
        def wanted(number: bytes) -> bool:
            question = self._questions.get(number)
            return question is not None and question.site == site

        assembler = Assembler(self._longest, wanted)
        try:
            for piece in requests:
                if (complete := assembler.add(piece)) is not None:
                    self._answered(site, *complete)
        except BrokenPieceError:
            self._break(site)
            stream.context.cancel()
        except Exception:  # noqa: BLE001 - the stream has ended, for whatever reason
            stream.close()

    def _answered(self, site: str, number: bytes, answer: bytes) -> None:
        with self._changed:
            question = self._questions.get(number)
            if question is not None and question.site == site and not question.is_done:
                question.answer = answer
                self._changed.notify_all()

    def _break(self, site: str) -> None:
        """Abandon the questions to a site that sent an invalid reply."""
        with self._changed:
            for question in self._questions.values():
                if question.site == site:
                    question.broken = True
            self._changed.notify_all()

    # --- the coordinator's own thread ----------------------------------------------------------

    def _online(self) -> set[str]:
        with self._changed:
            return set(self._streams)

    def _some_done(self, waiting: list[_Question], seconds: float) -> list[_Question]:
        """Return the questions that are done, as soon as there are any or after some time."""
        with self._changed:
            self._changed.wait_for(lambda: any(q.is_done for q in waiting), min(seconds, CHECK))
            latest = time.monotonic() - self._timeouts.reconnect
            for question in waiting:
                if question.site not in self._streams and question.missed < latest:
                    question.broken = True
            return [q for q in waiting if q.is_done]

    def _deliver(
        self, outgoing: Mapping[str, bytes], seconds: float, watch: Watcher
    ) -> Iterator[bytes]:
        unknown = outgoing.keys() - self._credentials.sites.keys()
        if unknown:
            raise FederationError(
                f"There are no certificates of the sites {sorted(unknown)}; there are those of "
                f"{sorted(self._credentials.sites)}."
            )
        start = time.monotonic()
        end = start + seconds
        waiting = [_Question(next(self._numbers), n, m, start) for n, m in outgoing.items()]
        for question in waiting:
            watch(question.site, SiteState.ASKED)
        asked = list(waiting)
        with self._changed:
            for question in asked:
                self._questions[question.number] = question
                if question.site in self._streams:
                    self._streams[question.site].outbox.put(question)
        try:
            while waiting and (left := end - time.monotonic()) > 0:
                done = self._some_done(waiting, left)
                waiting = [q for q in waiting if q not in done]
                for question in done:
                    if question.answer is None:
                        watch(question.site, SiteState.SILENT)
                        continue
                    watch(question.site, SiteState.ANSWERED)
                    yield question.answer
            for question in waiting:
                watch(question.site, SiteState.SILENT)
        finally:
            with self._changed:
                for question in asked:
                    del self._questions[question.number]
