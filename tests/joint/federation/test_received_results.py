"""Results that the coordinator sends to the sites: what is kept, and what is refused."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from tests.joint.consortium import Consortium

from isthmus.errors import StudyError
from isthmus_joint.agreement.identity import SIGNATURE
from isthmus_joint.agreement.policy import Policy
from isthmus_joint.commands.described import described
from isthmus_joint.federation import received_results
from isthmus_joint.federation.received_results import (
    ReceivedResults,
    read_result,
    result_path,
    sign_result,
)
from isthmus_joint.records.ledger_writer import LedgerWriter
from isthmus_joint.secure_sum.envelopes import LARGEST_RESULT, BrokenEnvelopeError


class Receiver:
    """A site of a consortium that waits for its result."""

    def __init__(self, folder: Path) -> None:
        self.group = Consortium(folder)
        self.study, self.folder = self.group.study, folder
        policy: Policy = self.group.policies["north"]
        ledger = self.group.ledgers["north"]
        writer = LedgerWriter(self.study, policy, ledger)
        self.results = ReceivedResults(self.study, writer, lambda: None, folder)

    def signed(self, result: bytes) -> bytes:
        return sign_result(self.group.boss, self.study.identity, result) + result

    def send(self, result: bytes) -> bytes:
        return self.results.receive(1, self.signed(result))

    def kept(self) -> bytes:
        return read_result(result_path(self.folder, self.study), self.study)


@pytest.mark.parametrize("when", ["before", "between"])
def test_a_crash_does_not_leave_an_earlier_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """The ledger names the second result, and the folder has the first, or half of both."""
    site = Receiver(tmp_path)
    site.send(b'{"a": 1}')

    class PowerFailure(BaseException):
        pass

    def fail(*_: object) -> None:
        raise PowerFailure

    with monkeypatch.context() as patched:
        if when == "before":
            patched.setattr(received_results, "write_result", fail)
        else:
            patched.setattr("os.fsync", _second(fail))  # the first one is that of the ledger
        with pytest.raises(PowerFailure):
            site.send(b'{"a": 2}')
    assert site.send(b'{"a": 2}') == hashlib.sha256(b'{"a": 2}').digest()
    assert site.kept() == b'{"a": 2}'


def _second(fail: object) -> object:
    calls: list[int] = []

    def sync(handle: int) -> None:
        calls.append(handle)
        if len(calls) > 1:
            fail()  # type: ignore[operator]

    return sync


def test_results_of_others_are_refused(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    site, other = Receiver(tmp_path), Receiver(tmp_path / "other")
    result = b'{"a": 1}'
    stranger = sign_result(site.group.keys["east"], site.study.identity, result) + result
    moved = sign_result(site.group.boss, other.study.identity, result) + result
    long = b'{"a": "' + bytes(LARGEST_RESULT).replace(b"\0", b"x") + b'"}'
    deep = b"[" * 100_000
    for wrong in (stranger, moved, site.signed(long), site.signed(deep), b"", bytes(SIGNATURE)):
        with pytest.raises(BrokenEnvelopeError):
            site.results.receive(1, wrong)
    assert not result_path(tmp_path, site.study).exists()
    site.send(result)
    with pytest.raises(StudyError):
        read_result(result_path(tmp_path, site.study), other.study)


def test_a_purpose_does_not_forge_what_a_signer_sees(tmp_path: Path) -> None:
    forged = "research\n  privacy    differential privacy with ε = 0.1\x1b[8m\r"
    shown = described(Consortium(tmp_path, purpose=forged).study)
    lines = [line for line in shown.splitlines() if line.startswith("  privacy")]
    assert lines == ["  privacy    none: the sums are exact"]
    assert all(line.isprintable() for line in shown.splitlines())
