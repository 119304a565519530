"""A site's end: it dials the coordinator, keeps one stream open, and answers questions."""

from __future__ import annotations

import hashlib
import queue
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Self, TypeAlias, final

from isthmus.joint.agreement.lookalikes import printable
from isthmus.joint.transport.base import PING
from isthmus.joint.transport.grpc.credentials import SiteCredentials, grpc_library
from isthmus.joint.transport.grpc.pieces import (
    ADMITTED,
    CARRIER,
    CHANNEL_OPTIONS,
    PATH,
    STUDY,
    VERSION,
    Assembler,
    BrokenPieceError,
    TooLongError,
    pieces,
)

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
    address
        Host and port of the coordinator, for instance ``"example.org:9092"``.
    handle
        Returns the answer to a message. It is called by one thread at a time.
    longest
        Length of the longest message, in bytes.
    reject
        Called when the coordinator sends something that is not a message.
    watch
        Called with a sentence when the connection is made or lost.
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
    return printable(details[:LONGEST_REASON])
