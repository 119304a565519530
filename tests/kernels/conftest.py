"""Ctrl-C works in these tests, even when they run in the background."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Compare with the Numba kernels, which are slow to compile, only where that is asked for."""
    if "ISTHMUS_LONG" in os.environ:
        return
    skip = pytest.mark.skip(reason="compares with the Numba kernels: set ISTHMUS_LONG=1")
    for item in items:
        if "kernels" in item.path.parts and "numba" in item.nodeid:
            item.add_marker(skip)


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """A shell has its background jobs ignore SIGINT; then Python does so too."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
