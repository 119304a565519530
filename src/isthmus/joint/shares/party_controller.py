"""The controller of a party: its rules, its ledger and its journal."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import AbortedError, RefusedError
from isthmus.joint.agreement.code import code_hash
from isthmus.joint.agreement.identity import Identity
from isthmus.joint.agreement.policy import Policy
from isthmus.joint.agreement.signatures import AUTHOR, Signature
from isthmus.joint.agreement.study import Study
from isthmus.joint.cohorts.checks import broken_rules
from isthmus.joint.records.events import Denial, DeniedError, Event
from isthmus.joint.records.ledger import Ledger
from isthmus.joint.records.ledger_entries import START
from isthmus.joint.records.ledger_writer import LedgerWriter, Sent
from isthmus.joint.records.site_rules import SiteRules
from isthmus.joint.shares.party_table import PartyTable, constant_columns, material_of
from isthmus.joint.shares.protocol import (
    ALIGNED,
    ALIGNING,
    ENDED,
    REVEALING,
    SHARING,
    two_parties,
)
from isthmus.joint.shares.requests import IntersectionSize, OwnTables, TwoPartyRequest
from isthmus.joint.shares.run_journal import Decisions, NextRun, PastRun, RunJournal, next_run

VERSION = 2
"""Version of the messages between two parties."""

HASH = re.compile("[0-9a-f]{64}")
FORM_OF_IDENTIFIERS = "private set intersection"
FORM_OF_COLUMNS = "secret shares"


@final
class PartyController:
    """Decides what a party lets happen, and writes it down first."""

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
        self.name = study.name_of(identity)
        self.other = self._terms.other(self.name).name
        study.require(signatures, [AUTHOR, *(m.name for m in study.members)])
        self._study = study
        self._policy = policy
        self._journal = journal
        self._request = request
        self._ledger = ledger
        ledger.bind(identity)
        self._writer = LedgerWriter(study, policy, ledger)
        self._rules = SiteRules(
            study, policy, self._writer, clock, code_hash() if code is None else code
        )
        self._rules.require_open()
        self._require_allowed(resumed=not journal.past().finished)
        self._table: PartyTable | None = None
        self._seen: dict[str, str] = {}
        self._heads: dict[str, str] = {}
        self._evidence: dict[str, str] = {}

    def _require_allowed(self, *, resumed: bool) -> None:
        broken = self._rules.violations(self._request)
        if OwnTables.name in self._study.requests:
            broken += OwnTables.of(self._study).violations(self._study)
            least = self._policy.minimum_cell
            if self._terms.minimum_cell < least:
                broken.append(
                    f"the study releases tables with cells of {self._terms.minimum_cell} people; "
                    f"the policy needs at least {least}"
                )
        if resumed:  # it was counted when it was opened
            broken = [b for b in broken if b not in self._rules.limits()]
        if broken:
            raise RefusedError(f"This party does not take part: {'; '.join(broken)}.")

    def bring(self, table: PartyTable) -> None:
        """Take the party's table, or raise `RefusedError` if earlier runs were over another one."""
        known = self._writer.here.fingerprints.get(ALIGNING.name, set())
        if known - {table.fingerprint}:
            raise self._refusal(
                Denial.OTHER_DATA,
                self._writer.here.tally.last_round,
                "Earlier runs of this study were over another table. Two results of different "
                "tables reveal more than one: use the same table, or draft a new study.",
            )
        self._table = table

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
            "head": self._writer.head().hex(),
            "witnessed": self._writer.everything.heads.get(self._other_key, START),
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
        self._seen = {self._other_key: read_head(given.get("head")).hex()}
        witnessed = read_head(given.get("witnessed"))
        if not self._writer.contains(witnessed):
            self._evidence = {"missing": witnessed.hex()}
            raise self._refusal(
                Denial.LEDGER,
                run.number,
                f"{self.other!r} has seen an entry of this party's ledger that the ledger does not "
                "contain any more. It was replaced or truncated: restore it from a backup.",
            )
        for decision, value in run.known.items():
            self._journal.decide(run.number, decision, value)
        return run

    def head(self) -> str:
        """Return the hash of the last entry of the ledger, for the other party to remember."""
        return self._writer.head().hex()

    def witness(self, head: object) -> None:
        """Remember the last entry of the other party's ledger, which has taken part in the run."""
        self._heads = {self._other_key: read_head(head).hex()}

    @property
    def _other_key(self) -> str:
        return self._study.key_of(self.other).hex()

    @property
    def _other_owner(self) -> str:
        """The organisation of the other party, which stays the same when its key changes."""
        return self._study.members[self._study.roster.position(self.other)].organisation

    # --- what leaves ---------------------------------------------------------------------------

    def record_aligning(self, run: NextRun) -> None:
        """Write that identifiers are about to be compared. This is what a run costs."""
        broken = self._rules.limits()
        if broken:
            raise self._declined(run, broken)
        table = self._brought
        rows = len(table.hashes)
        sent = Sent(rows, None, FORM_OF_IDENTIFIERS, table.fingerprint)
        what = f"{self._request}; identifiers of {rows} people: {self._knowing()}"
        self._write(ALIGNING, run.number, request=self._request, sent=sent, what=what)
        self._journal.open(run.number)

    def record_aligned(self, run: NextRun, positions: NDArray[np.intp], count: int) -> None:
        """Write how many people are common, and check that there are enough."""
        self._write(ALIGNED, run.number, what=f"{count} people in common; {self._knowing()}")
        self._journal.align(run.number, positions, count)
        least = self._terms.minimum_cohort
        broken = [f"fewer than {least} people"] if count < least else []
        broken += self._rules.row_violations(count)
        if broken:
            self.end(run, "too few people")
            raise self._refusal(
                Denial.POLICY,
                run.number,
                f"This party and {self.other!r} have {count} people in common, which is "
                f"{' and '.join(broken)}. No column was used. If there should be more, compare how "
                f"both parties write {self._terms.identifier!r}: spaces, capitals, leading zeros, "
                "hyphens.",
            )

    def record_counted(self, run: NextRun, count: int) -> None:
        """Write that the number of common people is known, and nothing else."""
        self._write(ALIGNED, run.number, what=f"{count} people in common; {self._knowing()}")

    def record_sharing(self, run: NextRun, positions: NDArray[np.intp]) -> None:
        """Check the rules on the rows of common people, and write that columns leave as shares.

        The rules are applied to everything that the study allows, whatever is requested now. A
        party that does not know who the people in common are applies them to all its rows.
        """
        table = self._brought
        positions = positions[positions >= 0]
        if table.persons is not None and not self._terms.knows(self.name):
            raise self._refusal(
                Denial.POLICY,
                run.number,
                "The policy counts persons by a column. This party does not learn which of its "
                "people are common, so that it cannot count the persons behind them.",
            )
        constant = constant_columns(self._study, table, positions)
        if constant:
            raise self._refusal(
                Denial.DATA,
                run.number,
                f"{constant[:10]} are constant among the people in common; leave them out.",
            )
        material = material_of(self._study, self.name, table, positions)
        broken = broken_rules(material, self._policy)
        if broken:
            raise self._declined(run, broken)
        prints = table.fingerprints(self._study.schema, positions, self._ledger.secret())
        shared = self._writer.everything.columns.get(self._other_owner, {})
        others = [name for name, own in prints.items() if shared.get(name, {own}) != {own}]
        if others:
            raise self._refusal(
                Denial.OTHER_DATA,
                run.number,
                f"This party does not take part: {others[:10]} were shared with {self.other!r} "
                "before, with other values or of other people. The difference of two results "
                "could describe one person. Use the table of the earlier runs.",
            )
        columns = len(table.names)
        sent = Sent(
            len(positions) * columns,
            None,
            FORM_OF_COLUMNS,
            table.fingerprint,
            party=self._other_owner,
            columns=prints,
        )
        what = f"{columns} columns of {len(positions)} people as secret shares"
        self._write(SHARING, run.number, sent=sent, what=what)

    @property
    def _brought(self) -> PartyTable:
        assert self._table is not None
        return self._table

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
        if self._request.name == IntersectionSize.name:
            return "both learn this number, and nobody learns who they are"
        return self._terms.knowing

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
                heads=self._heads,
                seen=self._seen,
            )
        except DeniedError as error:
            text = f"This party ends the run: {error}."
            raise self._refusal(error.reason, number, text) from None
        # The next entry is written after the other party has answered, and so has not refused.
        self._heads, self._seen = self._seen, {}

    def _refusal(self, why: Denial, number: int, text: str) -> RefusedError:
        """Write why this party refuses; the other party learns only that it does."""
        self._writer.record_refusal(why.value, number, authentic=True, evidence=self._evidence)
        return RefusedError(text)

    def _declined(self, run: NextRun, broken: list[str]) -> RefusedError:
        text = f"This party does not take part: {'; '.join(broken)}."
        return self._refusal(Denial.POLICY, run.number, text)

    def refused_by_engine(self, run: NextRun, text: str) -> RefusedError:
        """Return the error for data that the engine cannot use."""
        return self._refusal(Denial.DATA, run.number, text)


def read_head(head: object) -> bytes:
    """Return the hash of a ledger's entry from a message; anything else is an error."""
    text = head if isinstance(head, str) else ""
    if not HASH.fullmatch(text):
        raise AbortedError(
            "The other party sent a hash of its ledger that is not one. Check that both parties "
            "have the same version.",
            reason="broken message",
        )
    return bytes.fromhex(text)


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
