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
    """The other end sends a message that is longer than allowed.

    Parameters
    ----------
    number
        Number of the message.
    """

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
    longest
        Length of the longest message, in bytes.
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
