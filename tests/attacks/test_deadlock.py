"""Two failures at a bad moment, and no sum can be formed in the study any more.

Sites that have helped to unmask a sum over A, B and C unmask no other one. The coordinator had
forgotten who was asked, and asked all four for ever. It now writes the active set down before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pytest
from tests.attacks.malicious import Attacked

from isthmus.errors import AbortedError
from isthmus.statistics import Schema
from isthmus_joint import Federation, InProcess, Journal, MemoryJournal, Transport
from isthmus_joint.records.journal import Record

SITES = ("A", "B", "C", "D")


def world() -> Attacked:
    rng = np.random.default_rng(1)
    tables = {n: {k: rng.normal(size=100) for k in ("a", "b")} for n in SITES}
    return Attacked(tables, Schema.continuous(["a", "b"]), dict.fromkeys("ab", (-9, 9)))


def federation(
    attacked: Attacked, journal: Journal, lost: Iterable[tuple[str, int]] = ()
) -> Federation:
    transport = InProcess({n: s.handle for n, s in attacked.sites.items()}, lost=lost)
    return Federation(
        attacked.study,
        attacked.signatures,
        attacked.boss,
        transport,
        journal=journal,
        without=None,
    )


def test_the_same_sites_are_asked_again() -> None:
    """D is down at first, and C dies after it consented, before it reveals."""
    attacked, journal = world(), MemoryJournal()
    with pytest.raises(AbortedError):
        federation(attacked, journal, [("D", 0), ("C", 4)]).moments()
    assert [r["sites"] for r in journal.records() if r["event"] == "active"] == [["A", "B", "C"]]
    again = federation(attacked, journal)  # all four are back
    assert again.moments().n == 300
    assert again.active == ("A", "B", "C")
    assert not attacked.why("A")


class CrashError(BaseException):
    """The process of the coordinator is killed."""


class Dying(Transport):
    """Delivers a number of exchanges, all answers of the last one included, and dies."""

    def __init__(self, attacked: Attacked, exchanges: int, down: str) -> None:
        sites = {n: s.handle for n, s in attacked.sites.items() if n != down}
        self._inner, self._left, self._down = InProcess(sites), exchanges, down

    def exchange(self, outgoing: Mapping[str, bytes]) -> Iterable[bytes]:
        present = {n: f for n, f in outgoing.items() if n != self._down}
        answers = list(self._inner.exchange(present))
        self._left -= 1
        if self._left == 0:
            raise CrashError
        return answers


@pytest.mark.long
@pytest.mark.parametrize("exchanges", range(1, 6))
def test_a_coordinator_that_crashes_goes_on(exchanges: int) -> None:
    attacked, journal = world(), MemoryJournal()
    with pytest.raises(CrashError):
        Federation(
            attacked.study,
            attacked.signatures,
            attacked.boss,
            Dying(attacked, exchanges, "D"),
            journal=journal,
            without=None,
        ).moments()
    again = federation(attacked, journal)
    expected = SITES[:3] if exchanges == 5 else SITES
    assert again.moments().n == 100 * len(expected)
    assert again.active == expected
    assert not any(attacked.why(site) for site in SITES)


def test_the_set_is_on_disk_before_any_share_is_requested() -> None:
    attacked = world()

    class Failing(Journal):
        def append(self, record: Record) -> None:
            if record["event"] == "active":
                raise CrashError

        def records(self) -> tuple[Record, ...]:
            return ()

    with pytest.raises(CrashError):
        federation(attacked, Failing()).moments()
    assert all("unmasked" not in attacked.events(site) for site in SITES)
