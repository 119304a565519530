"""The controller of a site: its data, its rules, its ledger, and its part in the protocol."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, final

import numpy as np

from isthmus.errors import (
    IsthmusError,
    MissingExtraError,
    RefusedError,
)
from isthmus.joint.agreement.code import code_hash
from isthmus.joint.agreement.identity import KEY, Identity, Verifier
from isthmus.joint.agreement.policy import Policy
from isthmus.joint.agreement.signatures import AUTHOR, Signature
from isthmus.joint.agreement.study import Study
from isthmus.joint.disclosure.denial import Denial, DeniedError
from isthmus.joint.disclosure.dryrun import DryRun
from isthmus.joint.disclosure.rules import SiteRules
from isthmus.joint.federation.received_results import ReceivedResults
from isthmus.joint.federation.requests.base import Contribution, StatisticRequest, SumRequest
from isthmus.joint.federation.requests.fixed_point import FixedPointEncoding
from isthmus.joint.federation.requests.reading import read_sum_request
from isthmus.joint.federation.requests.steps import MethodState, StepRequest
from isthmus.joint.federation.site_data import SiteData, unfit
from isthmus.joint.federation.study_terms import terms_of
from isthmus.joint.noise.answers import NoisyAnswers
from isthmus.joint.records.events import Event
from isthmus.joint.records.journal import Slot
from isthmus.joint.records.ledger import Ledger
from isthmus.joint.records.ledger_entries import signed_bytes
from isthmus.joint.records.ledger_writer import LedgerWriter, Sent
from isthmus.joint.secure_sum import protocol
from isthmus.joint.secure_sum.envelopes import (
    HEAD,
    UNAUTHENTICATED,
    BrokenEnvelopeError,
    EnvelopeKind,
    Refusal,
    RoundRequest,
    size_of,
)
from isthmus.joint.secure_sum.limbs import LimbArray
from isthmus.joint.secure_sum.quoted_answers import AnsweredRound
from isthmus.joint.secure_sum.release_gate import ReleaseGate
from isthmus.joint.secure_sum.site import Site

PROTECTION = "each hidden under a mask; the coordinator learns only the sum over all sites"
FORM = "secure sum"
NOISE = "with noise for differential privacy"

EVENTS: dict[EnvelopeKind, Event] = {
    EnvelopeKind.ADVERT: protocol.OPENED,
    EnvelopeKind.SHARES: protocol.SHARES,
    EnvelopeKind.MASKED: protocol.SENT,
    EnvelopeKind.CONSENT: protocol.AGREED,
    EnvelopeKind.REVEAL: protocol.UNMASKED,
    EnvelopeKind.SUMMAND: protocol.SINGLE,
}
COUNTED = frozenset(
    {Refusal.BAD_REQUEST, Refusal.POLICY, Refusal.DATA, Refusal.MEMBERSHIP, Refusal.OTHER_DATA}
)
"""Refusals that depend on the question or on data; they count as rounds."""

WITH_REQUEST = frozenset({EnvelopeKind.ADVERT, EnvelopeKind.SUMMAND})
WITH_STATISTIC = frozenset({EnvelopeKind.MASKED, EnvelopeKind.SUMMAND})
SEES_HEADS = frozenset({EnvelopeKind.SHARES})
"""Frames before which the heads of ledgers arrive from sites that have confirmed nothing yet."""

WITH_HEADS = frozenset({EnvelopeKind.REVEAL, EnvelopeKind.SUMMAND})
WITH_PARTIES = frozenset({EnvelopeKind.CONSENT, EnvelopeKind.REVEAL, EnvelopeKind.SUMMAND})


@final
class SiteController(ReleaseGate):
    """Decides what leaves a site: the stricter of study and policy.

    Parameters
    ----------
    study
        The study, which the site has countersigned.
    signatures
        At least that of the author. To join the study, those of all sites are needed.
    identity
        The site's key.
    data
        The site's table or source, with the variables of the study.
    policy, ledger
        The site's own policy and ledger.
    clock
        Returns the current time.
    code
        Hash of the installed package.
    folder
        The private folder of the site, for the result of the study, which the coordinator sends at
        the end, and for a copy of a table of an engine. Without it, results are not kept, and
        copies are in memory.
    """

    def __init__(
        self,
        study: Study,
        signatures: Iterable[Signature],
        identity: Identity,
        data: object,
        policy: Policy,
        ledger: Ledger,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        code: str | None = None,
        folder: Path | None = None,
    ) -> None:
        self.name = study.name_of(identity)
        self._signatures = list(signatures)
        study.require(self._signatures, [AUTHOR])
        self._study = study
        self._grid = FixedPointEncoding.of(study)
        self._identity = identity
        self._policy = policy
        self._ledger = ledger
        self._heads: dict[str, str] = {}
        self._evidence: dict[str, Any] = {}
        fixed = protocol.secure_sums(study.protocol).fixed_membership
        self._writer = LedgerWriter(study, policy, ledger, fixed_membership=fixed)
        code = code_hash() if code is None else code
        self._noisy = None if study.privacy is None else NoisyAnswers(study, self._writer)
        self._rules = SiteRules(study, policy, self._writer, clock, code)
        self._results = ReceivedResults(study, self._writer, folder)
        self._data = SiteData(
            study, identity, data, policy, ledger, self._rules, self._noisy, folder
        )
        self._terms = terms_of(study)
        self._verifier = Verifier()
        self._states: dict[str, MethodState] = {}
        self._saved_states: dict[str, bytes] = {}
        self._rules.require_open()

    def site(self, verifier: Verifier | None = None, *, slot: Slot | None = None) -> Site:
        """Join the study: return the site's end of the protocol.

        The data are copied now. `slot` keeps the state of the protocol over a restart.
        """
        everyone = [AUTHOR, *(m.name for m in self._study.members)]
        self._study.require(self._signatures, everyone, verifier)
        self._ledger.bind(self._identity)
        _ = self._data_refusal()  # reads the data now, so that the first question takes no longer
        return Site(self._terms, self._identity, self, verifier=verifier, slot=slot)

    def require_admission(self) -> None:
        """Raise `RefusedError` if the rules on data forbid something that the study allows."""
        if self._data.admission is not None:
            raise RefusedError(
                f"This site cannot take part in {self._study.title!r}: "
                + "; ".join(self._data.admission[1])
                + ". A dry run shows more."
            )

    # --- answers -----------------------------------------------------------------------------

    def _contribution(
        self, request: SumRequest[Any], *, dry_run: bool = False
    ) -> tuple[Contribution[Any], LimbArray]:
        """Return what the site contributes; error messages contain no value of the data."""
        if self._data.admission is not None and self._data.admission[0] is Denial.DATA:
            raise RefusedError(_sentence(self._data.admission[1][0]))
        try:
            source = self._data.source
            contribution: Contribution[Any]
            if isinstance(request, StatisticRequest):
                contribution = request.contribute(source)
            else:
                assert isinstance(request, StepRequest)
                contribution = (
                    request.preview(source, self._grid)
                    if dry_run
                    else self._state_of(request).answer(request, source)
                )
            if self._noisy is not None:  # values outside of the bounds are clipped
                return contribution, np.zeros((0, request.limbs), dtype=np.uint32)
            return contribution, request.integers(contribution.value, source, self._grid)
        except MissingExtraError as error:
            raise RefusedError(str(error)) from None
        except Exception as error:  # noqa: BLE001 - engines raise exceptions of any type
            reason = unfit(error)
        # Not as the context of another error, which may quote data.
        raise RefusedError(_sentence(reason))

    def _state_of(self, request: StepRequest[Any]) -> MethodState:
        """Return the state that the method of a request keeps at this site."""
        name = request.name
        if name not in self._states:
            self._states[name] = MethodState(self._grid)
            if name in self._saved_states:
                self._states[name].restore(self._saved_states[name])
        return self._states[name]

    def _continue(self, request: SumRequest[Any]) -> None:
        """Check the answers that a request quotes, and take their sum."""
        if not isinstance(request, StepRequest) or request.step == 0:
            return
        state = self._state_of(request)
        if state.answered is None:
            raise BrokenEnvelopeError(Refusal.BAD_REQUEST)
        try:
            position = self._study.roster.position(self.name)
            total = state.answered.sum_of(request.answers, self._terms, position, self._verifier)
            state.take(request, total)
        except (BrokenEnvelopeError, IsthmusError):
            raise BrokenEnvelopeError(Refusal.BAD_REQUEST) from None

    # --- the gate of the protocol ------------------------------------------------------------

    def last_round(self) -> int:
        return self._writer.last_round()

    def answer(self, opening: RoundRequest) -> LimbArray:
        with _refusing():
            self._rules.require_running()
        # The data are checked for every question, before it is read: the time of a refusal does
        # not tell whether the question or the data are the reason.
        forbidden = self._data_refusal()
        request = self._read(opening)
        if self._rules.violations(request):
            raise BrokenEnvelopeError(Refusal.POLICY)
        if (opening.size, opening.limbs) != (request.size(self._grid), request.limbs):
            raise BrokenEnvelopeError(Refusal.BAD_REQUEST)
        if forbidden is not None:
            raise BrokenEnvelopeError(forbidden)
        self._continue(request)
        return self._exact(request) if self._noisy is None else self._with_noise(request)

    def _data_refusal(self) -> Refusal | None:
        """Return the refusal of every question about these data, if there is one.

        All checks are made each time, so that they take as long whatever they find.
        """
        if self._data.admission is not None:  # a site with such data does not serve
            return Refusal[self._data.admission[0].name]
        fingerprint, broken = self._data.fingerprint, list[str]()
        snapshot, trace = self._data.snapshot, self._data.trace
        unchanged = snapshot is None or snapshot.is_unchanged()
        if self._noisy is None and trace is not None:
            broken = self._writer.data_violations(trace, fingerprint)
        same = not self._writer.fingerprints() - {fingerprint}
        return None if unchanged and same and not broken else Refusal.OTHER_DATA

    def _exact(self, request: SumRequest[Any]) -> LimbArray:
        """Return the numbers of the site without noise."""
        try:
            contribution, numbers = self._contribution(request)
        except RefusedError:
            raise BrokenEnvelopeError(Refusal.DATA) from None
        if self._rules.cohort_violations(contribution.statistic):
            raise BrokenEnvelopeError(Refusal.POLICY)
        return numbers

    def _with_noise(self, request: SumRequest[Any]) -> LimbArray:
        """Return the numbers of the site with noise, if the budget allows it."""
        assert self._noisy is not None
        assert self._data.snapshot is not None
        with _refusing():
            if self._rules.budget_violations(self._noisy.price(request)):
                raise BrokenEnvelopeError(Refusal.POLICY)
            try:
                return self._noisy.numbers(request, self._data.snapshot)
            except IsthmusError:
                raise BrokenEnvelopeError(Refusal.DATA) from None

    def _read(self, opening: RoundRequest) -> SumRequest[Any]:
        try:
            return read_sum_request(opening.request, self._study, self._grid)
        except IsthmusError:
            raise BrokenEnvelopeError(Refusal.BAD_REQUEST) from None

    def record(
        self, kind: EnvelopeKind, opening: RoundRequest, active: frozenset[int] | None
    ) -> None:
        with _refusing():
            self._rules.require_running()
            sent = None
            if kind in WITH_STATISTIC:
                sent = self._sent(opening)
            self._writer.record(
                EVENTS[kind],
                opening.number,
                request=self._read(opening) if kind in WITH_REQUEST else None,
                sent=sent,
                parties=active if kind in WITH_PARTIES else None,
                heads=self._heads if kind in WITH_HEADS else None,
                seen=self._heads if kind in SEES_HEADS else None,
            )
        if kind is EnvelopeKind.SUMMAND and active is not None:
            self._note(opening, active)

    def _note(self, opening: RoundRequest, active: frozenset[int]) -> None:
        """Take note of a round whose answers a later request may quote."""
        request = self._read(opening)
        if isinstance(request, StepRequest):
            self._state_of(request).answered = AnsweredRound.of(opening, active)

    def _sent(self, opening: RoundRequest) -> Sent:
        """Return what the ledger says about numbers that are about to leave."""
        size = size_of(KEY + 4 * opening.size * opening.limbs)
        if self._noisy is not None:
            request = self._read(opening)
            if self._rules.budget_violations(self._noisy.price(request)):
                raise DeniedError(Denial.POLICY)
            noise = self._noisy.record(request)
            return Sent(opening.size, size, f"{FORM} {NOISE}", self._data.fingerprint, noise=noise)
        kept = "" if self._data.trace is None else self._writer.keep(self._data.trace.to_chunks())
        return Sent(opening.size, size, FORM, self._data.fingerprint, kept)

    def head(self) -> bytes:
        return self._writer.signed_head() if self._policy.needs_witnesses else bytes(HEAD)

    def remembered(self, position: int) -> bytes:
        if not self._policy.needs_witnesses:  # a simulation: nobody keeps anything
            return bytes(HEAD)
        key = self._study.members[position].key.hex()
        return bytes.fromhex(self._writer.remembered_signed().get(key, "")) or bytes(HEAD)

    def witness(self, heads: Mapping[int, bytes]) -> None:
        members = self._study.members
        given = {j: head for j, head in heads.items() if any(head)}
        for j, head in given.items():
            if not self._is_signed(head, members[j].key):
                raise BrokenEnvelopeError(Refusal.BAD_SIGNATURE, j)
        self._heads = {members[j].key.hex(): head.hex() for j, head in given.items()}

    def _is_signed(self, head: bytes, key: bytes) -> bool:
        """Return whether the owner of a ledger has signed its entry."""
        entry = signed_bytes(head[:KEY].hex())
        return self._verifier.verify(key, head[KEY:], entry)

    def require_head(self, head: bytes, told_by: int | None = None) -> None:
        if told_by is not None and not self._is_signed(head, self._identity.public):
            return  # nothing is remembered, or it was made up
        if any(head) and not self._writer.contains(head[:KEY]):
            self._evidence = {"missing": head[:KEY].hex()}
            if told_by is not None:
                self._evidence["told_by"] = self._study.members[told_by].name
            raise BrokenEnvelopeError(Refusal.WITNESS)

    def record_keys(self, number: int, sites: frozenset[int]) -> None:
        with _refusing():
            self._rules.require_running()
            if self._rules.limits():
                raise BrokenEnvelopeError(Refusal.POLICY)
            description = "a key for one-message rounds"
            self._writer.record(protocol.KEYS, number, description=description, parties=sites)

    def record_again(self, number: int) -> None:
        with _refusing():
            self._rules.require_running()
            self._writer.record_repetition(number)

    def refused(self, why: Refusal, number: int, question: bytes = b"") -> None:
        authentic = why not in UNAUTHENTICATED
        if question and why in COUNTED and not self._rules.limits():
            self._writer.record_refused_question(why.name.lower(), number, question)
            return
        evidence, self._evidence = self._evidence, {}
        self._writer.record_refusal(
            why.name.lower(), number, authentic=authentic, evidence=evidence
        )

    def receive_result(self, number: int, signed: bytes) -> bytes:
        with _refusing():
            self._rules.require_running()
            return self._results.receive(number, signed)

    def confirm_result(self, number: int, own: bytes, confirmed: Mapping[int, bytes]) -> None:
        with _refusing():
            self._rules.require_running()
            others = self._results.confirm(number, own, confirmed)
            if others:
                self._evidence = {"other_results": dict(others)}
                raise BrokenEnvelopeError(Refusal.OTHER_RESULT)

    def state(self) -> bytes:
        states = self._saved_states | {name: s.to_bytes() for name, s in self._states.items()}
        if not states:
            return b""
        return json.dumps({name: data.decode("latin-1") for name, data in states.items()}).encode()

    def restore(self, state: bytes) -> None:
        plain: dict[str, str] = json.loads(state or b"{}")
        self._states = {}
        # The data are read when the next request arrives.
        self._saved_states = {name: text.encode("latin-1") for name, text in plain.items()}

    # --- for the site itself -----------------------------------------------------------------

    def dry_run(self, request: SumRequest[Any]) -> DryRun:
        """Show what would leave. Opens no connection and writes nothing."""
        violations = self._rules.violations(request)
        value, lines, protection = None, list[str](), PROTECTION
        try:
            self._rules.require_open()
            if self._noisy is not None and not violations:
                violations += self._rules.budget_violations(self._noisy.price(request))
                protection = f"{self._noisy.describe(request)}, {PROTECTION}"
            elif self._data.admission is None and self._data.trace is not None:
                fingerprint = self._data.fingerprint
                violations += self._writer.data_violations(self._data.trace, fingerprint)
            if self._data.admission is not None and self._data.admission[0] is not Denial.DATA:
                violations += self._data.admission[1]
            contribution, _ = self._contribution(request, dry_run=True)
            value = contribution.value
            lines = request.show(value)
            if self._noisy is None:
                violations += self._rules.cohort_violations(contribution.statistic)
        except RefusedError as error:
            violations.append(str(error))
        numbers = request.size(self._grid)
        size = size_of(KEY + 4 * numbers * request.limbs)
        return DryRun(
            self.name,
            str(request),
            value,
            tuple(lines),
            numbers,
            size,
            protection,
            tuple(violations),
        )

    def __repr__(self) -> str:
        return f"SiteController({self.name!r}, {self._study.title!r})"


@contextmanager
def _refusing() -> Iterator[None]:
    """Turn a denial into a refusal of the protocol."""
    try:
        yield
    except DeniedError as error:
        raise BrokenEnvelopeError(Refusal[error.reason.name]) from None


def _sentence(phrase: str) -> str:
    return f"{phrase[0].upper()}{phrase[1:]}."
