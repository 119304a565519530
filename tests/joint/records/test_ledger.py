"""Ledgers: what left a site, in lines that cannot be changed unnoticed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from isthmus.errors import LedgerError
from isthmus_joint import FileLedger, verify
from isthmus_joint.records.ledger import readable


def filled(path: Path, entries: int = 4) -> FileLedger:
    ledger = FileLedger(path)
    for i in range(entries):
        ledger.append("sent", round=i, what="ß")
    return ledger


def test_any_changed_byte_is_found(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    filled(path)
    good = path.read_bytes()
    assert len(verify(path)) == 4
    for at in range(0, len(good), 3):
        path.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        with pytest.raises(LedgerError):
            verify(path)


def test_lines_cannot_be_dropped_swapped_or_added(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    filled(path)
    lines = path.read_bytes().splitlines(keepends=True)
    for wrong in (lines[1:], [lines[0], *lines[2:]], lines[::-1], [*lines, lines[-1]]):
        path.write_bytes(b"".join(wrong))
        with pytest.raises(LedgerError, match="line"):
            verify(path)
    path.write_bytes(b"".join(lines)[:-1])
    with pytest.raises(LedgerError, match="middle of line"):
        verify(path)
    path.write_bytes(b"".join(lines[:2]))
    assert len(verify(path)) == 2
    with pytest.raises(LedgerError, match="cut off"):
        verify(path, head=json.loads(lines[3])["hash"])


def test_a_ledger_goes_on_where_it_ended(tmp_path: Path) -> None:
    filled(tmp_path / "ledger", 2)
    filled(tmp_path / "ledger", 3)
    assert [e["number"] for e in verify(tmp_path / "ledger")] == [1, 2, 3, 4, 5]


def test_two_writers_notice_each_other(tmp_path: Path) -> None:
    one, two = FileLedger(tmp_path / "ledger"), FileLedger(tmp_path / "ledger")
    one.append("sent")
    with pytest.raises(LedgerError, match="Another process changed"):
        two.append("sent")
    assert len(verify(tmp_path / "ledger")) == 1


def test_a_question_does_not_control_the_terminal(tmp_path: Path) -> None:
    ledger = FileLedger(tmp_path / "ledger")
    entry = ledger.append("refused", question="\x1b[2K\r  1  sent\n  2  sent \u202e")
    shown = readable([entry])
    assert shown.isprintable()
    assert "�[2K   1  sent   2  sent �" in shown
