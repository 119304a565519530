"""The connection of the two engines: messages of bytes over a pinned TLS connection."""

from __future__ import annotations

import hmac
import select
import socket
import ssl
import struct
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import AbortedError, ArgumentError, FederationError
from isthmus_joint.transport.pinned_connection import Credentials, dial, listen

CONNECTING = 30.0
"""Seconds for the two engines to connect, once both have started."""

NO_ENGINE = "no engine"

LENGTH = struct.Struct("<Q")

LONGEST = 2**26
"""Length of the longest message, in bytes. An unchanged program sends a few MB at once."""

WAITING = LONGEST
"""Bytes that may wait to be received. While there are more, a party that sends reads nothing."""

PIECE = 2**18
"""Bytes that are given to the connection at once, or taken from it."""

WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Link(Protocol):
    """A connection to the other party, as protocols need it."""

    rank: int

    def send(self, data: bytes) -> None:
        """Send a message to the other party."""

    def receive(self) -> bytes:
        """Wait for the next message of the other party."""


@final
@dataclass(frozen=True)
class LinkOptions:
    """How to connect to the engine of the other party.

    Attributes
    ----------
    session
        Name of the connection, the same at both parties.
    rank
        Position of this party in the study: 0 or 1. The first one waits for the second to connect.
    address
        Host and port: where the first party listens, and where the second one reaches it.
    certificate, key
        Files with the certificate and private key of this party.
    trusted
        File with the one certificate that the other party must have.
    fingerprint
        The SHA-256 of that certificate.
    message_timeout
        Seconds to wait for a message of the other engine.
    """

    session: str
    rank: int
    address: tuple[str, int]
    certificate: str
    key: str
    trusted: str
    fingerprint: str
    message_timeout: float


def broken() -> AbortedError:
    """Return the error for messages that an unchanged program would not send."""
    return AbortedError(
        "The other party sent something that does not fit the protocol: its version differs, or "
        "its program was changed. Nothing more was sent.",
        reason="broken message",
    )


def _stopped(error: Exception) -> AbortedError:
    """Return the error for a link that broke."""
    why = (str(error).splitlines() or [type(error).__name__])[0][:120]
    return AbortedError(
        "The computation with the other party stopped: its engine did not answer in time, or sent "
        f"something that cannot be read ({why}). Nothing more was revealed."
    )


@final
class EngineLink:
    """A connection to the engine of the other party. It is used by one thread.

    Parties may send several MB to each other at the same time: who cannot send any more reads.

    Parameters
    ----------
    message_timeout
        Seconds for a message to be sent, or to arrive.
    """

    def __init__(self, connection: socket.socket, rank: int, message_timeout: float) -> None:
        connection.settimeout(0.0)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.rank = rank
        self._connection = connection
        self._message_timeout = message_timeout
        self._received = bytearray()
        self._piece = memoryview(bytearray(PIECE))

    def send(self, data: bytes) -> None:
        """Send a message, or raise `AbortedError` if the other party does not read it in time."""
        if len(data) > LONGEST:
            raise ArgumentError(f"A message has at most {LONGEST} bytes, got {len(data)}.")
        try:
            self._write(memoryview(LENGTH.pack(len(data)) + data))
        except OSError as error:
            raise _stopped(error) from error

    def receive(self) -> bytes:
        """Return the next message, or raise `AbortedError` if none comes in time."""
        try:
            return self._next()
        except OSError as error:
            raise _stopped(error) from error

    def close(self) -> None:
        """Close the connection. What was sent still arrives."""
        if isinstance(self._connection, ssl.SSLSocket):
            with suppress(OSError, ValueError):
                self._connection.unwrap()  # says that nothing more comes, and waits for no answer
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)
        self._connection.close()

    def _write(self, rest: memoryview) -> None:
        end = time.monotonic() + self._message_timeout
        while rest:
            try:
                # After TLS could not write all of a piece, it must be given the same one again.
                rest = rest[self._connection.send(rest[:PIECE]) :]
            except WOULD_BLOCK:
                reading = len(self._received) <= WAITING
                if self._wait(end, reading=reading, writing=True):
                    self._read()

    def _next(self) -> bytes:
        end = time.monotonic() + self._message_timeout
        head = LENGTH.size
        while True:
            size = self._announced()
            if size is not None and len(self._received) >= head + size:
                message = bytes(memoryview(self._received)[head : head + size])
                del self._received[: head + size]
                return message
            if not self._read():
                self._wait(end, reading=True, writing=False)

    def _announced(self) -> int | None:
        """Return the length of the next message, if it is known."""
        if len(self._received) < LENGTH.size:
            return None
        size: int = LENGTH.unpack_from(self._received)[0]
        if size > LONGEST:
            raise broken()
        return size

    def _read(self) -> bool:
        """Take what has come; ``False`` if there is nothing."""
        try:
            size = self._connection.recv_into(self._piece)
        except WOULD_BLOCK:
            return False
        if not size:
            raise ConnectionResetError("it closed the connection")
        self._received += self._piece[:size]
        return True

    def _wait(self, end: float, *, reading: bool, writing: bool) -> bool:
        """Wait until the connection is ready; return whether there is something to read."""
        ends = [self._connection]
        left = max(0.0, end - time.monotonic())
        readable, writable, _ = select.select(
            ends if reading else [], ends if writing else [], [], left
        )
        if not readable and not writable:
            raise TimeoutError(f"no answer within {self._message_timeout:g} seconds")
        return bool(readable)


def connect(options: LinkOptions) -> EngineLink:
    """Connect to the engine of the other party, or raise `AbortedError` after half a minute."""
    certificate, key, trusted = map(Path, (options.certificate, options.key, options.trusted))
    credentials = Credentials(certificate, key, trusted, options.fingerprint)
    meet = listen if options.rank == 0 else dial
    try:
        connection = meet(options.address, credentials, "the engine", CONNECTING)
    except (FederationError, OSError) as error:
        host, port = options.address
        raise AbortedError(
            "The engine of the other party "
            + ("did not connect to" if options.rank == 0 else "does not answer at")
            + f" {host}:{port}, or its certificate is not the one that the study names. Check "
            "address, firewall and certificate.",
            reason=NO_ENGINE,
        ) from error
    link = EngineLink(connection, options.rank, options.message_timeout)
    try:
        link.send(options.session.encode())
        if not hmac.compare_digest(link.receive(), options.session.encode()):
            raise broken()
    except AbortedError:
        link.close()
        raise
    return link


def connect_local(rank: int, port: int, message_timeout: float = 60.0) -> EngineLink:
    """Connect two engines on this computer without encryption, for tests and benchmarks.

    The first one waits for the second one at this port.
    """
    if rank not in (0, 1):
        raise ArgumentError(f"The rank must be 0 or 1, got {rank!r}.")
    address = ("127.0.0.1", port)
    if rank == 0:
        with socket.create_server(address) as listener:
            listener.settimeout(CONNECTING)
            return EngineLink(listener.accept()[0], rank, message_timeout)
    end = time.monotonic() + CONNECTING
    while True:
        try:
            return EngineLink(socket.create_connection(address), rank, message_timeout)
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


# --- Additive shares as arrays: linear computations need no message -----------------------------
#
# A secret is the sum of two ring elements, one at each party. Each party can add, select and sum
# its own, which is the same on the secret. Only products and comparisons need messages. Counts
# and scores have one word of 64 bits. Polynomials are evaluated with two words, low and high, in
# a last axis.

Words: TypeAlias = NDArray[np.uint64]
"""Ring elements of 64 bits, or of 128 with a last axis of two."""

FRACTION = 30
"""Bits of the fraction of a score."""

HALF = np.uint64(32)
LOW = np.uint64(2**32 - 1)


def encoded(value: Any) -> Words:
    """Return numbers as scores of 64 bits, for the party that knows them."""
    numbers: NDArray[np.int64] = np.rint(np.asarray(value) * 2.0**FRACTION).astype(np.int64)
    return numbers.view(np.uint64)


def decoded(words: NDArray[Any]) -> NDArray[np.float64]:
    """Return scores as numbers, from the sum of both shares."""
    numbers: NDArray[np.float64] = words.view(np.int64) / 2.0**FRACTION
    return numbers


# --- Ring elements of 128 bits -------------------------------------------------------------------


def wide(numbers: Sequence[int]) -> Words:
    """Return whole numbers as ring elements of 128 bits."""
    pairs = [(x & 2**64 - 1, x >> 64 & 2**64 - 1) for x in numbers]
    return np.array(pairs, dtype=np.uint64).reshape(-1, 2)


def added(first: Words, second: Words) -> Words:
    """Return sums of elements of 128 bits."""
    total = first + second
    total[..., 1] += total[..., 0] < second[..., 0]
    return total


def negative(words: Words) -> Words:
    """Return the elements of 128 bits that add up to zero with these."""
    opposite = ~words
    opposite[..., 0] += np.uint64(1)
    opposite[..., 1] += opposite[..., 0] == 0
    return opposite


def total(words: Words, axis: int) -> Words:
    """Return sums of elements of 128 bits along an axis, counted from the first."""
    # Halves of words: their sums do not exceed a word with fewer than 2^32 elements.
    lower, upper = (half.sum(axis=axis, dtype=np.uint64) for half in (words & LOW, words >> HALF))
    middle = upper[..., 0] + (lower[..., 0] >> HALF)
    result: Words = np.empty_like(lower)
    result[..., 0] = lower[..., 0] & LOW | middle << HALF
    result[..., 1] = lower[..., 1] + (upper[..., 1] << HALF) + (middle >> HALF)
    return result


def shifted(words: Words, places: NDArray[Any]) -> Words:
    """Return elements of 128 bits times a power of two, each below 2^64."""
    left = places.astype(np.uint64)
    result = np.empty(np.broadcast_shapes(words.shape[:-1], left.shape) + (2,), dtype=np.uint64)
    result[..., 0] = words[..., 0] << left
    # A word moved by 64 places is not zero, so it is moved twice.
    above = words[..., 0] >> np.uint64(1) >> (np.uint64(63) - left)
    result[..., 1] = words[..., 1] << left | above
    return result


def divided(words: Words, places: int) -> Words:
    """Return elements of 128 bits divided by a power of two below 2^64 and rounded down."""
    right, left = np.uint64(places), np.uint64(63 - places)
    result = words >> right
    result[..., 0] |= words[..., 1] << left << np.uint64(1)
    return result


def truncated(words: Words, places: int, rank: int) -> Words:
    """Return shares of secrets that are divided by a power of two, wrong by at most one.

    A secret below 2^k in size becomes a random number with probability 2^(k - 127): if shares of
    one that is not negative do not exceed the ring, or those of one that is negative do.
    """
    return divided(words, places) if rank == 0 else negative(divided(negative(words), places))
