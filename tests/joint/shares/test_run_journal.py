"""What two parties remember of a run, and which run follows from it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from isthmus.errors import AbortedError
from isthmus.joint import FileJournal, MemoryJournal
from isthmus.joint.shares.run_journal import NextRun, PastRun, RunJournal, next_run

NEW, DONE = PastRun(), PastRun(1, True, 9, {"x": 1})


def test_the_first_and_the_next_run() -> None:
    assert next_run(NEW, NEW, "shop") == NextRun(1, {}, 0)
    assert next_run(DONE, DONE, "shop") == NextRun(2, {}, 0)
    assert next_run(DONE, NEW, "shop") == NextRun(2, {}, 0)  # the other one lost its journal


def test_an_open_run_is_resumed() -> None:
    began, aligned = PastRun(1, False), PastRun(1, False, 9)
    assert next_run(began, NEW, "shop") == NextRun(1, {}, 0)
    assert next_run(aligned, began, "shop") == NextRun(1, {}, 0)  # one has to align again
    assert next_run(aligned, aligned, "shop") == NextRun(1, {}, 9)
    some, more = PastRun(1, False, 9, {"x": 1}), PastRun(1, False, 9, {"x": 1, "y": [2]})
    for pair in ((some, more), (more, some)):
        assert next_run(*pair, "shop") == NextRun(1, {"x": 1, "y": [2]}, 9)
    # One party came to the end, the other did not hear of it.
    for pair in ((some, DONE), (DONE, some)):
        assert next_run(*pair, "shop") == NextRun(1, {"x": 1}, 9)


@pytest.mark.parametrize(
    ("own", "other", "message"),
    [
        (PastRun(1, False), PastRun(2, False), "different runs"),
        (PastRun(1, False), PastRun(2, True), "different runs"),
        (PastRun(1, False, 9), PastRun(1, False, 8), "different numbers of common people"),
        (
            PastRun(1, False, 9, {"x": 1}),
            PastRun(1, False, 9, {"x": 2}),
            "different results of 'x'",
        ),
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
    assert journal.past() == NEW
    assert journal.positions(1) is None
    journal.open(1)
    journal.open(1)
    journal.align(1, np.array([3, 0, 2**40]), 3)
    journal.decide(1, "x", [1, 2])
    journal.decide(1, "x", [3])  # what was decided stays
    file.close()
    file, journal = opened()
    assert journal.past() == PastRun(1, False, 3, {"x": [1, 2]})
    positions = journal.positions(1)
    assert positions is not None
    assert positions.tolist() == [3, 0, 2**40]
    assert journal.positions(2) is None
    journal.end(1, "done")
    assert journal.past().finished
    journal.open(2)
    assert journal.past() == PastRun(2, False)
    file.close()


def test_a_run_that_only_the_other_party_began() -> None:
    journal = RunJournal(MemoryJournal())
    journal.decide(1, "x", 1)
    assert journal.past() == PastRun(1, False, 0, {"x": 1})
