"""Ctrl-C while the real engine computes: both parties end soon, and the run can be resumed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.processes.companies import Companies

from isthmus.cli import ExitCode
from isthmus_joint import verify

PROMISED = 2.0
"""Seconds; a machine that runs other tests beside gets more."""

LATE = PROMISED if "ISTHMUS_LONG" in os.environ else 5 * PROMISED


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "comparing identifiers",
            marks=pytest.mark.skipif("ISTHMUS_LONG" not in os.environ, reason="half a minute"),
        ),
        "computing on secret shares",
    ],
)
def test_an_interrupt_ends_both_parties(companies: Callable[..., Companies], text: str) -> None:
    world = companies()
    bank = world.start("bank", stand_in=False)
    # The engine of the shop stops before it computes, so that this run does not end by itself.
    world.start("shop", extra={"STAND_IN_STOP": "0"})
    world.await_text("bank", text, 120.0)
    time.sleep(0.1)  # into the middle of it, wherever that is
    engines = [int(p) for p in children_of(bank.pid)]
    start = time.monotonic()
    bank.send_signal(signal.SIGINT)
    assert bank.wait(60) == ExitCode.INTERRUPTED
    ended = time.monotonic() - start
    assert world.processes["shop"].wait(60) == ExitCode.ABORTED
    told = time.monotonic() - start
    print(f"interrupted after {ended:.2f} s, told after {told:.2f} s")
    assert ended < LATE
    assert told < 2 * LATE
    assert not [pid for pid in engines if Path(f"/proc/{pid}").exists()]
    assert world.status("bank")["state"] == "interrupted"
    assert world.status("shop")["reason"] == "ended: interrupted"
    for name in ("bank", "shop"):
        verify(world.home(name) / "ledger.jsonl")
        assert world.journal(name)[0] == {"run": 1, "request": "private k2"}


def children_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
