"""Messages in numbered pieces, so that flow control works and size limits hold before memory does.

A piece is the number of its message (16 bytes), the length of the whole message and the position of
the piece (4 bytes each), then its bytes. The answer to a message has the same number. A message
that is sent again over a new connection starts at its first piece.
"""

from __future__ import annotations

import secrets
import struct
from collections.abc import Callable, Iterator
from itertools import count
from typing import final

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
