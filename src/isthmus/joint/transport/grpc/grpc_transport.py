"""The coordinator's end: it listens on one port, and the sites keep a stream open to it."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Self, final

from isthmus.errors import FederationError
from isthmus.joint.transport.base import RemoteTransport, SiteState, Timeouts, Watcher, ignore
from isthmus.joint.transport.grpc.credentials import CoordinatorCredentials, grpc_library
from isthmus.joint.transport.grpc.pieces import (
    ADMITTED,
    CARRIER,
    METHOD,
    SERVER_OPTIONS,
    SERVICE,
    STUDY,
    VERSION,
    Assembler,
    BrokenPieceError,
    numbers,
    pieces,
)

SPARE_THREADS = 8
GRACE = 1.0
"""Seconds for open streams to end when the transport stops."""

CHECK = 0.2
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
    longest
        Length of the longest answer, in bytes.
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
