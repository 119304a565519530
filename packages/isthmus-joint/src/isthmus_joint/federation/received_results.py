"""The result of a study: signed by the coordinator, checked, written down and kept by the sites."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, final

from isthmus.errors import IsthmusError, LedgerError, StudyError
from isthmus.tables.base import Source
from isthmus_joint.agreement.identity import (
    SIGNATURE,
    Identity,
    Signature,
    Verifier,
    digest,
    read_signatures,
    write_signatures,
)
from isthmus_joint.agreement.study import Study
from isthmus_joint.federation.requests.base import MethodState, StepRequest, SumRequest
from isthmus_joint.federation.requests.fixed_point import FixedPointEncoding
from isthmus_joint.records.journal import Denial, DeniedError, Journal, MemoryJournal
from isthmus_joint.records.ledger_entries import Entry
from isthmus_joint.records.ledger_writer import LedgerWriter
from isthmus_joint.records.private_files import replace_private
from isthmus_joint.secure_sum.envelopes import (
    LARGEST_RESULT,
    BrokenEnvelopeError,
    Refusal,
    RoundRequest,
)
from isthmus_joint.secure_sum.protocol import CONFIRMED, RESULT, PublicRound, round_of, sum_of
from isthmus_joint.secure_sum.terms import LimbArray, Terms, from_bytes, to_bytes

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


# --- The methods of a study at a site ------------------------------------------------------------
#
# What a site keeps between the steps of a method: the sums, and the rounds that they are from.


@final
class MethodMemory:
    """The methods of a study at a site, which survive a restart."""

    def __init__(
        self,
        terms: Terms,
        grid: FixedPointEncoding,
        verifier: Verifier,
        journal: Journal | None = None,
    ) -> None:
        self._terms = terms
        self._grid = grid
        self._verifier = verifier
        self._journal = MemoryJournal() if journal is None else journal
        self._methods: dict[str, MethodState] = {}
        for record in self._journal.records():
            state, limbs = self._state(record["method"]), record["limbs"]
            del state.sums[max(record["step"] - 1, 0) :]
            state.sums += [from_bytes(base64.b64decode(text), limbs) for text in record["sum"]]
            rounds = [None if r is None else PublicRound.from_dict(r) for r in record["rounds"]]
            state.answered, state.followed = rounds

    def _state(self, method: str) -> MethodState:
        return self._methods.setdefault(method, MethodState(self._grid))

    def contribution(self, request: StepRequest[Any], source: Source) -> LimbArray:
        """Compute the contribution of the site to a step."""
        return self._state(request.name).answer(request, source)

    def follow(self, request: SumRequest[Any], transcript: bytes) -> None:
        """Compute the sum that a request follows from, and take it into the state.

        Raises
        ------
        BrokenEnvelopeError
            The transcript is not what the sites signed in the round of the previous request, which
            was for the step before, with the same options.
        """
        before = request.previous if isinstance(request, StepRequest) else None
        if before is None or not transcript:
            if before is not None or transcript:
                raise BrokenEnvelopeError(Refusal.BAD_REQUEST)
            return
        assert isinstance(request, StepRequest)
        state = self._state(request.name)
        asked = RoundRequest(0, before.to_bytes(), before.size(self._grid), before.limbs)
        try:
            number = round_of(transcript)
            rounds = [r for r in (state.answered, state.followed) if r is not None]
            public = next((r for r in rounds if r.number == number), None)
            if public is None or not public.is_about(asked, self._terms):
                raise BrokenEnvelopeError(Refusal.BAD_REQUEST)
            total = sum_of(transcript, public, self._terms, self._verifier)
            state.take(request, total)
        except (BrokenEnvelopeError, IsthmusError):
            raise BrokenEnvelopeError(Refusal.BAD_REQUEST) from None
        state.follows = public

    def answered(self, request: SumRequest[Any], public: PublicRound) -> None:
        """Keep the sums on disk, and the round in which the site is about to answer."""
        if not isinstance(request, StepRequest):
            return
        state = self._state(request.name)
        state.answered = public
        state.followed = state.follows if request.step else None
        rounds = (state.answered, state.followed)
        record = {
            "method": request.name,
            "step": request.step,
            "limbs": request.limbs,
            # Earlier sums are in earlier records.
            "sum": [base64.b64encode(to_bytes(s)).decode() for s in state.sums[-1:]],
            "rounds": [None if r is None else r.to_dict() for r in rounds],
        }
        try:
            self._journal.append(record)
        except LedgerError:
            raise BrokenEnvelopeError(Refusal.LEDGER) from None
