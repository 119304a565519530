"""Services on Unix domain sockets: who may connect, and what is no message."""

from __future__ import annotations

import socket
import struct
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from isthmus.joint.transport.base import PING
from isthmus_flower.sockets import Service, ask, receive


@pytest.fixture
def path() -> Iterator[Path]:
    """A short path: sockets have no long ones."""
    with tempfile.TemporaryDirectory(prefix="ist") as name:
        yield Path(name) / "home" / "socket"


def test_what_is_no_message_is_counted_and_the_service_goes_on(path: Path) -> None:
    rejected: list[None] = []
    service = Service(path, lambda data: data[::-1], 100, lambda: rejected.append(None))
    service.start()
    with ExitStack() as stack:
        stack.callback(service.close)
        for i in range(20):  # some that say nothing, or half of something
            idle = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            idle.connect(str(path))
            idle.sendall(struct.pack("<I", 100)[: i % 5] + b"half"[: max(i % 5 - 4, 0) * 4])
        for size in (2**31, 2**32 - 1):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as huge:
                huge.connect(str(path))
                huge.sendall(struct.pack("<I", size) + b"x")
                with suppress(ConnectionResetError):
                    assert receive(huge, 100) is None
        assert ask(path, PING, 0, 5.0) == PING
        assert ask(path, b"abc", 100, 5.0) == b"cba"
    assert len(rejected) == 2
    assert ask(path, PING, 0, 1.0) is None


def test_only_the_same_user_can_connect(path: Path) -> None:
    service = Service(path, lambda data: data, 100)
    modes = path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777
    service.close()
    assert modes == (0o600, 0o700)
    assert not path.exists()
