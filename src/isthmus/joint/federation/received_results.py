"""The result of a study: signed by the coordinator, checked, written down and kept by the sites."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import final

from isthmus.errors import LedgerError, StudyError
from isthmus.joint.agreement.identity import SIGNATURE, Identity, Verifier, digest
from isthmus.joint.agreement.signatures import Signature, read_signatures, write_signatures
from isthmus.joint.agreement.study import Study
from isthmus.joint.records.events import Denial, DeniedError
from isthmus.joint.records.ledger_entries import Entry
from isthmus.joint.records.ledger_writer import LedgerWriter
from isthmus.joint.records.private_files import replace_private
from isthmus.joint.secure_sum.envelopes import (
    LARGEST_RESULT,
    BrokenEnvelopeError,
    Refusal,
)
from isthmus.joint.secure_sum.protocol import CONFIRMED, RESULT

COORDINATOR = "coordinator"


def sign_result(identity: Identity, study: bytes, result: bytes) -> bytes:
    """Return the coordinator's signature on a result of a study."""
    return identity.sign(_signed(study, result))


def is_signed(study: Study, result: bytes, signature: bytes) -> bool:
    """Return whether the coordinator of a study has signed a result."""
    key = study.coordinator
    return key is not None and Verifier().verify(key, signature, _signed(study.identity, result))


def _signed(study: bytes, result: bytes) -> bytes:
    return digest(b"isthmus result 1", study, hashlib.sha256(result).digest())


def result_path(folder: Path, study: Study) -> Path:
    """Return the file for the result of a study in the folder of a site."""
    return folder / f"result-{study.identity.hex()[:16]}.json"


def write_result(folder: Path, study: Study, result: bytes, signature: bytes) -> Path:
    """Write a result and the signature on it; an earlier result of the study is replaced."""
    assert study.coordinator is not None
    path = result_path(folder, study)
    beside = path.with_suffix(".new")
    write_signatures(beside, [Signature(COORDINATOR, study.coordinator, signature)])
    beside.replace(path.with_suffix(".signature"))
    replace_private(path, result)
    return path


def read_result(path: str | os.PathLike[str], study: Study) -> bytes:
    """Read a result, and check that the coordinator of the study has signed it.

    Raises
    ------
    StudyError
        The result was changed, or belongs to another study.
    """
    file = Path(path)
    result = file.read_bytes()
    signatures = read_signatures(file.with_suffix(".signature"))
    if not any(is_signed(study, result, s.value) for s in signatures):
        raise StudyError(
            f"The coordinator of the study has not signed {file}: it was changed, or it belongs to "
            "another study."
        )
    return result


@contextmanager
def refusing() -> Iterator[None]:
    """Turn a denial into a refusal of the protocol."""
    try:
        yield
    except DeniedError as error:
        raise BrokenEnvelopeError(Refusal[error.reason.name]) from None


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

    @refusing()
    def receive(self, number: int, signed: bytes) -> bytes:
        """Keep a result and return its hash; the same result may come again."""
        self._require_running()
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

    @refusing()
    def confirm(self, number: int, own: bytes, confirmed: Mapping[int, bytes]) -> None:
        """Write which sites have signed that they got the same result as this one.

        Raises
        ------
        BrokenEnvelopeError
            Some sites have signed that they got another one.
        """
        self._require_running()
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
