"""A site behind a socket of its machine, for another system that carries the messages there."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection, Listener
from pathlib import Path

from isthmus_joint.federation.site_controller import SiteService

LOOK = 0.2
"""Seconds between two checks of whether to stop."""

PATIENCE = 30.0
"""Seconds in which a program that has connected must begin to send."""


def serve(site: SiteService, path: Path, until: Callable[[], bool]) -> None:
    """Answer on a Unix socket until a condition is met.

    The socket is for the own user and group, and for those who may enter its folder. A connection
    brings one message, and gets its answer.

    Parameters
    ----------
    path
        The socket. One that a killed process left behind is replaced.
    """
    path.unlink(missing_ok=True)
    before = os.umask(0o117)
    try:
        listener = Listener(str(path), "AF_UNIX")
    finally:
        os.umask(before)
    with listener:
        threading.Thread(target=_accept, args=(listener, site), daemon=True).start()
        while not until():
            time.sleep(LOOK)


def _accept(listener: Listener, site: SiteService) -> None:
    with suppress(OSError):  # the listener is closed
        while True:
            connection = listener.accept()
            threading.Thread(target=_answer, args=(connection, site), daemon=True).start()


def _answer(connection: Connection, site: SiteService) -> None:
    """Answer one message; the bytes are those of the protocol, and nothing is unpickled."""
    with connection, suppress(OSError, EOFError):
        if connection.poll(PATIENCE):
            try:
                message = connection.recv_bytes(site.longest)
            except OSError:
                site.reject()
                raise
            connection.send_bytes(site.handle(message))
