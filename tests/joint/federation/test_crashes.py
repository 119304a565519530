"""A site or the coordinator is killed at any message, and the study goes on to the same result."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.attacks.malicious import Attacked

from isthmus.errors import AbortedError
from isthmus.statistics import Schema
from isthmus_joint import Federation, FileJournal, FileLedger, SiteController, Transport, verify
from isthmus_joint.federation.requests.base import StepRequest
from isthmus_joint.federation.requests.expectation import AskExpectation
from isthmus_joint.methods.admm import AskConsensus
from isthmus_joint.secure_sum.terms import to_bytes

NAMES = ("a", "b")
STEPS = 3
KILLS = 200 if "ISTHMUS_LONG" in os.environ else 24
Handler = Callable[[bytes], bytes]
METHODS: dict[str, Callable[[int], StepRequest[Any]]] = {
    "consensus": lambda step: AskConsensus(NAMES, step),
    "expectation": lambda step: AskExpectation(NAMES, step),
}


class KilledError(BaseException):
    """The process of the coordinator is killed."""


class World:
    """Sites and a coordinator with all their files in a folder."""

    def __init__(self, folder: Path, attacked: Attacked, method: str) -> None:
        folder.mkdir()
        self.folder, self.attacked, self.method = folder, attacked, method
        self.names = list(attacked.tables)
        self.handlers: dict[str, Handler] = {}
        self.journals: dict[str, FileJournal] = {}
        for name in self.names:
            self.start(name)

    def start(self, name: str) -> None:
        """Start the process of a site: what is on disk is all it knows."""
        world, ledger = self.attacked, FileLedger(self.folder / f"{name}.jsonl")
        controller = SiteController(
            world.study,
            world.signatures,
            world.keys[name],
            world.extract(name),
            world.policy(),
            ledger,
        )
        if name in self.journals:
            self.journals[name].close()
        self.journals[name] = journal = FileJournal(self.folder / f"{name}.steps")
        self.handlers[name] = controller.site(world.verifier, journal=journal).handle

    def run(self, transport: Transport) -> list[bytes]:
        """All sums of a run, from a coordinator that has just started."""
        world, journal = self.attacked, FileJournal(self.folder / "journal")
        try:
            federation = Federation(
                world.study, world.signatures, world.boss, transport, journal=journal
            )
            steps = map(METHODS[self.method], range(STEPS))
            return [to_bytes(federation._scheduler.ask(request)[0]) for request in steps]
        finally:
            journal.close()

    def active(self) -> tuple[str, ...]:
        """The sites that all sums are over: one set, whatever happened."""
        journal = FileJournal(self.folder / "journal")
        try:
            found = {tuple(r["sites"]) for r in journal.records() if r["event"] == "sum"}
        finally:
            journal.close()
        (sites,) = found
        return sites


class Deadly(Transport):
    """Kills once: a site before or after it has answered, or the coordinator."""

    def __init__(self, world: World, who: str, at: int, *, after: bool) -> None:
        self._world, self._who, self._left, self._after = world, who, at, after

    def exchange(self, outgoing: Mapping[str, bytes]) -> Iterable[bytes]:
        now, self._left = self._left == 0, self._left - 1
        answers = {}
        for count, (name, frame) in enumerate(outgoing.items()):
            killed = now and name == self._who
            if not (killed and not self._after):
                answers[name] = self._world.handlers[name](frame)
            if killed:
                self._world.start(name)
                answers.pop(name, None)
            if killed and self._after:  # a carrier delivers again what was not answered
                answers[name] = self._world.handlers[name](frame)
            # The coordinator dies when one or all sites have got its message.
            last = len(outgoing) - 1 if self._after else 0
            if now and self._who == "coordinator" and count == last:
                raise KilledError
        return answers.values()

    def wait(self, silent: tuple[str, ...]) -> bool:
        return True  # everybody is back at once


def attacked(sites: int, method: str) -> Attacked:
    rng = np.random.default_rng(1)
    tables = {f"s{i}": {k: rng.normal(size=100) for k in NAMES} for i in range(sites)}
    bounds = dict.fromkeys(NAMES, (-9, 9))
    return Attacked(tables, Schema.continuous(NAMES), bounds, requests=(method,), rounds=100)


@pytest.mark.long
@pytest.mark.parametrize("sites", [3, 4])
@pytest.mark.parametrize("method", METHODS)
def test_kills_at_random_messages(method: str, sites: int, tmp_path: Path) -> None:
    """The same sums whoever dies at which message; no ledger is broken, and nothing is refused."""
    parties = attacked(sites, method)
    expected: dict[tuple[str, ...], list[bytes]] = {}
    plain = World(tmp_path / "plain", parties, method)
    expected[tuple(plain.names)] = plain.run(Deadly(plain, "nobody", -1, after=False))
    rng = random.Random(sites)
    for kill in range(KILLS // 4):
        world = World(tmp_path / str(kill), parties, method)
        who = rng.choice(["coordinator", *world.names])
        case = who, rng.randrange(5 * STEPS), rng.random() < 0.5
        transport = Deadly(world, *case[:2], after=case[2])
        for _ in range(2):  # at most one crash, and one run after it
            try:
                sums = world.run(transport)
                break
            except KilledError:
                sums = []
        assert sums == expected.setdefault(world.active(), sums), case
        assert len(sums) == STEPS, case
        assert len(world.active()) >= sites - (who in world.names), case
        for name in world.names:
            entries = verify(world.folder / f"{name}.jsonl")
            assert {e["why"] for e in entries if e["event"] == "refused"} <= {"replay"}, case


def test_a_site_that_never_comes_back_is_named(tmp_path: Path) -> None:
    """Nothing is lost: the run goes on from its journal when the site is back."""
    parties = attacked(3, "consensus")
    world = World(tmp_path / "world", parties, "consensus")

    class Gone(Transport):
        def __init__(self, exchanges: int) -> None:
            self._left = exchanges

        def exchange(self, outgoing: Mapping[str, bytes]) -> Iterable[bytes]:
            self._left -= 1
            there = [n for n in outgoing if n != "s1" or self._left >= 0]
            return [world.handlers[n](outgoing[n]) for n in there]

    with pytest.raises(AbortedError, match="s1"):
        world.run(Gone(7))
    assert len(world.run(Gone(1000))) == STEPS
