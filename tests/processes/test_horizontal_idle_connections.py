"""A stranger holds more idle connections than the coordinator has file descriptors."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import ExitStack

import pytest
from tests.processes.hospitals import PATIENCE, Hospitals, require_pooled

DESCRIPTORS = 256
FEWER = ("bash", "-c", f'ulimit -n {DESCRIPTORS}; exec "$@"', "bash")


@pytest.mark.timeout(900)
def test_a_run_ends_when_the_stranger_has_left(hospitals: Callable[..., Hospitals]) -> None:
    """The stranger delays the run and learns nothing; the coordinator does not end."""
    world = hospitals(60, 80, 70)
    times = ("--gather", "240", "--answer", "120", "--pause", "300")
    out = ("-o", str(world.folder / "network.csv"))
    running = world.coordinate(*times, *out, before=FEWER)
    with ExitStack() as held:
        end = time.monotonic() + PATIENCE
        for _ in range(DESCRIPTORS + 50):
            while True:
                try:
                    idle = socket.create_connection(("127.0.0.1", world.port), 2)
                    break
                except OSError:  # not listening yet
                    assert time.monotonic() < end, world.log("coordinator")
                    time.sleep(0.1)
            held.enter_context(idle)
        for name in world.names:
            world.start(name)
        for name in world.names:
            world.await_text(name, "is ready")
        time.sleep(2)
        assert running.poll() in (None, 0), world.log("coordinator")
    assert running.wait(300) == 0, world.log("coordinator")
    require_pooled(world)
