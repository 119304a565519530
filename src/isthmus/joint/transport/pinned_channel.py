"""A connection of two parties by mutual TLS, where each trusts exactly one certificate.

It carries short messages: greetings, numbers of rows, and signs of life. A message is sent as its
length in four bytes, then its JSON form: a key and a number, a text of ASCII, or a few texts by
name. Data never pass through it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import queue
import re
import select
import socket
import ssl
import struct
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, final

from isthmus.errors import AbortedError, FormatError
from isthmus.joint.agreement.identity import require_private

Message: TypeAlias = Mapping[str, Any]

LENGTH = struct.Struct("<I")

BEAT = 2.0
"""Seconds between two signs of life."""

SILENCE = 20.0
"""Seconds without a sign of life after which the other party is considered dead."""

LONGEST = 2**21
"""Length of the longest message, in bytes."""

HANDSHAKE = 10.0
"""Seconds for the TLS handshake."""

WRITE = 5.0
"""Seconds for writing one message."""

POLL = 0.05
"""Seconds between two checks for messages to send."""

STRANGERS = 30.0
"""Seconds that a party still dials where something with a wrong certificate answers."""

HANDSHAKES = 64
"""Maximum number of handshakes at the same time; the oldest one ends when there are more."""

WAITING = 64
"""Maximum number of messages that were received and not read yet."""

TEXTS = 8
"""Maximum number of texts in a message. Nested values would take many times their length."""

REASON = re.compile("[a-z :]{1,40}")
"""How the other party may say why it ends a run."""


@final
@dataclass(frozen=True)
class Credentials:
    """The certificates of both ends.

    Attributes
    ----------
    fingerprint
        The SHA-256 of the other party's certificate, as the study names it.
    """

    certificate: Path
    key: Path
    trusted: Path
    fingerprint: str

    def context(self, side: int) -> ssl.SSLContext:
        """Return the TLS settings of one side."""
        made = ssl.SSLContext(side)
        made.minimum_version = ssl.TLSVersion.TLSv1_3
        made.check_hostname = False  # the certificate itself is pinned
        made.verify_mode = ssl.CERT_REQUIRED
        require_private(self.key)
        try:
            made.load_cert_chain(self.certificate, self.key)
            made.load_verify_locations(self.trusted)
        except ssl.SSLError:
            raise FormatError(
                f"The certificate {self.certificate}, its key {self.key} or the other party's "
                f"certificate {self.trusted} is damaged, or the key does not belong to the "
                "certificate. Copy them again from the folder in which they were created."
            ) from None
        return made

    def accepts(self, connection: ssl.SSLSocket) -> bool:
        """Return whether the other end has shown the pinned certificate."""
        shown = connection.getpeercert(binary_form=True) or b""
        return "sha256:" + hashlib.sha256(shown).hexdigest() == self.fingerprint


@final
class PinnedChannel:
    """Exchanges messages with the other party, and notices when it is gone.

    Open one with `listen` or `dial`.

    Parameters
    ----------
    connection
        A connection whose certificate was checked.
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
        # One thread reads and writes: a TLS connection is not made for two.
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    @classmethod
    def listen(
        cls, address: tuple[str, int], credentials: Credentials, other: str, seconds: float
    ) -> PinnedChannel:
        """Wait for the other party to connect; `AbortedError` if it does not come."""
        context = credentials.context(ssl.PROTOCOL_TLS_SERVER)
        end = time.monotonic() + seconds
        came: queue.Queue[ssl.SSLSocket] = queue.Queue()
        refused: deque[ssl.SSLError] = deque(maxlen=1)
        shaking: deque[ssl.SSLSocket] = deque()

        def greet(connection: ssl.SSLSocket) -> None:
            """Do the handshake beside the others: whoever is silent delays nobody."""
            failure: OSError | None = None
            try:
                _shake_hands(connection, credentials)
            except OSError as error:
                failure = error
            try:
                shaking.remove(connection)
            except ValueError:  # it was the oldest one, and was ended
                connection.close()
                return
            if failure is None:
                came.put(connection)
            elif isinstance(failure, ssl.SSLError) and _is_certificate(failure):
                refused.append(failure)

        with socket.create_server(address, backlog=2 * HANDSHAKES) as listener:
            listener.settimeout(POLL)
            while time.monotonic() < end and came.empty():
                try:
                    connection = _wrapped(listener.accept()[0], context, server=True)
                except OSError:
                    continue
                if len(shaking) >= HANDSHAKES:
                    with contextlib.suppress(OSError, IndexError):  # it has just ended by itself
                        socket.socket.shutdown(shaking.popleft(), socket.SHUT_RDWR)
                shaking.append(connection)
                threading.Thread(target=greet, args=(connection,), daemon=True).start()
        if not came.empty():
            return cls(came.get(), other)
        if refused:
            raise _refused(other, refused[0])
        raise AbortedError(
            f"{other!r} did not connect within {seconds:g} seconds. Run the command again when it "
            "is ready.",
            silent=(other,),
            reason="silent",
        )

    @classmethod
    def dial(
        cls, address: tuple[str, int], credentials: Credentials, other: str, seconds: float
    ) -> PinnedChannel:
        """Connect to the other party, and try again until it listens."""
        context = credentials.context(ssl.PROTOCOL_TLS_CLIENT)
        end = time.monotonic() + seconds
        refused: ssl.SSLError | None = None
        while True:
            try:
                raw = socket.create_connection(address, timeout=HANDSHAKE)
                connection = _wrapped(raw, context, server=False)
                _shake_hands(connection, credentials)
                return cls(connection, other)
            except OSError as error:
                if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
                    if refused is None:
                        end = min(end, time.monotonic() + STRANGERS)
                    # A refused certificate can also look like a connection that was closed.
                    if refused is None or not _is_certificate(refused):
                        refused = error
                why = _short(error)
            if time.monotonic() >= end:
                break
            time.sleep(0.5)
        if refused is not None:
            raise _refused(other, refused)
        raise AbortedError(
            f"{other!r} does not listen at {address[0]}:{address[1]} ({why}). Run the command "
            "again when it is ready.",
            silent=(other,),
            reason="silent",
        )

    def send(self, message: Message) -> None:
        """Send a message soon."""
        self._outbox.put(_encoded(message))
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
            self._outbox.put(_encoded({"end": reason}))
        self._closing.set()
        self._thread.join(2 * WRITE)

    def _work(self) -> None:
        beat = 0.0
        try:
            self._connection.settimeout(WRITE)
            while not (self._closing.is_set() and self._outbox.empty()):
                if time.monotonic() - beat > BEAT:
                    beat = time.monotonic()
                    self._outbox.put(_encoded({"beat": 0}))
                while not self._outbox.empty():
                    self._connection.sendall(self._outbox.get())
                if not self._read():
                    self._fail(self._gone(None))
                    return
        except (ValueError, RecursionError):
            self._fail(self._broken("it sent bytes that are not a message, or too many messages"))
        except OSError as error:
            self._fail(self._gone(error))
        finally:
            self._connection.close()

    def _read(self) -> bool:
        """Wait a moment for bytes, and read complete messages; ``False`` at the end."""
        if not self._connection.pending():
            readable, _, _ = select.select([self._connection], [], [], POLL)
            if not readable:
                return True
        self._connection.settimeout(0)
        try:
            part = self._connection.recv(2**16)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return True
        finally:
            self._connection.settimeout(WRITE)
        self._buffer += part
        while (message := self._complete()) is not None:
            self._heard = time.monotonic()
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
        why = "closed the connection" if error is None else f"is disconnected ({_short(error)})"
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
    return AbortedError(
        f"{other!r} ended the run: {named}. Its own message says more.", reason=f"ended: {named}"
    )


def _wrapped(raw: socket.socket, context: ssl.SSLContext, *, server: bool) -> ssl.SSLSocket:
    """Prepare a connection for TLS, or close it if the other end is gone."""
    raw.settimeout(HANDSHAKE)
    try:
        raw.getpeername()  # wrap_socket would not close a connection that is gone already
        return context.wrap_socket(raw, server_side=server, do_handshake_on_connect=False)
    except OSError:
        raw.close()
        raise


def _shake_hands(connection: ssl.SSLSocket, credentials: Credentials) -> None:
    """Do the handshake, including a first byte each way: TLS 1.3 checks clients only then."""
    try:
        connection.do_handshake()
    except OSError:
        _close_after_reading(connection)
        raise
    try:
        if not credentials.accepts(connection):
            raise ssl.SSLCertVerificationError("the certificate is not the pinned one")
        connection.sendall(b"\x01")
        if connection.recv(1) != b"\x01":
            raise ssl.SSLError("the other end does not greet")
        connection.settimeout(None)
    except ValueError as error:  # the other end left before the handshake
        connection.close()
        raise ConnectionResetError("the other end left during the handshake") from error
    except OSError:
        connection.close()
        raise


def _close_after_reading(connection: ssl.SSLSocket) -> None:
    """Close a connection so that the other end learns why.

    Where something was not read, closing would also take away the message that says so.
    """
    with contextlib.suppress(OSError), connection:
        connection.settimeout(1.0)
        connection.shutdown(socket.SHUT_WR)
        for _ in range(16):
            if not socket.socket.recv(connection, 4096):
                break


def _is_certificate(error: ssl.SSLError) -> bool:
    """Return whether a handshake failed for the certificate, and not by a port scan."""
    text = str(error).upper()
    return (
        isinstance(error, ssl.SSLCertVerificationError)
        or "CERTIFICATE" in text
        or "UNKNOWN_CA" in text
    )


def _short(error: OSError) -> str:
    reason = getattr(error, "reason", None)
    return str(reason or error.strerror or error)[:120]


def _refused(other: str, error: ssl.SSLError) -> AbortedError:
    if not _is_certificate(error):
        return AbortedError(
            f"What listens at the address of {other!r} does not speak TLS 1.3 ({_short(error)}). "
            "Check the address and the port.",
            reason="broken message",
        )
    return AbortedError(
        f"The connection to {other!r} was refused: one of the two certificates is not the one that "
        f"the study names ({_short(error)}). Compare the cards of both parties with the study; "
        "someone else may be answering at this address.",
        reason="wrong certificate",
    )
