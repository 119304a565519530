"""Ctrl-C that is neither lost nor heard at a moment when it would crash the process."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeAlias, final

_Handler: TypeAlias = Callable[[int, FrameType | None], Any]


@contextmanager
def held_back() -> Iterator[None]:
    """Hold Ctrl-C back until the block has ended, for instance while a package is imported.

    A `KeyboardInterrupt` raised while an extension module is initialised can crash the process.
    Outside the main thread nothing is changed, because no signal handler runs there.
    """
    old = _handler()
    if old is None:
        yield
        return
    frames: list[FrameType | None] = []
    signal.signal(signal.SIGINT, lambda _, frame: frames.append(frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, old)
        if frames:
            old(signal.SIGINT, frames[0])


@final
class Interrupts:
    """Whether a signal handler raised `KeyboardInterrupt`."""

    def __init__(self) -> None:
        self.raised = False


@contextmanager
def recorded() -> Iterator[Interrupts]:
    """Record every `KeyboardInterrupt` that Ctrl-C raises during the block.

    Python ignores an exception in a callback of the garbage collector or of a weak reference, and
    JAX has both. The record tells that Ctrl-C was pressed although nobody saw the exception.
    """
    interrupts = Interrupts()
    old = _handler()
    if old is None:
        yield interrupts
        return
    call = old

    def handle(number: int, frame: FrameType | None) -> None:
        try:
            call(number, frame)
        except KeyboardInterrupt:
            interrupts.raised = True
            raise

    try:
        signal.signal(signal.SIGINT, handle)
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, old)


def _handler() -> _Handler | None:
    """Return the Python function that handles Ctrl-C; None if there is none that we may replace."""
    if threading.current_thread() is not threading.main_thread():
        return None
    handler = signal.getsignal(signal.SIGINT)
    return handler if callable(handler) else None
