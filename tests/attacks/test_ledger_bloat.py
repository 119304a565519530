"""A coordinator fills the disk and the memory of a site with questions that are refused."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from tests.attacks.malicious import Attacked

from isthmus.errors import LedgerError
from isthmus.statistics import Schema
from isthmus_joint import FileLedger, MemoryLedger, verify
from isthmus_joint.records.ledger_entries import LONGEST_ENTRY, canonical, chained
from isthmus_joint.secure_sum.envelopes import EnvelopeKind

ROUNDS = 12
NAMES = ("a", "b")
ENTRY = 2500
"""More bytes than an entry about a refused question has."""


@pytest.mark.long
@pytest.mark.parametrize("byte", [b"\0", b'"', "\u4e00".encode()])
def test_a_refused_question_of_a_megabyte_is_written_as_an_excerpt(
    tmp_path: Path, byte: bytes
) -> None:
    rng = np.random.default_rng(1)
    tables = {n: {k: rng.normal(size=100) for k in NAMES} for n in ("x", "y", "z")}
    bounds = dict.fromkeys(NAMES, (-9.0, 9.0))
    world = Attacked(tables, Schema.continuous(NAMES), bounds, rounds=ROUNDS)
    path = tmp_path / "ledger.jsonl"
    world.ledgers["x"] = FileLedger(path)
    world.join()
    raw = byte * (2**20 // len(byte))
    for _ in range(ROUNDS):
        assert world.answer("x", world.frame(raw))[0] is EnvelopeKind.REFUSE
    (first, *_), size = verify(path), path.stat().st_size
    assert first["bytes"] >= len(raw)
    assert len(first["asked"]) == 64
    assert size < ROUNDS * ENTRY
    for _ in range(3 * ROUNDS):  # beyond the rounds of the study, only a count is written
        world.answer("x", world.frame(raw))
    for _ in range(200):
        world.answer("x", world.frame(b"{}"))
    assert path.stat().st_size < (ROUNDS + 110) * ENTRY
    before = path.stat().st_size
    for _ in range(300):
        world.answer("x", world.frame(b"{}"))
    assert path.stat().st_size < before + 3 * ENTRY


def test_no_entry_has_more_than_a_megabyte() -> None:
    ledger = MemoryLedger()
    with pytest.raises(LedgerError, match="bytes"):
        ledger.append("refused", why="x" * LONGEST_ENTRY)
    assert len(ledger) == 0


@pytest.mark.long
def test_entries_stay_on_disk_when_a_ledger_is_opened(tmp_path: Path) -> None:
    path, last = tmp_path / "ledger.jsonl", None
    with path.open("wb") as file:
        for number in range(3000):
            last = chained(last, "refused", {"why": "x" * 500, "round": number}, None)
            file.write(canonical(last) + b"\n")
    tracemalloc.start()
    ledger = FileLedger(path)
    numbers = [entry["round"] for entry in ledger.read(2990)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert numbers == list(range(2990, 3000))
    assert ledger.last == last
    assert peak < path.stat().st_size / 4
    ledger.append("refused", round=3000)
    assert [e["round"] for e in verify(path)][-2:] == [2999, 3000]
