"""The controller of a party: its rules, its ledger and its journal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import AbortedError, RefusedError, StudyError
from isthmus.parties.agreement.code import code_hash
from isthmus.parties.agreement.policy import Policy
from isthmus.parties.agreement.signatures import AUTHOR, Signature
from isthmus.parties.agreement.study import Study
from isthmus.parties.disclosure.denial import DeniedError
from isthmus.parties.disclosure.rules import SiteRules
from isthmus.parties.identity import Identity
from isthmus.parties.records.events import Event
from isthmus.parties.records.ledger import Ledger
from isthmus.parties.records.ledger_writer import LedgerWriter, Sent
from isthmus.sources.vertical.protocol import (
    ALIGNED,
    ALIGNING,
    ENDED,
    REVEALING,
    SHARING,
    two_parties,
)
from isthmus.sources.vertical.requests import TwoPartyRequest
from isthmus.sources.vertical.run_journal import Decisions, NextRun, PastRun, RunJournal, next_run

VERSION = 1
"""Version of the messages between two parties."""

FORM_OF_IDENTIFIERS = "private set intersection"
FORM_OF_COLUMNS = "secret shares"


@final
class PartyController:
    """Decides what a party lets happen, and writes it down first.

    Parameters
    ----------
    study
        The study, signed by both parties.
    signatures
        Those of the author and of both parties.
    identity
        The party's key.
    policy, ledger, journal
        The party's own policy, ledger and journal.
    request
        What is computed.
    clock
        Returns the current time.
    code
        Hash of the installed package.
    """

    def __init__(
        self,
        study: Study,
        signatures: Iterable[Signature],
        identity: Identity,
        policy: Policy,
        ledger: Ledger,
        journal: RunJournal,
        request: TwoPartyRequest,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        code: str | None = None,
    ) -> None:
        self._terms = two_parties(study.protocol)
        self.name = own_name(study, identity)
        self.other = self._terms.other(self.name).name
        study.require(signatures, [AUTHOR, *(m.name for m in study.members)])
        self._study = study
        self._journal = journal
        self._request = request
        ledger.bind(identity)
        self._writer = LedgerWriter(study, policy, ledger, fixed_membership=False)
        self._rules = SiteRules(
            study, policy, self._writer, clock, code_hash() if code is None else code
        )
        self._rules.require_open()
        self._require_allowed(resumed=not journal.past().finished)
        self._fingerprint = ""

    def _require_allowed(self, *, resumed: bool) -> None:
        broken = self._rules.violations(self._request)
        if resumed:  # it was counted when it was opened
            broken = [b for b in broken if b not in self._rules.limits()]
        if broken:
            raise RefusedError(f"This party does not take part: {'; '.join(broken)}.")

    def require_same_data(self, fingerprint: str) -> None:
        """Raise `RefusedError` if earlier runs of the study were over another table."""
        if self._writer.fingerprints() - {fingerprint}:
            raise RefusedError(
                "Earlier runs of this study were over another table. Two results of different "
                "tables reveal more than one: use the same table, or draft a new study."
            )
        self._fingerprint = fingerprint

    # --- agreement with the other party --------------------------------------------------------

    def hello(self, nonce: str) -> dict[str, Any]:
        """Return what the other party must know before anything is computed."""
        past = self._journal.past()
        aligned = past.rows if self._journal.positions(past.number) is not None else 0
        return {
            "version": VERSION,
            "study": self._study.identity.hex(),
            "party": self.name,
            "request": self._request.name,
            "nonce": nonce,
            "run": past.number,
            "finished": past.finished,
            "rows": aligned,
            "decisions": past.decisions,
        }

    def agree(self, theirs: object) -> NextRun:
        """Compare the greeting of the other party with the own one, and open the run."""
        given = theirs if isinstance(theirs, Mapping) else {}
        for key, own, what in (
            ("version", VERSION, "another version of the messages"),
            ("study", self._study.identity.hex(), "another study"),
            ("party", self.other, "another name"),
            ("request", self._request.name, "another request"),
        ):
            if given.get(key) != own:
                shown = str(given.get(key))[:80]
                raise AbortedError(
                    f"{self.other!r} has {what}: {shown!r}; here it is {own!r}. Both parties must "
                    "have the same version of the package and the same signed study, and run the "
                    "same request.",
                    reason=what,
                )
        own_greeting = self.hello("")
        run = next_run(_past(own_greeting), _past(given), self.other)
        for decision, value in run.known.items():
            self._journal.decide(run.number, decision, value)
        return run

    # --- what leaves ---------------------------------------------------------------------------

    def record_aligning(self, run: NextRun, rows: int) -> None:
        """Write that identifiers are about to be compared. This is what a run costs."""
        broken = self._rules.limits()
        if broken:
            raise RefusedError(f"This party does not take part: {'; '.join(broken)}.")
        sent = Sent(rows, None, FORM_OF_IDENTIFIERS, self._fingerprint)
        what = f"{self._request}; identifiers of {rows} people: {self._knowing()}"
        self._write(ALIGNING, run.number, request=self._request, sent=sent, what=what)
        self._journal.open(run.number)

    def record_aligned(self, run: NextRun, positions: NDArray[np.intp]) -> None:
        """Write that the common people are known, and check that there are enough."""
        count = len(positions)
        self._write(ALIGNED, run.number, what=f"{count} people in common; {self._knowing()}")
        self._journal.align(run.number, positions)
        least = self._terms.minimum_cohort
        broken = [f"fewer than {least} people"] if count < least else []
        broken += self._rules.row_violations(count)
        if broken:
            self.end(run, "too few people")
            raise RefusedError(
                f"This party and {self.other!r} have {count} people in common, which is "
                f"{' and '.join(broken)}. No column was used. If there should be more, compare how "
                f"both parties write {self._terms.identifier!r}: spaces, capitals, leading zeros, "
                "hyphens."
            )

    def record_sharing(self, run: NextRun, rows: int, columns: int) -> None:
        """Write that columns are about to leave as secret shares."""
        sent = Sent(rows * columns, None, FORM_OF_COLUMNS, self._fingerprint)
        what = f"{columns} columns of {rows} people as secret shares"
        self._write(SHARING, run.number, sent=sent, what=what)

    def record_revealing(self, run: NextRun, decision: str) -> None:
        """Write that a value is about to be opened to both parties."""
        self._write(REVEALING, run.number, what=decision)

    def decided(self, run: NextRun, decision: str, value: Any) -> None:
        """Write a value that was opened."""
        self._journal.decide(run.number, decision, value)

    def end(self, run: NextRun, how: str) -> None:
        """Write that the run is over and cannot be resumed."""
        self._write(ENDED, run.number, what=how)
        self._journal.end(run.number, how)

    def decisions(self) -> Decisions:
        """Return everything that the latest run has revealed."""
        return self._journal.past().decisions

    def positions(self, run: NextRun) -> NDArray[np.intp] | None:
        """Return the rows of common people, if both parties still know them."""
        return self._journal.positions(run.number) if run.rows else None

    def _knowing(self) -> str:
        return "both parties learn which of their people the other party has"

    def _write(
        self,
        event: Event,
        number: int,
        *,
        what: str,
        request: TwoPartyRequest | None = None,
        sent: Sent | None = None,
    ) -> None:
        try:
            self._rules.require_running()
            self._writer.record(
                event,
                number,
                request=request,
                description=what,
                sent=sent,
                parties=self._study.roster.everyone if event.reveals_result else None,
            )
        except DeniedError as error:
            raise RefusedError(f"This party ends the run: {error}.") from None


def own_name(study: Study, identity: Identity) -> str:
    """Return the name under which an identity takes part in a study."""
    for member in study.members:
        if member.key == identity.public:
            return member.name
    raise StudyError("This identity is not in the roster of the study.")


def _past(greeting: Mapping[str, Any]) -> PastRun:
    """Read what a greeting says about the latest run; anything else is an error."""
    run, finished = greeting.get("run"), greeting.get("finished")
    rows, decisions = greeting.get("rows"), greeting.get("decisions")
    if (
        type(run) is not int
        or type(rows) is not int
        or type(finished) is not bool
        or not isinstance(decisions, Mapping)
        or min(run, rows) < 0
    ):
        raise AbortedError(
            "The other party sent a greeting that is not complete. Check that both parties have "
            "the same version.",
            reason="broken message",
        )
    return PastRun(run, finished, rows, dict(decisions))
