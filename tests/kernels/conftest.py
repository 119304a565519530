"""Tests that aim an interrupt by time are left out unless asked for."""

from __future__ import annotations

import os

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
