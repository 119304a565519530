"""An engine that listens late, behind something that accepts connections at once."""

from __future__ import annotations

from collections.abc import Callable

from tests.processes.companies import Companies
from tests.processes.recording_proxy import proxies_of

from isthmus.cli import ExitCode


def test_an_engine_that_listens_late(companies: Callable[..., Companies]) -> None:
    """A proxy or a firewall accepts a connection although the engine behind it is not there yet."""
    world = companies()
    engine, greeting = proxies_of(world)
    more = ("--message-timeout", "20")
    world.start("bank", *more, extra={"STAND_IN_LATE": "3"})
    world.start("shop", "--connect", f"127.0.0.1:{engine.port}", *more)
    ends = world.ends()
    for proxy in (engine, greeting):
        proxy.close()
    assert ends == (ExitCode.DONE, ExitCode.DONE)
    assert engine.back[0]  # the engines have met there
