"""A library call that cannot be cut into steps, in a thread of its own."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Generic, TypeVar, final

T = TypeVar("T")


class _AbandonedError(Exception):
    """Nobody waits for the call any more."""


@final
class _ThreadGate:
    """State shared by the caller and the thread, without a reference to the caller."""

    def __init__(self) -> None:
        self._wanted, self.finished = threading.Event(), threading.Event()
        self._abandoned = False

    def want(self) -> None:
        self._wanted.set()

    def rest(self) -> None:
        self._wanted.clear()

    def abandon(self) -> None:
        self._abandoned = True
        self._wanted.set()

    def check(self) -> None:
        """Pause the thread unless the caller waits for it."""
        self._wanted.wait()
        if self._abandoned:
            raise _AbandonedError


@final
class BackgroundCall(Generic[T]):
    """A call that works only while somebody waits for it.

    Parameters
    ----------
    call
        Function of one argument: a function that it must call often, which pauses the call while
        nobody waits, and ends it by an exception when this object is no longer used. It must not
        refer to this object.
    """

    def __init__(self, call: Callable[[Callable[[], None]], T]) -> None:
        self._baton = _ThreadGate()
        self._value: list[T] = []
        self._error: list[BaseException] = []
        # When the interpreter exits, a thread that waits is best left alone.
        weakref.finalize(self, self._baton.abandon).atexit = False
        threading.Thread(
            target=_work, args=(call, self._baton, self._value, self._error), daemon=True
        ).start()

    def wait(self, seconds: float) -> bool:
        """Wait for at most this long; return whether the call has returned."""
        self._baton.want()
        try:
            return self._baton.finished.wait(seconds)
        finally:
            self._baton.rest()

    def value(self) -> T:
        """Return the value of a call that has returned, or raise its exception."""
        if self._error:
            raise self._error[0]
        return self._value[0]


def _work(
    call: Callable[[Callable[[], None]], T],
    baton: _ThreadGate,
    value: list[T],
    error: list[BaseException],
) -> None:
    try:
        baton.check()
        value.append(call(baton.check))
    except _AbandonedError:
        return
    except BaseException as problem:  # noqa: BLE001 - raised again where the value is asked for
        error.append(problem)
    baton.finished.set()
