"""The controller of a site: its data, its rules, its ledger, and its part in the protocol."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, final

from isthmus.errors import IsthmusError, MissingExtraError, RefusedError
from isthmus_joint.agreement.identity import AUTHOR, KEY, Identity, Signature, Verifier
from isthmus_joint.agreement.policy import Policy
from isthmus_joint.agreement.study import Study, code_hash
from isthmus_joint.extracts.extract import Extract
from isthmus_joint.federation.received_results import MethodMemory, ReceivedResults, refusing
from isthmus_joint.federation.requests.base import StatisticRequest, StepRequest, SumRequest
from isthmus_joint.federation.requests.fixed_point import FixedPointEncoding
from isthmus_joint.noise.answers import NoisyAnswers
from isthmus_joint.records.journal import (
    Denial,
    DeniedError,
    Event,
    FileJournal,
    FolderLock,
    Journal,
)
from isthmus_joint.records.ledger import FileLedger, Ledger
from isthmus_joint.records.ledger_entries import Entry
from isthmus_joint.records.ledger_writer import LedgerWriter, Sent, SiteRules
from isthmus_joint.request_catalogue import read_sum_request
from isthmus_joint.secure_sum import protocol
from isthmus_joint.secure_sum.envelopes import (
    LARGEST,
    UNAUTHENTICATED,
    BrokenEnvelopeError,
    EnvelopeKind,
    Refusal,
    RoundRequest,
    size_of,
)
from isthmus_joint.secure_sum.protocol import secure_sums
from isthmus_joint.secure_sum.round import Leaving, ReleaseGate
from isthmus_joint.secure_sum.sides import Site
from isthmus_joint.secure_sum.terms import LimbArray
from isthmus_joint.transport.base import PING, answer_greeting, is_greeting

PROTECTION = "each hidden under a mask; the coordinator learns only the sum over all sites"
FORM = "secure sum"
NOISE = "with noise for differential privacy"

EVENTS: dict[EnvelopeKind, Event] = {
    EnvelopeKind.ADVERT: protocol.OPENED,
    EnvelopeKind.MASKED: protocol.SENT,
    EnvelopeKind.REVEAL: protocol.UNMASKED,
}
"""Messages that the ledger has an entry for. The two others contain nothing of the data."""

COUNTED = frozenset(
    {Refusal.BAD_REQUEST, Refusal.POLICY, Refusal.DATA, Refusal.MEMBERSHIP, Refusal.OTHER_DATA}
)
"""Refusals that depend on the question or on data; they count as rounds."""


@final
@dataclass(frozen=True, eq=False)
class DryRun:
    """Data that a site would release, and the rules that forbid it. Nothing was released.

    Attributes
    ----------
    site
        Name of the site.
    request
        Description of the request.
    contribution
        Contribution of the site before it is protected; ``None`` if it has nothing to
        contribute. It never leaves in this form.
    lines
        The same, for people.
    numbers
        How many numbers would be sent.
    size
        The size of the message in bytes.
    protection
        How the numbers are protected, in a phrase.
    violations
        Why the site would refuse; empty if it would not.
    """

    site: str
    request: str
    contribution: object = field(repr=False)
    lines: tuple[str, ...] = field(repr=False)
    numbers: int
    size: int
    protection: str
    violations: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"Request to site {self.site}: {self.request}."]
        if self.violations:
            lines += ["The site would refuse:", *(f"  - {reason}" for reason in self.violations)]
        else:
            lines.append(
                f"The site would send {self.numbers} numbers ({self.size:,} bytes), "
                f"{self.protection}."
            )
        lines += ["", "The numbers before protection, which stay at the site:"]
        lines += self.lines or ("  (none, because the site would refuse)",)
        return "\n".join(lines)


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
    extract
        The rows of the site, frozen for the study.
    policy, ledger
        The site's own policy and ledger.
    clock
        Returns the current time.
    code
        Hash of the installed package.
    folder
        The private folder of the site, for the result of the study, which the coordinator sends at
        the end. Without it, results are not kept.

    Raises
    ------
    RefusedError
        The policy does not allow the study, or the extract is not for it.
    """

    def __init__(
        self,
        study: Study,
        signatures: Iterable[Signature],
        identity: Identity,
        extract: Extract,
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
        self._extract = extract
        self._writer = LedgerWriter(study, policy, ledger)
        code = code_hash() if code is None else code
        self._noisy = None if study.privacy is None else NoisyAnswers(study, self._writer)
        simulated = extract.is_simulated
        self._rules = SiteRules(study, policy, self._writer, clock, code, simulated=simulated)
        self._results = ReceivedResults(study, self._writer, self._rules.require_running, folder)
        self._require_extract()
        self._terms = secure_sums(study.protocol).terms(study.roster)
        self._verifier = Verifier()
        self._memory = MethodMemory(self._terms, self._grid, self._verifier)
        self._rules.require_open()

    def site(self, verifier: Verifier | None = None, *, journal: Journal | None = None) -> Site:
        """Join the study: return the site's end of the protocol.

        `journal` keeps the sums of methods over a restart.
        """
        everyone = [AUTHOR, *(m.name for m in self._study.members)]
        self._study.require(self._signatures, everyone, verifier)
        self._ledger.bind(self._identity)
        problem = None if self._noisy is None else self._noisy.problem()
        if problem is not None:
            raise RefusedError(f"This site cannot take part in {self._study.title!r}: {problem}.")
        own = self._verifier if verifier is None else verifier
        self._memory = MethodMemory(self._terms, self._grid, own, journal)
        return Site(self._terms, self._identity, self, verifier=verifier, results=self._results)

    def _require_extract(self) -> None:
        """Raise `RefusedError` unless the study is answered from this extract, and no other."""
        known = self._writer.here.fingerprints.values()
        if set[str]().union(*known) - {self._extract.identity}:
            raise RefusedError(
                f"This site cannot take part in {self._study.title!r}: earlier answers in this "
                "study were from another extract. Draft a new study."
            )
        if self._writer.here.restored:
            raise RefusedError(
                f"This site cannot take part in {self._study.title!r}: its ledger was restored and "
                "lacks answers of this study. Draft a new study."
            )
        problems = self._extract.problems(self._study, self._policy)
        if problems:
            raise RefusedError(
                f"This site cannot take part in {self._study.title!r}: {'; '.join(problems)}. "
                "Freeze the table: isthmus site freeze HOME STUDY --data FILE."
            )

    # --- answers -----------------------------------------------------------------------------

    def _contribution(
        self, request: SumRequest[Any], preview: FixedPointEncoding | None = None
    ) -> LimbArray:
        """Return what the site contributes, or would contribute, in the units of a preview.

        Error messages contain no value of the data.
        """
        source = self._extract.source
        try:
            if isinstance(request, StatisticRequest):
                return request.encode(source, preview or self._grid)
            assert isinstance(request, StepRequest)
            if preview is not None:
                return request.preview(source, preview)
            return self._memory.contribution(request, source)
        except MissingExtraError as error:
            raise RefusedError(str(error)) from None
        except Exception as error:  # noqa: BLE001 - engines raise exceptions of any type
            kind = type(error).__name__
        # Neither the message nor the error as a context: both may quote data.
        raise RefusedError(
            f"The data of this site do not fit the study ({kind}); read them at the site with "
            "Frame(data, schema=study.schema) to see why."
        )

    # --- the gate of the protocol ------------------------------------------------------------

    def last_round(self) -> int:
        return self._writer.here.tally.last_round

    @refusing()
    def approve(self, opening: RoundRequest) -> LimbArray:
        self._rules.require_running()
        request = self._read(opening)
        if self._rules.violations(request):
            raise BrokenEnvelopeError(Refusal.POLICY)
        if (opening.size, opening.limbs) != (request.size(self._grid), request.limbs):
            raise BrokenEnvelopeError(Refusal.BAD_REQUEST)
        self._memory.follow(request, opening.transcript)
        if self._noisy is None:
            return self._exact(request)
        if self._noise_violations(request):
            raise BrokenEnvelopeError(Refusal.POLICY)
        try:
            return self._noisy.numbers(request, self._extract)
        except IsthmusError:
            raise BrokenEnvelopeError(Refusal.DATA) from None

    def _exact(self, request: SumRequest[Any]) -> LimbArray:
        """Return the numbers of the site without noise."""
        try:
            return self._contribution(request)
        except RefusedError:
            raise BrokenEnvelopeError(Refusal.DATA) from None

    def _noise_violations(self, request: SumRequest[Any]) -> list[str]:
        """Return a phrase for each reason why an answer with noise may not leave."""
        assert self._noisy is not None
        if self._noisy.is_taken(request):
            return ["another request was answered in this round of the study"]
        return self._rules.budget_violations(self._noisy.price(request))

    def _read(self, opening: RoundRequest) -> SumRequest[Any]:
        try:
            return read_sum_request(opening.request, self._study, self._grid)
        except IsthmusError:
            raise BrokenEnvelopeError(Refusal.BAD_REQUEST) from None

    @refusing()
    def record(self, leaving: Leaving) -> None:
        self._rules.require_running()
        if leaving.kind is EnvelopeKind.MASKED:
            self._require_told(leaving.told)
        if leaving.kind not in EVENTS:
            if leaving.active is not None:  # what has an entry is checked with it
                self._writer.require_parties(leaving.active)
            return
        opening, is_masked = leaving.request, leaving.kind is EnvelopeKind.MASKED
        opens = leaving.kind is EnvelopeKind.ADVERT
        if is_masked and leaving.public is not None:
            self._memory.answered(self._read(opening), leaving.public)
        self._writer.record(
            EVENTS[leaving.kind],
            opening.number,
            request=self._read(opening) if opens else None,
            sent=self._sent(opening) if is_masked else None,
            parties=leaving.active,
            heads=self._by_key(leaving.heads),
            seen=self._by_key(leaving.seen),
        )

    def _by_key(self, heads: Mapping[int, bytes]) -> dict[str, str]:
        return {self._study.members[j].key.hex(): head.hex() for j, head in heads.items()}

    def _require_told(self, told: Mapping[int, bytes]) -> None:
        """Raise `BrokenEnvelopeError` unless the ledger has all entries that others remember."""
        for j, head in told.items():
            if not self._writer.contains(head[:KEY]):
                missing = {"missing": head[:KEY].hex(), "told_by": self._study.members[j].name}
                raise BrokenEnvelopeError(Refusal.WITNESS, evidence=missing)

    def _sent(self, opening: RoundRequest) -> Sent:
        """Return what the ledger says about numbers that are about to leave."""
        size = size_of(KEY + 4 * opening.size * opening.limbs)
        rows = 0 if self._extract.values is None else len(self._extract.values)
        sent = Sent(opening.size, size, FORM, self._extract.identity, rows=rows)
        if self._noisy is not None:
            request = self._read(opening)
            if self._noise_violations(request):
                raise DeniedError(Denial.POLICY)
            return replace(sent, form=f"{FORM} {NOISE}", noise=self._noisy.record(request))
        return sent

    def heads(self) -> Mapping[int, bytes]:
        if not self._policy.needs_witnesses:  # a simulation: nobody keeps anything
            return {}
        remembered = self._writer.everything.signed_heads
        keys = {j: member.key.hex() for j, member in enumerate(self._study.members)}
        heads = {j: bytes.fromhex(remembered.get(k, "")) for j, k in keys.items()}
        heads[self._study.roster.position(self.name)] = self._ledger.signed_head()
        return {j: head for j, head in heads.items() if head}

    def refused(self, error: BrokenEnvelopeError, number: int, question: bytes) -> None:
        why, authentic = error.why.name.lower(), error.why not in UNAUTHENTICATED
        if question and error.why in COUNTED and not self._rules.limits():
            self._writer.record_refused_question(why, number, question)
            return
        self._writer.record_refusal(why, number, authentic=authentic, evidence=error.evidence)

    # --- for the site itself -----------------------------------------------------------------

    def dry_run(self, request: SumRequest[Any]) -> DryRun:
        """Show what would leave. Opens no connection and writes nothing."""
        violations = self._rules.violations(request)
        value, lines, protection = None, list[str](), PROTECTION
        grid, rows = self._grid, self._extract.values
        if self._noisy is not None and rows is not None:  # with noise, any number of rows fits
            grid = replace(grid, rows=max(grid.rows, len(rows)))
        try:
            self._rules.require_open()
            if self._noisy is not None and not violations:
                violations += self._noise_violations(request)
                violations += filter(None, [self._noisy.problem()])
                protection = f"{self._noisy.describe(request)}, {PROTECTION}"
            contribution = self._contribution(request, grid)
            value, lines = request.decode(contribution, grid), request.show(contribution, grid)
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


# --- The process of a site: it answers messages, which a transport brings -----------------------


@final
class SiteService:
    """Answers the messages of a coordinator for one site.

    Only the process that runs this service sees the data and the keys. A transport, for
    instance gRPC, passes messages to `handle`. What relays them sees what the coordinator sees.

    Parameters
    ----------
    state
        A folder for the ledger, for the state that must survive a crash, and for the result.
        Only one process may use it at a time.
    study, signatures, identity, extract, policy
        As for `SiteController`.
    watch
        Called with each entry of the ledger when it is written.
    """

    def __init__(
        self,
        state: str | os.PathLike[str],
        study: Study,
        signatures: Iterable[Signature],
        identity: Identity,
        extract: Extract,
        policy: Policy,
        *,
        watch: Callable[[Entry], None] = lambda _: None,
    ) -> None:
        self.state = Path(state).absolute()
        self.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.state.chmod(0o700)
        self._lock = FolderLock(self.state, "the service of the site")
        try:
            self.ledger = FileLedger(self.state / "ledger.jsonl")
            self.controller = SiteController(
                study, signatures, identity, extract, policy, self.ledger, folder=self.state
            )
            self._steps = FileJournal(self.state / f"study-{study.identity.hex()[:16]}")
            self._site = self.controller.site(journal=self._steps)
        except BaseException:
            self._lock.close()
            raise
        self._greet = partial(answer_greeting, study=study.identity, identity=identity)
        self.longest = size_of(LARGEST)
        self._watch = watch
        self._seen = len(self.ledger)
        self._one = threading.Lock()

    def handle(self, data: bytes) -> bytes:
        """Answer a message of the coordinator; one at a time."""
        if data == PING:
            return PING
        if is_greeting(data):
            return self._greet(data)
        with self._one:
            answer = self._site.handle(data)
            self._notify()
            return answer

    def reject(self) -> None:
        """Write into the ledger that something arrived that is not a message."""
        with self._one:
            self.controller.refused(BrokenEnvelopeError(Refusal.MALFORMED), 0, b"")
            self._notify()

    def _notify(self) -> None:
        entries = self.ledger.entries(self._seen)
        try:
            for entry in entries:
                self._watch(entry)
        except OSError:
            pass  # a closed terminal must not stop the site from answering
        self._seen += len(entries)

    def close(self) -> None:
        """Stop answering."""
        self._steps.close()
        self._lock.close()
