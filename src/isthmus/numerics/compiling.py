"""Tell that kernels are being compiled: once on a machine, and it takes a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def while_compiling(tell: Callable[[], None]) -> Iterator[None]:
    """Call `tell` once if anything is compiled within this context."""
    from numba.core import event

    told = False

    class Listener(event.Listener):  # type: ignore[misc]  # Numba is untyped
        def on_start(self, event: object) -> None:
            nonlocal told
            if not told:
                told = True
                tell()

        def on_end(self, event: object) -> None:
            pass

    with event.install_listener("numba:compile", Listener()):
        yield
