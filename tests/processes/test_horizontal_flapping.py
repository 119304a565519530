"""A network that comes and goes: real sites over gRPC, each behind a link of its own that is cut.

``ISTHMUS_LONG=1 python -m pytest -s tests/processes/test_horizontal_flapping.py`` runs for ten
minutes. `benchmarks/results/federation.md` has its figures.
"""

from __future__ import annotations

import base64
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.joint.transport.flapping_proxy import FlappingProxy
from tests.processes.hospitals import NAMES, Hospitals

import isthmus as ist
from isthmus_joint import ADMM, Federation, FileJournal, Identity, verify
from isthmus_joint.agreement.protocol_catalogue import known_event
from isthmus_joint.federation.requests.fixed_point import FixedPointEncoding
from isthmus_joint.methods.admm import AskConsensus
from isthmus_joint.records.journal import Record
from isthmus_joint.records.ledger_entries import Entry
from isthmus_joint.secure_sum.terms import from_bytes
from isthmus_joint.transport.base import Timeouts

LONG = "ISTHMUS_LONG" in os.environ
SECONDS, UP, DOWN = (600.0, 3.0, 1.0) if LONG else (6.0, 0.8, 0.3)
"""For how long, and how many seconds each link is up and down on average."""

CUTS = SECONDS / (3 * (UP + DOWN))
"""How often each link is cut at the least: the test goes on until then."""

STEPS = 20 if LONG else 5
MODEL = ADMM(rounds=STEPS, rho1=1.0, rho2=0.1, tolerance=0.0)
PATIENT = Timeouts(240.0, 240.0, 300.0)


def require_sums(world: Hospitals, records: Iterable[Record], runs: int) -> list[int]:
    """Every sum is in the journal once, over all sites; step 0 counts sites and rows."""
    sums = [r for r in records if r["event"] == "sum"]
    assert len(sums) == runs * (1 + STEPS)
    assert all(r["sites"] == world.names for r in sums)
    request, grid = AskConsensus(NAMES, 0), FixedPointEncoding.of(world.study)
    for record in sums[:: 1 + STEPS]:
        total = from_bytes(base64.b64decode(record["sum"]), request.limbs)
        assert request.decode(total, grid).tolist() == [len(world.names), len(world.pooled())]
    return [r["round"] for r in sums]


def require_ledgers(world: Hospitals, rounds: list[int]) -> None:
    """Each site has sent one statistic per sum, refused nothing, and the witnesses agree."""
    ledgers: dict[str, tuple[Entry, ...]] = {}
    keys = {n: Identity.load(world.home(n) / "identity.pem").public for n in world.names}
    for name, key in keys.items():
        entries = ledgers[key.hex()] = verify(world.home(name) / "ledger.jsonl", keys=[key])
        sent = [e["round"] for e in entries if known_event(e["event"]).sends_statistic]
        assert sent == rounds
        assert not Counter(e["event"] for e in entries).keys() & {"refused"}
    known = {key: {e["hash"] for e in entries} for key, entries in ledgers.items()}
    witnessed = [head for x in ledgers.values() for e in x for head in e.get("heads", {}).items()]
    assert len(witnessed) >= len(keys) * (len(keys) - 1)
    assert all(head in known[key] for key, head in witnessed)


@pytest.mark.timeout(0)
def test_a_flapping_network_loses_nothing(hospitals: Callable[..., Hospitals]) -> None:
    """Sums of five exchanges and steps of ADMM are exact, and recorded once wherever they should.

    Each run of ADMM asks for one sum, and then for some steps.
    """
    world = hospitals(60, 80, 70, method="admm", rounds=10**6)
    expected = ist.learn(world.inside(), search=MODEL).details.parameters.tobytes()
    transport, path = world.transport(PATIENT), world.folder / "journal"
    with ExitStack() as stack:
        links = [stack.enter_context(FlappingProxy(world.port, UP, DOWN)) for _ in world.names]
        for name, link in zip(world.names, links, strict=True):
            world.start(name, "--coordinator", f"127.0.0.1:{link.port}")
        for name in world.names:
            world.await_site(name)
        journal = FileJournal(path)
        federation = Federation(
            world.study, world.signatures, world.boss, transport, journal=journal
        )
        runs, start, spent = 0, time.monotonic(), time.process_time()
        while time.monotonic() < start + SECONDS or min(x.cuts for x in links) < CUTS:
            assert ist.learn(federation, search=MODEL).details.parameters.tobytes() == expected
            runs += 1
        spent = time.process_time() - spent
        cuts = [link.cuts for link in links]
        journal.close()
    rounds = require_sums(world, FileJournal(path).records(), runs)
    require_ledgers(world, rounds)
    print(f"{SECONDS:.0f} s, {sum(cuts)} cuts, {runs} runs, {runs * STEPS} steps")
    print(f"{spent:.1f} CPU s of the coordinator and the links; {usage_of(world)}")


def usage_of(world: Hospitals) -> dict[str, Any]:
    """CPU seconds and peak memory of each site, from the system's own records."""
    ticks = os.sysconf("SC_CLK_TCK")
    used = {}
    for name in world.names:
        folder = Path(f"/proc/{world.processes[name].pid}")
        if folder.exists():
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            peak = [x for x in (folder / "status").read_text().splitlines() if "VmHWM" in x]
            used[name] = f"{(int(fields[11]) + int(fields[12])) / ticks:.1f} CPU s", *peak
    return used
