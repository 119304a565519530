"""A channel of two parties over a pinned connection: greetings and signs of life.

It carries short messages: greetings, numbers of rows, and signs of life. A message is sent as its
length in four bytes, then its JSON form: a key and a number, a text of ASCII, or a few texts by
name. Data never pass through it.
"""

from __future__ import annotations

import json
import queue
import re
import select
import socket
import ssl
import struct
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeAlias, final

from isthmus.errors import AbortedError
from isthmus_joint.transport import pinned_connection
from isthmus_joint.transport.pinned_connection import Credentials, described

Message: TypeAlias = Mapping[str, Any]

LENGTH = struct.Struct("<I")

BEAT = 2.0
"""Seconds between two signs of life."""

SILENCE = 20.0
"""Seconds without a sign of life after which the other party is considered dead."""

LONGEST = 2**21
"""Length of the longest message, in bytes."""

WRITE = 5.0
"""Seconds in which the other party must have read something, while a message is being written."""

WAITING = 64
"""Maximum number of messages that were received and not read yet."""

TEXTS = 8
"""Maximum number of texts in a message. Nested values would take many times their length."""

REASON = re.compile("[a-z :]{1,40}")
"""How the other party may say why it ends a run."""


@final
class PinnedChannel:
    """Exchanges messages with the other party, and notices when it is gone.

    Open one with `listen` or `dial`.

    Parameters
    ----------
    silence
        Seconds without a sign of life after which the other party is considered dead.
    """

    def __init__(self, connection: ssl.SSLSocket, other: str, silence: float = SILENCE) -> None:
        self._connection = connection
        self._other = other
        self._silence = silence
        self._inbox: queue.Queue[Message] = queue.Queue()
        self._outbox: queue.Queue[bytes] = queue.Queue()
        self._buffer = bytearray()
        self._heard = time.monotonic()
        self._trouble: AbortedError | None = None
        self._closing = threading.Event()
        self._bell, self._ringing = socket.socketpair()
        self._bell.settimeout(0.0)
        # One thread reads and writes: a TLS connection is not made for two.
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    @classmethod
    def listen(
        cls, address: tuple[str, int], credentials: Credentials, other: str, seconds: float
    ) -> PinnedChannel:
        """Wait for the other party to connect; `AbortedError` if it does not come."""
        return cls(pinned_connection.listen(address, credentials, other, seconds), other)

    @classmethod
    def dial(
        cls, address: tuple[str, int], credentials: Credentials, other: str, seconds: float
    ) -> PinnedChannel:
        """Connect to the other party, and try again until it listens."""
        return cls(pinned_connection.dial(address, credentials, other, seconds), other)

    def send(self, message: Message) -> None:
        """Send a message; when this returns, it has left this process.

        What happens afterwards is no error: the other party may have waited for this message alone.
        """
        self.check()
        self._put(message)
        written = self._outbox.all_tasks_done
        with written:
            while not written.wait_for(lambda: not self._outbox.unfinished_tasks, 0.2):
                self.check()

    def take(self, kind: str, seconds: float) -> Any:
        """Return the value of the next message, which must have one key of this name."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                message = self._inbox.get(timeout=0.2)
            except queue.Empty:
                self.check()
                continue
            if "end" in message:
                raise ended_by(self._other, message["end"])
            if list(message) != [kind]:
                sent = [key[:40] for key in message]
                raise self._broken(f"it sent {sent} where {kind!r} was expected")
            return message[kind]
        raise AbortedError(
            f"{self._other!r} did not send {kind!r} within {seconds:g} seconds.",
            silent=(self._other,),
            reason="silent",
        )

    def check(self) -> None:
        """Raise `AbortedError` if the other party ended the run, is gone or is silent."""
        for message in list(self._inbox.queue):
            if "end" in message:
                raise ended_by(self._other, message["end"])
        if self._trouble is not None:
            raise self._trouble
        if time.monotonic() - self._heard > self._silence:
            raise AbortedError(
                f"{self._other!r} gave no sign of life for {self._silence:g} seconds. When it is "
                "back, run the same command again at both parties: the run is resumed.",
                silent=(self._other,),
                reason="silent",
            )

    def seems_silent(self) -> bool:
        """Whether several signs of life did not come; `check` says so if none comes at all."""
        return time.monotonic() - self._heard > self._silence / 4

    def close(self, reason: str | None = None) -> None:
        """Close the connection; say why, if the run did not come to its end."""
        if self._closing.is_set():
            return
        if reason is not None:
            self._put({"end": reason})
        self._closing.set()
        self._ring()
        self._thread.join(2 * WRITE)

    def _put(self, message: Message) -> None:
        self._outbox.put(_encoded(message))
        self._ring()

    def _ring(self) -> None:
        """Wake the thread. If it has ended, or has not answered many rings, there is no need."""
        with suppress(OSError):
            self._bell.send(b"!")

    def _work(self) -> None:
        beat = -BEAT
        try:
            self._connection.settimeout(0.0)
            while not (self._closing.is_set() and self._outbox.empty()):
                # What has come is read first: writing to a party that is gone would lose it.
                if not self._read(beat + BEAT - time.monotonic()):
                    self._fail(self._gone(None))
                    return
                if time.monotonic() - beat >= BEAT:
                    beat = time.monotonic()
                    self._write(_encoded({"beat": 0}))
                while not self._outbox.empty():
                    self._write(self._outbox.get())
                    self._outbox.task_done()
        except (ValueError, RecursionError):
            self._fail(self._broken("it sent bytes that are not a message, or too many messages"))
        except OSError as error:
            self._fail(self._gone(error))
        finally:
            for each in (self._connection, self._bell, self._ringing):
                each.close()

    def _write(self, data: bytes) -> None:
        """Write a message, and read meanwhile: both parties may be writing long ones."""
        rest, end = memoryview(data), time.monotonic() + WRITE
        while rest:
            try:
                rest = rest[self._connection.send(rest) :]
                end = time.monotonic() + WRITE
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                ready = _ready(WRITE, {self._connection: select.POLLIN | select.POLLOUT})
                if time.monotonic() > end:
                    raise TimeoutError("it reads nothing") from None
                if ready and not self._read(0.0):
                    raise ConnectionResetError("it closed the connection") from None

    def _read(self, seconds: float) -> bool:
        """Wait for bytes or the bell, and read complete messages; ``False`` at the end."""
        if not self._connection.pending():
            ends = self._connection, self._ringing
            ready = _ready(max(seconds, 0.0), dict.fromkeys(ends, select.POLLIN))
            if self._ringing.fileno() in ready:
                self._ringing.recv(2**16)
            if self._connection.fileno() not in ready:
                return True
        try:
            part = self._connection.recv(2**16)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return True
        self._heard = time.monotonic()
        self._buffer += part
        while (message := self._complete()) is not None:
            if self._inbox.qsize() >= WAITING:
                raise ValueError("there are too many messages")
            if "beat" not in message:
                self._inbox.put(message)
        return bool(part)

    def _complete(self) -> Message | None:
        """Take the first complete message out of the buffer."""
        head = LENGTH.size
        if len(self._buffer) < head:
            return None
        (size,) = LENGTH.unpack(self._buffer[:head])
        if size > LONGEST:
            raise ValueError("the message is too long")
        if len(self._buffer) < head + size:
            return None
        message = json.loads(bytes(self._buffer[head : head + size]))
        del self._buffer[: head + size]
        if (
            not isinstance(message, dict)
            or len(message) != 1
            or not all(map(_is_flat, message.values()))
        ):
            raise ValueError("it is not a message")
        return message

    def _fail(self, trouble: AbortedError) -> None:
        if self._trouble is None and not self._closing.is_set():
            self._trouble = trouble

    def _gone(self, error: OSError | None) -> AbortedError:
        why = "closed the connection" if error is None else f"is disconnected ({described(error)})"
        return AbortedError(
            f"{self._other!r} {why}. When it is back, run the same command again at both parties: "
            "the run is resumed.",
            silent=(self._other,),
            reason="disconnected",
        )

    def _broken(self, what: str) -> AbortedError:
        return AbortedError(
            f"{self._other!r} violated the protocol: {what}. Check that both parties have the same "
            "version.",
            reason="broken message",
        )


def _ready(seconds: float, events: Mapping[socket.socket, int]) -> set[int]:
    """Wait, and return which sockets are ready; `select` would allow no numbers above 1,023."""
    poll = select.poll()
    for each, event in events.items():
        poll.register(each, event)
    return {number for number, _ in poll.poll(1000 * seconds)}


def _encoded(message: Message) -> bytes:
    data = json.dumps(dict(message), separators=(",", ":"), allow_nan=False).encode()
    return LENGTH.pack(len(data)) + data


def _is_flat(value: object) -> bool:
    """Whether a message may have this value, which takes about as much memory as its text."""
    if value is None or type(value) is int:
        return True
    texts = value.values() if isinstance(value, dict) else [value]
    return len(texts) <= TEXTS and all(isinstance(text, str) and text.isascii() for text in texts)


def ended_by(other: str, reason: object) -> AbortedError:
    """Return the error of a run that the other party ended."""
    named = reason if isinstance(reason, str) and REASON.fullmatch(reason) else "unknown"
    then = "Its own message says more."
    if named == "interrupted":
        then = "Run the same command again at both parties to resume."
    return AbortedError(f"{other!r} ended the run: {named}. {then}", reason=f"ended: {named}")
