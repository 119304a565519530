"""Engines that connect at different times, behind something that accepts connections at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.processes.companies import Companies
from tests.processes.recording_proxy import Recording

from isthmus.cli import ExitCode
from isthmus.joint.shares.two_party import address_of

pytest.importorskip("spu")


@pytest.mark.parametrize("late", ["3"])
def test_an_engine_that_connects_late(companies: Callable[..., Companies], late: str) -> None:
    """The first message of the alignment must not overtake that of the connection.

    A proxy or a firewall accepts a connection although the engine behind it does not listen yet.
    Then one engine is connected seconds before the other one.
    """
    world = companies()
    ports = {}
    for name in ("bank", "shop"):
        card = (world.home(name) / "card.toml").read_text()
        ports[name] = address_of(card.split('address = "')[1].split('"')[0])[1]
    to_bank, to_shop = Recording(ports["bank"]), Recording(ports["shop"])
    greeting = Recording(ports["bank"] + 1, to_bank.port + 1)
    more = ("--message-timeout", "20")
    world.start("bank", "--connect", f"127.0.0.1:{to_shop.port}", *more)
    world.start(
        "shop", "--connect", f"127.0.0.1:{to_bank.port}", *more, extra={"STAND_IN_LATE": late}
    )
    ends = world.ends()
    for proxy in (to_bank, to_shop, greeting):
        proxy.close()
    assert ends == (ExitCode.DONE, ExitCode.DONE), world.log("bank") + world.log("shop")
