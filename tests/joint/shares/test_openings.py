"""What two parties open: which run follows from two journals, and each value only once."""

from __future__ import annotations

import queue
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isthmus.errors import AbortedError
from isthmus_joint import FileJournal, MemoryJournal
from isthmus_joint.shares.openings import (
    PIECE,
    HeldShare,
    NextRun,
    Openings,
    PastRun,
    RunJournal,
    next_run,
)

NEW, DONE = PastRun(), PastRun(1, True, 9, {"x": "s"})


def test_the_first_and_the_next_run() -> None:
    assert next_run(NEW, NEW, "shop") == NextRun(1)
    assert next_run(DONE, DONE, "shop") == NextRun(2)
    assert next_run(DONE, NEW, "shop") == NextRun(2)  # the other one lost its journal


def test_an_open_run_is_resumed() -> None:
    began, aligned = PastRun(1, False), PastRun(1, False, 9)
    assert next_run(began, NEW, "shop") == NextRun(1)
    assert next_run(aligned, began, "shop") == NextRun(1)  # both have to align again
    assert next_run(aligned, aligned, "shop") == NextRun(1, 9)
    some = replace(aligned, sessions={"x": "s"})
    more = replace(aligned, sessions={"x": "s", "y": "s"})
    other = replace(aligned, sessions={"x": "s", "y": "t"})
    for pair in ((some, more), (more, some), (more, other), (some, DONE), (DONE, some)):
        assert next_run(*pair, "shop") == NextRun(1, 9, frozenset({"x"}))


def test_a_run_that_one_party_has_closed_is_not_resumed() -> None:
    began, closed = PastRun(1, False, 9, {"x": "s"}), PastRun(1, True, 9, {"x": "s"}, closed=True)
    for pair in ((began, closed), (closed, began), (closed, DONE), (closed, closed)):
        assert next_run(*pair, "shop") == NextRun(2)


@pytest.mark.parametrize(
    ("own", "other", "message"),
    [
        (PastRun(1, False), PastRun(2, False), "different runs"),
        (PastRun(1, False), PastRun(2, True), "different runs"),
        (PastRun(1, False, 9), PastRun(1, False, 8), "different numbers of common people"),
    ],
)
def test_contradictions(own: PastRun, other: PastRun, message: str) -> None:
    for pair in ((own, other), (other, own)):
        with pytest.raises(AbortedError, match=message) as caught:
            next_run(*pair, "shop")
        assert caught.value.reason.startswith("other ")


def test_a_journal_remembers(tmp_path: Path) -> None:
    def opened() -> tuple[FileJournal, RunJournal]:
        journal = FileJournal(tmp_path / "journal")
        return journal, RunJournal(journal)

    file, journal = opened()
    assert journal.past("k2") == NEW
    assert journal.positions(1) is None
    journal.open(1, "k2")
    journal.open(1, "k2")
    journal.align(1, np.array([3, 0, 2**40]), 3)
    journal.hold(1, "x", HeldShare("s", b"old"))
    journal.hold(1, "x", HeldShare("t", b"new"))  # computed again, nothing had left
    journal.spend(1, "x", "c")
    journal.hold(1, "y", HeldShare("t", b"later"))
    file.close()
    file, journal = opened()
    assert journal.past("k2") == PastRun(1, False, 3, {"x": "t", "y": "t"})
    shares = {"x": HeldShare("t", b"new", "c"), "y": HeldShare("t", b"later")}
    assert journal.shares(1) == shares
    assert [share.spent for share in shares.values()] == [True, False]
    positions = journal.positions(1)
    assert positions is not None
    assert positions.tolist() == [3, 0, 2**40]
    assert journal.positions(2) is None
    assert journal.past("another").closed
    journal.end(1, "done")
    assert journal.past("k2").finished
    assert not journal.past("k2").closed
    journal.open(2, "k2")
    assert journal.past("k2") == PastRun(2, False)
    journal.end(2, "too few people")
    assert journal.past("k2") == PastRun(2, True, closed=True)
    assert journal.shares(2) == {}
    file.close()


class Wire:
    """One end of a channel between two threads, which may cut it or change what is sent."""

    def __init__(self, sent: queue.Queue[Any], received: queue.Queue[Any]) -> None:
        self._sent, self._received = sent, received
        self.lies: dict[str, Any] = {}
        self.silent_at = ""

    def send(self, message: dict[str, Any]) -> None:
        ((kind, value),) = message.items()
        if kind == self.silent_at:
            raise AbortedError("killed", reason="killed")
        self._sent.put({kind: self.lies.get(kind, value)})

    def take(self, kind: str, seconds: float) -> Any:
        message = self._received.get(timeout=seconds)
        if kind not in message:
            raise AbortedError("gone", reason="gone")
        return message[kind]

    def close(self) -> None:
        self._sent.put({})


class Party:
    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.journal = RunJournal(MemoryJournal())
        self.ledger: list[str] = []
        self.result: bytes | None = None

    def attempt(self, wire: Wire, run: NextRun, session: str, share: bytes, to: Any) -> None:
        openings = Openings(
            *(self.journal, run, session, wire, 60.0, self.rank, 1, self.ledger.append)  # type: ignore[arg-type]
        )
        try:
            self.result = openings.open(
                "x", share, gives=1 - self.rank in to, takes=self.rank in to
            )
        except AbortedError as error:
            self.result = error.reason.encode()
            wire.close()


SIZE = PIECE + 5


def attempt(
    parties: list[Party], session: str, to: Any = (0, 1), **faults: Any
) -> tuple[NextRun, list[bytes]]:
    """Both parties try to open x, with new shares; `faults` are those of the second party."""
    queues: list[queue.Queue[Any]] = [queue.Queue(), queue.Queue()]
    wires = [Wire(*queues), Wire(*queues[::-1])]
    for name, value in faults.items():
        setattr(wires[1], name, value)
    run = next_run(parties[0].journal.past("k2"), parties[1].journal.past("k2"), "shop")
    shares = [(session + str(p.rank)).encode().ljust(SIZE) for p in parties]
    threads = [
        threading.Thread(target=p.attempt, args=(w, run, session, s, to))
        for p, w, s in zip(parties, wires, shares, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return run, shares


def two() -> list[Party]:
    parties = [Party(0), Party(1)]
    for party in parties:
        party.journal.open(1, "k2")
    return parties


def test_both_learn_the_same_shares() -> None:
    bank, shop = parties = two()
    _, shares = attempt(parties, "s")
    assert (bank.result, shop.result) == (shares[0] + shares[1], shares[1] + shares[0])
    assert bank.ledger == shop.ledger == ["x"]


@pytest.mark.long
@pytest.mark.parametrize(("kind", "spent"), [("commitment", 0), ("share", 2)])
@pytest.mark.parametrize("to", [(0, 1), (1,), (0,)])
def test_after_a_crash_the_shares_are_the_same_or_none_had_left(
    kind: str, spent: int, to: tuple[int, ...]
) -> None:
    """The second party is killed before it sends; in the next attempt it has computed anew."""
    parties = two()
    _, first = attempt(parties, "s", to, silent_at=kind)
    assert sum(p.journal.shares(1)["x"].spent for p in parties) == spent
    run, second = attempt(parties, "t", to)
    # Where both had written their shares, these count, whether or not one of them had left.
    assert run.settled == {"x"}
    assert first != second
    for party in parties:
        taken = first[1 - party.rank] if party.rank in to else b""
        assert party.result == first[party.rank] + taken


def test_a_share_that_only_one_party_had_written_is_computed_again() -> None:
    bank, shop = parties = two()
    bank.journal.hold(1, "x", HeldShare("s", bytes(SIZE)))
    run, shares = attempt(parties, "t")
    assert not run.settled
    assert bank.result == shares[0] + shares[1]
    assert shop.result == shares[1] + shares[0]


@pytest.mark.parametrize("lie", [{"share": "AAAA"}, {"share": 7}, {"commitment": "0" * 64}])
def test_another_share_than_the_committed_one_is_not_used(lie: dict[str, Any]) -> None:
    bank, _ = parties = two()
    attempt(parties, "s", lies=lie)
    assert bank.result == b"other share"
    # Nor is another one accepted in a further attempt, in which the share is the same.
    _, shares = attempt(parties, "t")
    held = bank.journal.shares(1)["x"]
    assert held.data[16:].startswith(b"s0")
    assert bank.result == (
        b"other share" if "commitment" in lie else held.data[16:] + shares[1].replace(b"t", b"s")
    )


def test_a_reflected_commitment_is_not_one_of_the_other_party() -> None:
    bank, _ = parties = two()
    held = HeldShare("s", bytes(16) + b"1" * SIZE)
    for party in parties:
        party.journal.hold(1, "x", held)
    attempt(parties, "t")
    assert bank.result == held.data[16:] * 2
    first, second = (p.journal.shares(1)["x"].commitment for p in parties)
    assert first != second


def test_no_value_is_opened_twice_or_beyond_the_request() -> None:
    party = Party(0)
    queues: list[queue.Queue[Any]] = [queue.Queue(), queue.Queue()]
    openings = Openings(
        *(party.journal, NextRun(1), "s", Wire(*queues), 1.0, 0, 1, party.ledger.append)  # type: ignore[arg-type]
    )
    queues[1].put({})
    with pytest.raises(AbortedError, match="gone"):
        openings.open("x", b"1", gives=True, takes=True)
    for label in ("x", "y"):
        with pytest.raises(AbortedError, match="does not open"):
            openings.open(label, b"1", gives=True, takes=True)
    assert queues[0].qsize() == 1
    assert party.ledger == []
