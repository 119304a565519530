"""A drafted study has noise: rounds over gRPC, a killed coordinator, and what sites spend."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from tests.processes.hospitals import Hospitals

from isthmus.io import read_edge_list
from isthmus_joint import verify
from isthmus_joint.noise.accounting import Spending

pytest.importorskip("opendp")

TIMES = ("--gather", "240", "--answer", "120", "--pause", "300")


def test_a_killed_coordinator_goes_on_with_the_same_rounds(
    hospitals: Callable[..., Hospitals],
) -> None:
    world = hospitals(900, 1100, 1000, draft=["--epsilon", "1", "--expected-rows", "3000"])
    for name in world.names:
        world.start(name)
    out = world.folder / "network.csv"
    world.coordinate(*TIMES, "-o", str(out))
    world.await_text("s0", "connected")
    patience = time.monotonic() + 120
    while time.monotonic() < patience and not out.exists():
        journals = list((world.folder / "board").glob("study-*/journal"))
        if journals and sum("sum" in r for r in world.records()) >= 2:
            break
        time.sleep(0.02)
    world.kill("coordinator")
    running = world.coordinate(*TIMES, "-o", str(out))
    assert running.wait(300) == 0, world.log("coordinator")
    edges = {frozenset(e) for e in read_edge_list(out).skeleton().edges}
    assert edges == {frozenset("ab"), frozenset("bc")}
    privacy = world.study.privacy
    assert privacy is not None
    for name in world.names:
        entries = verify(world.home(name) / "ledger.jsonl")
        assert not [e for e in entries if e["event"] == "refused"]
        assert Spending.of(entries).total <= privacy.rho * (1 + 1e-9)
