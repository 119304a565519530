"""The controller of a party: its rules, its ledger and its journal."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import AbortedError, RefusedError, counted
from isthmus.results.reading import Release
from isthmus_joint.agreement.identity import AUTHOR, Identity, Signature, Verifier, digest
from isthmus_joint.agreement.policy import Policy
from isthmus_joint.agreement.study import Study, code_hash
from isthmus_joint.extracts.checks import broken_rules
from isthmus_joint.records.journal import Denial, DeniedError, Event
from isthmus_joint.records.ledger import Ledger
from isthmus_joint.records.ledger_entries import START, Entry
from isthmus_joint.records.ledger_writer import LedgerWriter, Sent, SiteRules
from isthmus_joint.shares.openings import (
    HASH_DIGITS,
    NextRun,
    PastRun,
    RunJournal,
    incomplete,
    next_run,
    other_tables,
    people_violations,
    read_head,
    read_number,
    read_past,
    table_violations,
)
from isthmus_joint.shares.party_table import PartyTable, constant_columns, material_of, stricter
from isthmus_joint.shares.private_k2 import table_label
from isthmus_joint.shares.protocol import ALIGNED, ALIGNING, ENDED, REVEALING, SHARING, two_parties
from isthmus_joint.shares.requests import IntersectionSize, OwnTables, TwoPartyRequest

VERSION = 6
"""Version of the messages between two parties."""

ATTEMPTS = 20
"""How often columns may leave as shares in one run, after crashes or for another reason."""

GREETING = b"isthmus greeting of two parties"
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
        self._identity = identity
        self._policy = policy
        self.journal = journal
        self._request = request
        self._ledger = ledger
        ledger.bind(identity)
        self._writer = LedgerWriter(study, policy, ledger)
        self._rules = SiteRules(
            study, policy, self._writer, clock, code_hash() if code is None else code
        )
        self._rules.require_open()
        self._require_allowed()
        self._table: PartyTable | None = None
        self.other_people = 0
        self._seen: dict[str, str] = {}
        self._heads: dict[str, str] = {}
        self._evidence: dict[str, str] = {}

    def _require_allowed(self) -> None:
        """Raise `RefusedError` for what is not allowed, but for limits, which a comparison meets.

        The other party may need the end of a run that has ended here and was counted.
        """
        limits = self._rules.limits()
        broken = [b for b in self._rules.violations(self._request) if b not in limits]
        broken += table_violations(self._study, self._policy)
        if broken:
            raise RefusedError(f"This party does not take part: {'; '.join(broken)}.")

    def bring(self, table: PartyTable) -> None:
        """Take the party's table, or raise `RefusedError` if it can be told that no run may follow.

        What is refused here costs nothing: no identifiers are compared.
        """
        broken = other_tables(self._writer, table)
        if broken:
            last = self._writer.here.tally.last_round
            text = f"This party does not take part: {'; '.join(broken)}."
            raise self._refusal(Denial.OTHER_DATA, last, text)
        if table.persons is not None and not self._terms.knows(self.name):
            raise self._refusal(
                Denial.POLICY,
                self._past().number,
                "The policy counts persons by a column. This party does not learn which of its "
                "people are common, so that it cannot count the persons behind them.",
            )
        if self._past().number > self._writer.here.tally.last_round:
            raise self._refusal(
                Denial.LEDGER,
                self._past().number,
                "The journal of this study has a run that the ledger does not. The ledger was "
                "replaced or truncated, and with it what this party has released and how often: "
                "restore it from a backup.",
            )
        self._table = table

    # --- agreement with the other party --------------------------------------------------------

    def claims(self) -> dict[str, Any]:
        """Return what the other party must know before anything is computed."""
        past = self._past()
        return {
            "version": VERSION,
            "study": self._study.identity.hex(),
            "party": self.name,
            "request": self._request.name,
            "people": len(self._brought.identifiers),
            "run": past.number,
            "finished": past.finished,
            "closed": past.closed,
            "rows": past.rows,
            "sessions": dict(past.sessions),
            "head": self.head(),
            "witnessed": self._writer.everything.signed_heads.get(self._other_key, START),
        }

    def _past(self) -> PastRun:
        """Return the latest run; its number of people only if it is known who they are."""
        past = self.journal.past(self._request.name)
        known = self.journal.positions(past.number) is not None
        return past if known else replace(past, rows=0)

    def hello(self, nonces: tuple[str, str]) -> dict[str, str]:
        """Return the claims of this party, signed by its identity and bound to this connection.

        Parameters
        ----------
        nonces
            A random number of each party, the own one first.
        """
        text = json.dumps({**self.claims(), **self._bound(self.name, self.other, nonces)})
        return {"text": text, "signature": self._identity.sign(GREETING + text.encode()).hex()}

    def _bound(self, sender: str, receiver: str, nonces: tuple[str, str]) -> dict[str, Any]:
        certificates = [self._terms.holding(name).certificate for name in (sender, receiver)]
        return {"nonces": list(nonces), "certificates": certificates}

    def agree(self, theirs: object, nonces: tuple[str, str]) -> NextRun:
        """Compare the greeting of the other party with the own one, and return the run."""
        given = self._verified(theirs, nonces)
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
        run = next_run(self._past(), read_past(given, 2 * self._study.rounds), self.other)
        self.other_people = read_number(given.get("people"))
        self._seen = {self._other_key: read_head(given.get("head"), self._key(self.other))}
        # Only what this party has signed can be held against its ledger.
        witnessed = read_head(given.get("witnessed"), self._key(self.name))[:HASH_DIGITS]
        if not self._writer.contains(bytes.fromhex(witnessed)):
            self._evidence = {"missing": witnessed}
            raise self._refusal(
                Denial.LEDGER,
                run.number,
                f"{self.other!r} has seen an entry of this party's ledger that the ledger does not "
                "contain any more. It was replaced or truncated: restore it from a backup.",
            )
        self._require_journal(run)
        return run

    def _require_journal(self, run: NextRun) -> None:
        """Raise `RefusedError` if a value whose share may have left could be opened again."""
        spent = [label for label, held in self.journal.shares(run.number).items() if held.spent]
        lost = [label for label in spent if label not in run.settled]
        if lost:
            why = (
                f"This party has sent its share of {lost[0]!r}, and {self.other!r} does not have "
                "the share any more that it had committed to."
            )
        elif self._opened(run) - set(map(_hashed, spent)):
            why = (
                "This party's ledger has values that were opened in this run, and its journal does "
                "not: it was lost or replaced."
            )
        else:
            return
        self.end(run, "an opening was interrupted")
        raise self._refusal(
            Denial.POLICY,
            run.number,
            f"{why} The value is not opened again: this run is over. The next one counts.",
        )

    def _entries(self, event: Event, run: NextRun) -> list[Entry]:
        """Return the entries of the ledger about a run."""
        place = event.name, self._study.identity.hex(), run.number
        keys = ("event", "study", "round")
        return [entry for entry in self._ledger.read() if tuple(map(entry.get, keys)) == place]

    def _opened(self, run: NextRun) -> set[str]:
        """Return hashes of the labels of values of which a share may have left."""
        return {entry["asked"] for entry in self._entries(REVEALING, run)}

    def _verified(self, theirs: object, nonces: tuple[str, str]) -> Mapping[str, Any]:
        """Return the claims of a greeting, if the identity of the other party has signed them."""
        greeting = theirs if isinstance(theirs, Mapping) else {}
        text, signature = (str(greeting.get(key, "")) for key in ("text", "signature"))
        try:
            given, value = json.loads(text), bytes.fromhex(signature)
        except (ValueError, RecursionError):
            given, value = None, b""
        if not isinstance(given, dict):
            raise incomplete()
        bound = self._bound(self.other, self.name, nonces[::-1])
        signed = GREETING + text.encode()
        if not Verifier().verify(self._study.key_of(self.other), value, signed) or any(
            given.get(key) != expected for key, expected in bound.items()
        ):
            raise AbortedError(
                f"What answers has the certificate of {self.other!r} and did not sign this "
                "greeting with its identity, the key that the study names. Someone may have copied "
                "the certificate's key: ask the other party.",
                reason="wrong identity",
            )
        return given

    def head(self) -> str:
        """Return the hash of the ledger's last entry, signed, for the other party to remember."""
        return self._ledger.signed_head().hex() or START

    def witness(self, head: object) -> None:
        """Remember the last entry of the other party's ledger, which has taken part in the run."""
        self._heads = {self._other_key: read_head(head, self._key(self.other))}

    def _key(self, name: str) -> bytes:
        return self._study.key_of(name)

    @property
    def _other_key(self) -> str:
        return self._key(self.other).hex()

    @property
    def _other_owner(self) -> str:
        """The organisation of the other party, which stays the same when its key changes."""
        return self._study.members[self._study.roster.position(self.other)].organisation

    # --- what leaves ---------------------------------------------------------------------------

    def record_aligning(self, run: NextRun) -> None:
        """Write that identifiers are about to be compared. This is what a run costs."""
        table = self._brought
        rows = len(table.identifiers)
        broken = self._rules.limits()
        for name, people in ((self.name, rows), (self.other, self.other_people)):
            broken += people_violations(self._terms, name, people)
        if broken:
            raise self._declined(run, broken)
        sent = Sent(rows, None, FORM_OF_IDENTIFIERS, table.fingerprint)
        # Each comparison is described, and so counted, as one of its own: it is spent when it
        # begins, because the other party may know its result before this one does.
        what = (
            f"{self._request}; comparison {self._writer.here.tally.openings + 1} of identifiers, "
            f"of {rows} people here and {self.other_people} at {self.other}: {self._knowing()}"
        )
        self._write(ALIGNING, run.number, request=self._request, sent=sent, what=what)
        self.journal.open(run.number, self._request.name)

    def record_aligned(self, run: NextRun, positions: NDArray[np.intp], count: int) -> None:
        """Write how many people are common, and check that there are enough."""
        self._write(ALIGNED, run.number, what=f"{count} people in common; {self._knowing()}")
        self.journal.align(run.number, positions, count)
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
        what = f"{count or f'fewer than {self._terms.minimum_cohort}'} people in common"
        self._write(ALIGNED, run.number, what=f"{what}; {self._knowing()}")

    def record_sharing(self, run: NextRun, positions: NDArray[np.intp]) -> None:
        """Check the rules on the rows of common people, and write that columns leave as shares.

        The rules are applied to everything that the study allows, whatever is requested now. A
        party that does not know who the people in common are applies them to all its rows.
        """
        table = self._brought
        if len(self._entries(SHARING, run)) >= ATTEMPTS:
            self.end(run, "too many attempts")
            text = f"Columns have left {ATTEMPTS} times in this run, which did not end. It is over."
            raise self._refusal(Denial.POLICY, run.number, f"{text} The next one counts.")
        positions = positions[positions >= 0]
        constant = constant_columns(self._study, table, positions)
        if constant:
            raise self._refusal(
                Denial.DATA,
                run.number,
                f"{constant[:10]} are constant among the people in common; leave them out.",
            )
        material = material_of(self._study, self.name, table, positions)
        broken = broken_rules(material, stricter(self._policy, self._study))
        if broken:
            raise self._declined(run, broken)
        prints = table.fingerprints(self._study.schema, positions, self._ledger.secret())
        newer = self._study.identity.hex() in self._policy.newer_values
        known = self._writer.here if newer else self._writer.everything
        shared = known.columns.get(self._other_owner, {})
        others = [name for name, own in prints.items() if shared.get(name, {own}) != {own}]
        if others:
            raise self._refusal(
                Denial.OTHER_DATA,
                run.number,
                f"This party does not take part: {others[:10]} were shared with {self.other!r} "
                "before, with other values or of other people. The difference of two results "
                "could describe one person. Use the table of the earlier runs, or draft another "
                "study: if whoever is responsible for the data accepts that the difference is "
                "about those whose values changed, run 'isthmus party policy HOME STUDY "
                "--newer-values'.",
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
        what = f"{counted(columns, 'column')} of {len(positions)} people as secret shares"
        self._write(SHARING, run.number, sent=sent, what=what)

    @property
    def _brought(self) -> PartyTable:
        assert self._table is not None
        return self._table

    def spend(self, run: NextRun, label: str) -> None:
        """Write that a share of a value is about to leave, once however often that is tried."""
        if _hashed(label) in self._opened(run):
            self._rules.require_open()
        else:
            self._write(REVEALING, run.number, what=label)

    def end(self, run: NextRun, how: str) -> None:
        """Write that the run is over and cannot be resumed."""
        self._write(ENDED, run.number, what=how)
        self.journal.end(run.number, how)

    def positions(self, run: NextRun) -> NDArray[np.intp] | None:
        """Return the rows of common people, if both parties still know them."""
        return self.journal.positions(run.number) if run.rows else None

    def _knowing(self) -> str:
        if self._request.name == IntersectionSize.name:
            return "both learn this number"
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
        self.require_running(number)
        try:
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
            raise self._ended(error, number) from None
        # The next entry is written after the other party has answered, and so has not refused.
        self._heads, self._seen = self._seen, {}

    def require_running(self, number: int) -> None:
        """Raise `RefusedError` if the stop file exists, or the study has expired."""
        try:
            self._rules.require_running()
        except DeniedError as error:
            raise self._ended(error, number) from None

    def _ended(self, error: DeniedError, number: int) -> RefusedError:
        why = str(error.__cause__ or error).rstrip(".")
        return self._refusal(error.reason, number, f"This party ends the run: {why}.")

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


def _hashed(label: str) -> str:
    return digest(label.encode()).hex()


# --- What each of two parties released for a run, and who learned it ----------------------------


def releases(
    study: Study, request: TwoPartyRequest, rows: int, outcome: dict[str, Any]
) -> list[Release]:
    """Return what each party released to the other for one run, and learned from it."""
    terms = two_parties(study.protocol)
    first, second = terms.parties
    names = f"{first.name} and {second.name}"
    entries = [Release(names, "how many people each of them brought", "to both", 2)]
    if request.name == IntersectionSize.name:
        found = Release(names, f"{request}; both learned it", FORM_OF_IDENTIFIERS, 1)
        return [*entries, found]
    for party, other in ((first, second), (second, first)):
        what, size = f"which of the people of {other.name} it has, too", rows
        if not terms.knows(other.name):
            what, size = f"how many of the people of {other.name} it has, too", 1
        entries += [
            Release(party.name, f"{what}; {other.name} learned that", FORM_OF_IDENTIFIERS, size),
            Release(
                party.name,
                f"{counted(len(party.columns), 'column')}, of which {other.name} learned nothing "
                "but the results if it followed the protocol",
                FORM_OF_COLUMNS,
                rows * len(party.columns),
            ),
        ]
    entries.append(Release(names, str(request), "to both", _numbers(outcome)))
    return entries


def _numbers(outcome: Mapping[str, Any]) -> int:
    """Return how many numbers both parties learned."""
    if "parents" in outcome:
        return len(outcome.get("steps", outcome["parents"]))
    return sum(np.size(outcome[name]) for name in ("shift", "sums", "gram"))


def table_releases(study: Study, parents: Mapping[str, Sequence[str]]) -> list[Release]:
    """Return which tables over columns of both parties were opened, and to whom."""
    if OwnTables.name not in study.requests:
        return []
    terms, schema = two_parties(study.protocol), study.schema
    entries = []
    for owner, other in (terms.parties, terms.parties[::-1]):
        for name in owner.columns:
            if not set(parents[name]).intersection(other.columns):
                continue
            cells = math.prod(len(schema[v].levels) for v in (name, *parents[name]))
            what = table_label(name, parents[name], owner.name, terms.minimum_cell)
            entries.append(Release(other.name, what, f"to {owner.name}", cells))
    return entries
