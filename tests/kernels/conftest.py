"""Ctrl-C works in these tests, even when they run in the background."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out, unless asked for, what aims an interrupt by time.

    On a busy machine an interrupt can miss the call it is meant for, and would end the whole run.
    """
    if "ISTHMUS_LONG" in os.environ:
        return
    skip = pytest.mark.skip(reason="aims an interrupt by time: set ISTHMUS_LONG=1")
    for item in items:
        aims = any(word in item.nodeid for word in ("ctrl_c", "interrupt"))
        if "kernels" in item.path.parts and aims:
            item.add_marker(skip)


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """A shell has its background jobs ignore SIGINT; then Python does so too."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
