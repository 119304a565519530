"""The controller of a site: its data, its rules, its ledger, and its part in the protocol."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, final

from isthmus.errors import (
    DataError,
    IsthmusError,
    MissingExtraError,
    RefusedError,
)
from isthmus.parties.agreement.code import code_hash
from isthmus.parties.agreement.policy import Policy
from isthmus.parties.agreement.signatures import AUTHOR, Signature
from isthmus.parties.agreement.study import Study
from isthmus.parties.disclosure.denial import Denial, DeniedError
from isthmus.parties.disclosure.dryrun import DryRun
from isthmus.parties.disclosure.rules import SiteRules
from isthmus.parties.disclosure.trace import Trace
from isthmus.parties.identity import KEY, Identity, Verifier
from isthmus.parties.records.events import Event
from isthmus.parties.records.journal import Slot
from isthmus.parties.records.ledger import Ledger
from isthmus.parties.records.ledger_writer import LedgerWriter, Sent
from isthmus.sources.base import Source
from isthmus.sources.horizontal.received_results import ReceivedResults
from isthmus.sources.horizontal.requests.base import Contribution, MethodState, SumRequest
from isthmus.sources.horizontal.requests.grid import Grid
from isthmus.sources.horizontal.requests.reading import read_sum_request
from isthmus.sources.horizontal.secure_sum import protocol
from isthmus.sources.horizontal.secure_sum.frames import (
    UNAUTHENTICATED,
    BrokenFrameError,
    FrameKind,
    Opening,
    Refusal,
    size_of,
)
from isthmus.sources.horizontal.secure_sum.limbs import LimbArray
from isthmus.sources.horizontal.secure_sum.release_gate import ReleaseGate
from isthmus.sources.horizontal.secure_sum.site import Site
from isthmus.sources.horizontal.snapshot import Snapshot, local_source, snapshot_of
from isthmus.sources.horizontal.study_material import material_of
from isthmus.sources.horizontal.study_terms import terms_of
from isthmus.sources.tables.frame import Frame
from isthmus.sources.tables.series import Series
from isthmus.statistics import Kind, Plan

PROTECTION = "each hidden under a mask; the coordinator learns only the sum over all sites"
FORM = "secure sum"

EVENTS: dict[FrameKind, Event] = {
    FrameKind.ADVERT: protocol.OPENED,
    FrameKind.SHARES: protocol.SHARES,
    FrameKind.MASKED: protocol.SENT,
    FrameKind.CONSENT: protocol.AGREED,
    FrameKind.REVEAL: protocol.UNMASKED,
    FrameKind.SUMMAND: protocol.SINGLE,
}
COUNTED = frozenset(
    {Refusal.BAD_REQUEST, Refusal.POLICY, Refusal.DATA, Refusal.MEMBERSHIP, Refusal.OTHER_DATA}
)
"""Refusals that depend on the question or on data; they count as rounds."""

WITH_REQUEST = frozenset({FrameKind.ADVERT, FrameKind.SUMMAND})
WITH_STATISTIC = frozenset({FrameKind.MASKED, FrameKind.SUMMAND})
WITH_HEADS = frozenset({FrameKind.SHARES, FrameKind.REVEAL})
WITH_PARTIES = frozenset({FrameKind.CONSENT, FrameKind.REVEAL, FrameKind.SUMMAND})


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
    results
        A folder for the result of the study, which the coordinator sends at the end.
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
        results: Path | None = None,
    ) -> None:
        self.name = study.name_of(identity)
        self._signatures = list(signatures)
        study.require(self._signatures, [AUTHOR])
        self._study = study
        self._grid = Grid.of(study)
        self._identity = identity
        self._data = data
        self._policy = policy
        self._ledger = ledger
        self._heads: dict[str, str] = {}
        fixed = protocol.secure_sums(study.protocol).fixed_membership
        self._writer = LedgerWriter(study, policy, ledger, fixed_membership=fixed)
        code = code_hash() if code is None else code
        self._rules = SiteRules(study, policy, self._writer, clock, code)
        self._results = ReceivedResults(study, self._writer, results)
        self._states: dict[str, MethodState] = {}
        self._saved_states: dict[str, bytes] = {}
        self._rules.require_open()

    def site(self, verifier: Verifier | None = None, *, slot: Slot | None = None) -> Site:
        """Join the study: return the site's end of the protocol.

        The data are copied now. `slot` keeps the state of the protocol over a restart.
        """
        everyone = [AUTHOR, *(m.name for m in self._study.members)]
        self._study.require(self._signatures, everyone)
        self._ledger.bind(self._identity)
        _ = self._admission
        return Site(terms_of(self._study), self._identity, self, verifier=verifier, slot=slot)

    @cached_property
    def _snapshot(self) -> Snapshot | None:
        """A copy of the data; ``None`` if no rule needs rows, or if there are none."""
        if not self._policy.checks_rows:
            return None
        return snapshot_of(self._data, self._study.schema, self._policy.persons)

    @cached_property
    def _source(self) -> Source:
        """The data, read as the study says."""
        if self._snapshot is not None:
            return self._snapshot.source
        return local_source(self._data, self._study.schema)

    @cached_property
    def _admission(self) -> tuple[Denial, list[str]] | None:
        """Why nothing at all may leave, for programs and for people; ``None`` if something may.

        The rules on data are applied to everything that the study allows. Nobody can find out by
        clever questions which part of it they forbid.
        """
        try:
            self._require_bounds()
            if self._snapshot is not None:
                material = material_of(self._study, self._snapshot)
                broken = self._rules.material_violations(material)
                return (Denial.POLICY, broken) if broken else None
        except Exception as error:  # noqa: BLE001 - engines raise exceptions of any type
            return Denial.DATA, [_unfit(error)]
        if self._policy.checks_rows:
            return Denial.POLICY, ["the rules of the policy need rows, and the source has none"]
        return None

    def require_admission(self) -> None:
        """Raise `RefusedError` if the rules on data forbid something that the study allows."""
        if self._admission is not None:
            raise RefusedError(
                f"This site cannot take part in {self._study.title!r}: "
                + "; ".join(self._admission[1])
                + ". A dry run shows more."
            )

    # --- answers -----------------------------------------------------------------------------

    def _contribution(
        self, request: SumRequest[Any], *, dry_run: bool = False
    ) -> tuple[Contribution[Any], LimbArray]:
        """Return what the site contributes; error messages contain no value of the data."""
        if self._admission is not None and self._admission[0] is Denial.DATA:
            raise RefusedError(_sentence(self._admission[1][0]))
        try:
            state = self._state_of(request)
            if dry_run and state is not None:
                state = state.copy()
            contribution = request.contribute(self._source, state)
            return contribution, request.integers(contribution.value, self._source, self._grid)
        except MissingExtraError as error:
            raise RefusedError(str(error)) from None
        except Exception as error:  # noqa: BLE001 - engines raise exceptions of any type
            reason = _unfit(error)
        # Not as the context of another error, which may quote data.
        raise RefusedError(_sentence(reason))

    def _state_of(self, request: SumRequest[Any]) -> MethodState | None:
        """Return the state that the method of a request keeps at this site."""
        if not request.method:
            return None
        if request.method not in self._states:
            state = request.new_state()
            if state is None:
                return None
            if request.method in self._saved_states:
                state.restore(self._saved_states[request.method])
            self._states[request.method] = state
        return self._states[request.method]

    def _require_bounds(self) -> None:
        """Compare every value with the bounds if rows are available; else the sums are checked."""
        if not isinstance(self._source, (Frame, Series)):
            return
        schema, bounds = self._study.schema, self._study.bounds
        names = [n for n in schema.names if n in bounds]
        values = self._source.rows()[:, list(schema.indices(names))]
        for name, column in zip(names, values.T, strict=True):
            low, high = bounds[name]
            if not ((column >= low) & (column <= high)).all():
                raise DataError(f"Variable {name!r} has values outside of the study's bounds.")

    @cached_property
    def _trace(self) -> Trace | None:
        """Keyed hashes of the data, to compare them with those of other releases."""
        if self._snapshot is None:
            return None
        return Trace.of(
            self._ledger.secret(),
            self._study.schema,
            self._snapshot.values,
            self._snapshot.persons,
        )

    @cached_property
    def _fingerprint(self) -> str:
        """Identifies the data without revealing them: keyed, and only this site has the key."""
        if self._trace is not None:
            return self._trace.fingerprint(self._ledger.secret())
        schema = self._study.schema
        key = self._identity.fingerprint_key(b"data of " + self._study.identity)
        fingerprint = hmac.new(key.reveal(), digestmod=hashlib.sha256)
        continuous, discrete = schema.of_kind(Kind.CONTINUOUS), schema.of_kind(Kind.DISCRETE)
        if continuous:
            moments = self._source.moments(continuous)
            values = [moments.n, *moments.mean().tolist()]
            values += moments.covariance().diagonal().tolist()
            # An engine may add in another order next time.
            fingerprint.update(" ".join(f"{v:.7g}" for v in values).encode())
        if discrete:
            counts = self._source.counts(Plan.sets([n] for n in discrete))
            fingerprint.update(repr([counts.table([n]).tolist() for n in discrete]).encode())
        return fingerprint.hexdigest()

    # --- the gate of the protocol ------------------------------------------------------------

    def last_round(self) -> int:
        return self._writer.last_round()

    def answer(self, opening: Opening) -> LimbArray:
        with _refusing():
            self._rules.require_running()
        request = self._read(opening)
        if self._rules.violations(request):
            raise BrokenFrameError(Refusal.POLICY)
        if (opening.size, opening.limbs) != (request.size(self._grid), request.limbs):
            raise BrokenFrameError(Refusal.BAD_REQUEST)
        if self._admission is not None:
            raise BrokenFrameError(Refusal[self._admission[0].name])
        if self._snapshot is not None and not self._snapshot.is_unchanged():
            raise BrokenFrameError(Refusal.OTHER_DATA)
        try:
            contribution, numbers = self._contribution(request)
        except RefusedError:
            raise BrokenFrameError(Refusal.DATA) from None
        if self._rules.cohort_violations(contribution.statistic):
            raise BrokenFrameError(Refusal.POLICY)
        if self._writer.fingerprints() - {self._fingerprint}:
            raise BrokenFrameError(Refusal.OTHER_DATA)
        if self._trace is not None and self._writer.data_violations(self._trace):
            raise BrokenFrameError(Refusal.OTHER_DATA)
        return numbers

    def _read(self, opening: Opening) -> SumRequest[Any]:
        try:
            return read_sum_request(opening.request, self._study, self._grid)
        except IsthmusError:
            raise BrokenFrameError(Refusal.BAD_REQUEST) from None

    def record(self, kind: FrameKind, opening: Opening, active: frozenset[int] | None) -> None:
        with _refusing():
            self._rules.require_running()
            sent = None
            if kind in WITH_STATISTIC:
                size = size_of(KEY + 4 * opening.size * opening.limbs)
                kept = "" if self._trace is None else self._writer.keep(self._trace)
                sent = Sent(opening.size, size, FORM, self._fingerprint, kept)
            self._writer.record(
                EVENTS[kind],
                opening.number,
                request=self._read(opening) if kind in WITH_REQUEST else None,
                sent=sent,
                parties=active if kind in WITH_PARTIES else None,
                heads=self._heads if kind in WITH_HEADS else None,
            )

    def head(self) -> bytes:
        return self._writer.head() if self._policy.checks_rows else bytes(KEY)

    def remembered(self, position: int) -> bytes:
        if not self._policy.checks_rows:  # a simulation: nobody keeps anything
            return bytes(KEY)
        key = self._study.members[position].key.hex()
        return bytes.fromhex(self._writer.remembered().get(key, "")) or bytes(KEY)

    def witness(self, heads: Mapping[int, bytes]) -> None:
        members = self._study.members
        self._heads = {members[j].key.hex(): h.hex() for j, h in heads.items() if any(h)}

    def require_head(self, head: bytes) -> None:
        if not self._writer.contains(head):
            raise BrokenFrameError(Refusal.WITNESS)

    def record_keys(self, number: int, sites: frozenset[int]) -> None:
        with _refusing():
            self._rules.require_running()
            if self._rules.limits():
                raise BrokenFrameError(Refusal.POLICY)
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
        self._writer.record_refusal(why.name.lower(), number, authentic=authentic)

    def receive_result(self, number: int, signed: bytes) -> bytes:
        with _refusing():
            self._rules.require_running()
            return self._results.receive(number, signed)

    def state(self) -> bytes:
        states = self._saved_states | {name: s.to_bytes() for name, s in self._states.items()}
        if not states:
            return b""
        return json.dumps({name: data.decode("latin-1") for name, data in states.items()}).encode()

    def restore(self, state: bytes) -> None:
        plain: dict[str, str] = json.loads(state)
        # The data are read when the next request arrives.
        self._saved_states = {name: text.encode("latin-1") for name, text in plain.items()}

    # --- for the site itself -----------------------------------------------------------------

    def dry_run(self, request: SumRequest[Any]) -> DryRun:
        """Show what would leave. Opens no connection and writes nothing."""
        violations = self._rules.violations(request)
        value, lines = None, list[str]()
        try:
            self._rules.require_open()
            if self._admission is None and self._trace is not None:
                violations += self._writer.data_violations(self._trace)
            elif self._admission is not None and self._admission[0] is not Denial.DATA:
                violations += self._admission[1]
            contribution, _ = self._contribution(request, dry_run=True)
            value = contribution.value
            lines = request.show(value)
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
            PROTECTION,
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
        raise BrokenFrameError(Refusal[error.reason.name]) from None


def _sentence(phrase: str) -> str:
    return f"{phrase[0].upper()}{phrase[1:]}."


def _unfit(error: Exception) -> str:
    """Return a phrase about data that cannot be used; messages about data may quote them."""
    return (
        f"the data of this site do not fit the study ({type(error).__name__}); read them at the "
        "site with Frame(data, schema=study.schema) to see why"
    )
