"""What a site does with the result of a study: check the signature, write it down, keep it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import final

from isthmus.errors import LedgerError, StudyError
from isthmus.joint.agreement.denial import Denial, DeniedError
from isthmus.joint.agreement.identity import SIGNATURE
from isthmus.joint.agreement.study import Study
from isthmus.joint.records.ledger_entries import Entry
from isthmus.joint.records.ledger_writer import LedgerWriter
from isthmus.joint.records.results import (
    is_signed,
    read_result,
    result_path,
    write_result,
)
from isthmus.joint.secure_sum.envelopes import (
    LARGEST_RESULT,
    BrokenEnvelopeError,
    Refusal,
)
from isthmus.joint.secure_sum.protocol import CONFIRMED, RESULT


@final
class ReceivedResults:
    """Keeps the result of a study in the folder of a site, and its hash in the ledger.

    Parameters
    ----------
    folder
        The folder of the site; ``None`` if results are not kept.
    """

    def __init__(
        self,
        study: Study,
        writer: LedgerWriter,
        require_running: Callable[[], None],
        folder: Path | None,
    ) -> None:
        self._study = study
        self._writer = writer
        self._require_running = require_running
        self._folder = folder

    def receive(self, number: int, signed: bytes) -> bytes:
        """Keep a result and return its hash; the same result may come again."""
        with refusing():
            self._require_running()
            return self._received(number, signed)

    def _received(self, number: int, signed: bytes) -> bytes:
        signature, result = signed[:SIGNATURE], signed[SIGNATURE:]
        if not _is_plain(result) or not is_signed(self._study, result, signature):
            raise BrokenEnvelopeError(Refusal.MALFORMED)
        content = hashlib.sha256(result)
        earlier = [e["result"] for e in self._writer.here.received if e["event"] == RESULT.name]
        is_new = content.hexdigest() not in earlier[-1:]
        if is_new and content.hexdigest() in earlier:  # its confirmations may be old
            raise BrokenEnvelopeError(Refusal.REPLAY)
        if is_new and len(earlier) >= self._study.rounds:
            raise BrokenEnvelopeError(Refusal.POLICY)
        try:
            if is_new:
                self._writer.record(RESULT, number, result=content.hexdigest())
            if self._folder is not None and not self._is_kept(self._folder, result):
                write_result(self._folder, self._study, result, signature)
        except (OSError, LedgerError):
            raise DeniedError(Denial.LEDGER) from None
        return content.digest()

    def confirm(self, number: int, own: bytes, confirmed: Mapping[int, bytes]) -> None:
        """Write which sites have signed that they got the same result as this one.

        Raises
        ------
        BrokenEnvelopeError
            Some sites have signed that they got another one.
        """
        with refusing():
            self._require_running()
            self._confirmed(number, own, confirmed)

    def _confirmed(self, number: int, own: bytes, confirmed: Mapping[int, bytes]) -> None:
        past = self._writer.here.received
        results = [e["result"] for e in past if e["event"] == RESULT.name]
        if own.hex() not in results[-1:]:
            raise BrokenEnvelopeError(Refusal.OUT_OF_ORDER)
        members = self._study.members
        others = {members[i].name: c.hex() for i, c in sorted(confirmed.items()) if c != own}
        if others:
            evidence = {"other_results": others}
            raise BrokenEnvelopeError(Refusal.OTHER_RESULT, evidence=evidence)
        names = self._study.roster.names(frozenset(confirmed))
        earlier = {n for e in past if _confirms(e, own.hex()) for n in e["sites"]}
        if not earlier.issuperset(names):  # nobody can fill the disk by repeating it
            self._writer.record(CONFIRMED, number, result=own.hex(), sites=names)

    def _is_kept(self, folder: Path, result: bytes) -> bool:
        """Return whether the files hold this result; a crash may have left an earlier one."""
        try:
            return read_result(result_path(folder, self._study), self._study) == result
        except (FileNotFoundError, StudyError):
            return False


@contextmanager
def refusing() -> Iterator[None]:
    """Turn a denial into a refusal of the protocol."""
    try:
        yield
    except DeniedError as error:
        raise BrokenEnvelopeError(Refusal[error.reason.name]) from None


def _confirms(entry: Entry, result: str) -> bool:
    return bool(entry["event"] == CONFIRMED.name and entry["result"] == result)


def _is_plain(result: bytes) -> bool:
    """Return whether this is a JSON object of an allowed size."""
    if len(result) > LARGEST_RESULT:
        return False
    try:
        return isinstance(json.loads(result), dict)
    except (ValueError, RecursionError):
        return False
