"""What a site does with the result of a study: check the signature, write it down, keep it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import final

from isthmus.errors import LedgerError, StudyError
from isthmus.parties.agreement.study import Study
from isthmus.parties.disclosure.denial import Denial, DeniedError
from isthmus.parties.identity import SIGNATURE
from isthmus.parties.records.ledger_writer import LedgerWriter
from isthmus.parties.records.results import (
    is_signed,
    read_result,
    result_path,
    write_result,
)
from isthmus.sources.horizontal.secure_sum.frames import (
    LARGEST_RESULT,
    BrokenFrameError,
    Refusal,
)
from isthmus.sources.horizontal.secure_sum.protocol import RESULT


@final
class ReceivedResults:
    """Keeps the result of a study in the folder of a site, and its hash in the ledger.

    Parameters
    ----------
    study
        The study.
    writer
        Writes the ledger of the site.
    folder
        The folder of the site; ``None`` if results are not kept.
    """

    def __init__(self, study: Study, writer: LedgerWriter, folder: Path | None) -> None:
        self._study = study
        self._writer = writer
        self._folder = folder

    def receive(self, number: int, signed: bytes) -> bytes:
        """Keep a result and return its hash; the same result may come again."""
        signature, result = signed[:SIGNATURE], signed[SIGNATURE:]
        if not _is_plain(result) or not is_signed(self._study, result, signature):
            raise BrokenFrameError(Refusal.MALFORMED)
        content = hashlib.sha256(result)
        earlier = [e["result"] for e in self._writer.past() if e["event"] == RESULT.name]
        is_new = content.hexdigest() not in earlier[-1:]
        if is_new and len(earlier) >= self._study.rounds:
            raise BrokenFrameError(Refusal.POLICY)
        try:
            if is_new:
                self._writer.record(RESULT, number, result=content.hexdigest())
            if self._folder is not None and not self._is_kept(self._folder, result):
                write_result(self._folder, self._study, result, signature)
        except (OSError, LedgerError):
            raise DeniedError(Denial.LEDGER) from None
        return content.digest()

    def _is_kept(self, folder: Path, result: bytes) -> bool:
        """Return whether the files hold this result; a crash may have left an earlier one."""
        try:
            return read_result(result_path(folder, self._study), self._study) == result
        except (FileNotFoundError, StudyError):
            return False


def _is_plain(result: bytes) -> bool:
    """Return whether this is a JSON object of an allowed size."""
    if len(result) > LARGEST_RESULT:
        return False
    try:
        return isinstance(json.loads(result), dict)
    except (ValueError, RecursionError):
        return False
