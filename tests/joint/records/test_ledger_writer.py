"""What a site asks about earlier entries of its ledger, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, final

import pytest
from tests.attacks.malicious import Attacked, drafted_policy
from tests.joint.consortium import Consortium

from isthmus.statistics import Schema
from isthmus_joint import AskMoments, MemoryLedger
from isthmus_joint.records.ledger import Ledger
from isthmus_joint.records.ledger_entries import Entry
from isthmus_joint.records.ledger_writer import LedgerWriter
from isthmus_joint.secure_sum.envelopes import EnvelopeKind

NAMES = ("a", "b")


@final
class CountedReads(Ledger):
    """A ledger that counts how many entries were read from it."""

    def __init__(self) -> None:
        self._inner = MemoryLedger()
        self.reads = 0

    def append(self, event: str, **details: Any) -> Entry:
        self._inner._identity = self._identity
        return self._inner.append(event, **details)

    @property
    def last(self) -> Entry | None:
        return self._inner.last

    def __len__(self) -> int:
        return len(self._inner)

    def read(self, start: int = 0) -> Iterator[Entry]:
        found = self._inner.entries(start)
        self.reads += len(found)
        return iter(found)

    def keep(self, data: bytes) -> str:
        return self._inner.keep(data)

    def kept(self, name: str) -> bytes | None:
        return self._inner.kept(name)

    def secret(self) -> bytes:
        return self._inner.secret()


def asked(world: Attacked, questions: int) -> int:
    """Complete sums and refused questions; return how many entries one site has read for them."""
    ledger = world.ledgers["x"]
    assert isinstance(ledger, CountedReads)
    before = ledger.reads
    for i in range(questions):
        world.round += 1
        world.federation(world.round).moments()
        refused = world.frame(AskMoments(("a",)), size=1 + i)
        assert world.answer("x", refused)[0] in (EnvelopeKind.REFUSE, EnvelopeKind.ADVERT)
    return ledger.reads - before


@pytest.mark.long
def test_a_question_does_not_read_all_earlier_entries_again() -> None:
    """Otherwise each question is slower than the one before, and a busy site slows down."""
    tables = {n: {k: [float(i + j) for i in range(60)] for j, k in enumerate(NAMES)} for n in "xyz"}
    world = Attacked(tables, Schema.continuous(NAMES), dict.fromkeys(NAMES, (0, 100)), rounds=10**4)
    world.ledgers = {n: CountedReads() for n in "xyz"}
    world.join()
    asked(world, 5)
    few = asked(world, 5)
    asked(world, 20)
    assert asked(world, 5) <= few + 5
    # Who joins again checks the signatures of new entries only.
    ledger = world.ledgers["x"]
    assert isinstance(ledger, CountedReads)
    world.join()
    before = ledger.reads
    ledger.bind(world.keys["x"])
    assert ledger.reads == before


def test_entries_of_the_last_year_count(four: Consortium) -> None:
    """The day a year ago counts as a whole; entries that are written later count, too."""
    now = datetime.now(UTC)
    midnight = now.replace(hour=23, minute=59, second=59)
    ledger = MemoryLedger()
    writer = LedgerWriter(four.study, drafted_policy(four.study), ledger)
    for number in range(3):
        ledger.append("opened", study="another", round=number)
        done = number + 1, 0
        assert writer.count_since(now - timedelta(days=1)) == done
        assert writer.count_since(midnight + timedelta(days=2)) == (0, 0)
        assert writer.count_since(midnight) == done


def test_entries_that_are_older_than_a_year_do_not_count(
    four: Consortium, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, start = datetime.now(UTC), datetime.now(UTC) - timedelta(days=400)

    class Then(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return start.astimezone(tz)

    ledger = MemoryLedger()
    writer = LedgerWriter(four.study, drafted_policy(four.study), ledger)
    with monkeypatch.context() as past:
        past.setattr("isthmus_joint.records.ledger_entries.datetime", Then)
        ledger.append("opened", study="another", round=1)
    for number in range(2, 5):
        assert writer.count_since(now - timedelta(days=365)) == (number - 2, 0)
        ledger.append("opened", study="another", round=number)
    assert writer.count_since(now - timedelta(days=500)) == (4, 0)
