"""Writes the ledger entries of one study, before anything leaves the site."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, final

from isthmus.errors import LedgerError, RefusedError
from isthmus_joint.agreement.identity import digest
from isthmus_joint.agreement.policy import Policy
from isthmus_joint.agreement.requests import Request
from isthmus_joint.agreement.study import Study, code_hash, dependency_hash
from isthmus_joint.noise.accounting import epsilon_of
from isthmus_joint.records.journal import REFUSED, Denial, DeniedError, Event
from isthmus_joint.records.ledger import Ledger, LedgerIndex, LedgerTally
from isthmus_joint.records.ledger_entries import HASH, START

WRITTEN_IN_FULL = 100
"""Number of refusals of each kind that are all written; later ones are thinned out."""

LONGEST_REQUEST = 2**15
"""Maximum number of bytes of a request; of longer ones only the hash is written."""

EXCERPT = 500
"""Number of bytes of a refused question that are written, besides its length and its hash."""

LONGEST_DESCRIPTION = 1000
"""Maximum number of characters of the description of a request."""


@final
@dataclass(frozen=True)
class NoisyAnswer:
    """An answer with noise for differential privacy.

    Attributes
    ----------
    question
        The place of the request in the study, and its hash.
    rho
        Cost in zero-concentrated differential privacy.
    kept
        Hash of the kept answer.
    """

    question: str
    rho: float
    kept: str


@final
@dataclass(frozen=True)
class Sent:
    """A statistic that is about to leave.

    Attributes
    ----------
    numbers
        How many numbers it has.
    size
        Size of the message in bytes; ``None`` if it is not known beforehand.
    form
        How the numbers are protected.
    fingerprint
        The extract that the statistic was computed from, or a keyed fingerprint of the data.
    rows
        Number of rows of the extract; zero if nothing is said about it.
    noise
        The answer, if it has noise.
    party, columns
        The organisation of the other one of two parties, and a keyed fingerprint of each column.
    """

    numbers: int
    size: int | None
    form: str
    fingerprint: str
    rows: int = 0
    noise: NoisyAnswer | None = None
    party: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)


@final
class LedgerWriter:
    """Writes the entries of one study into the ledger of a site.

    Parameters
    ----------
    study, policy
        The study that the entries belong to, and the policy of the site.
    ledger
        The ledger of the site, which may hold entries of other studies.
    """

    def __init__(self, study: Study, policy: Policy, ledger: Ledger) -> None:
        self._study = study
        self._policy = policy
        self._ledger = ledger
        self._repetitions: Counter[str] = Counter()
        self._all, self._own = LedgerIndex(), LedgerIndex()
        self._read = 0
        self._of_a_year: tuple[str, LedgerTally] | None = None
        self._running = {
            "policy": hashlib.sha256(policy.to_toml().encode()).hexdigest(),
            "code": code_hash(),
            "dependencies": dependency_hash(),
        }

    def _update(self) -> None:
        """Read the entries that are new since the last time."""
        study = self._study.identity.hex()
        for entry in self._ledger.read(self._read):
            self._read += 1
            self._all.add(entry)
            if self._of_a_year is not None and entry["time"] >= self._of_a_year[0]:
                self._of_a_year[1].add(entry)
            if entry.get("study") == study:
                self._own.add(entry)

    @property
    def everything(self) -> LedgerIndex:
        """Facts about all entries of the ledger."""
        self._update()
        return self._all

    @property
    def here(self) -> LedgerIndex:
        """Facts about the entries of this study."""
        self._update()
        return self._own

    def count_since(self, time: datetime) -> tuple[int, int]:
        """Return how many questions were asked and statistics sent since then, in all studies.

        The whole day of that time counts. So old entries need to be read again only once per day,
        and not for each question.
        """
        day, tally = time.date().isoformat(), self.everything.tally
        if tally.earliest is not None and tally.earliest < day:
            if self._of_a_year is None or self._of_a_year[0] != day:
                entries = (e for e in self._ledger.read() if e["time"] >= day)
                self._of_a_year = day, LedgerTally.of(entries)
            tally = self._of_a_year[1]
        return tally.questions, tally.statistics

    def keep(self, data: bytes) -> str:
        """Keep an answer with noise before it is released."""
        try:
            return self._ledger.keep(data)
        except LedgerError:
            raise DeniedError(Denial.LEDGER) from None

    def noisy_answer(self, question: str) -> bytes | None:
        """Return the answer with noise that was sent to this question in this study, if any.

        Raises
        ------
        DeniedError
            The answer was sent but is lost. Another one would have other noise.
        """
        if question not in self.here.answers:
            return None
        kept = self._ledger.kept(self._own.answers[question])
        if kept is None:
            raise DeniedError(Denial.LEDGER)
        return kept

    def record(
        self,
        event: Event,
        number: int,
        *,
        request: Request | None = None,
        description: str | None = None,
        sent: Sent | None = None,
        parties: frozenset[int] | None = None,
        heads: Mapping[str, str] | None = None,
        seen: Mapping[str, str] | None = None,
        result: str | None = None,
        sites: Sequence[str] = (),
    ) -> None:
        """Write an entry, or raise `DeniedError` if it cannot be written or is not allowed.

        Parameters
        ----------
        event
            The kind of entry.
        number
            Number of the round.
        request, description
            The request, or a description if there is none.
        sent
            The statistic that is about to leave.
        parties
            Positions of the parties that the result of the round is over.
        heads
            The last entries of the other parties' ledgers, by key: this ledger is their witness.
            Each is a hash, with the signature of the owner behind it if there is one.
        seen
            The same, of parties that have not confirmed yet that they have what is remembered.
        result
            SHA-256 of a result that the site received.
        sites
            Names of the parties that have confirmed the result.
        """
        details: dict[str, Any] = {}
        if request is not None:
            details |= {"request": _plain(request), "what": str(request)[:LONGEST_DESCRIPTION]}
            details["asked"] = digest(request.to_bytes()).hex()
        if description is not None:
            details |= {
                "what": description[:LONGEST_DESCRIPTION],
                "asked": digest(description.encode()).hex(),
            }
        if sent is not None:
            details["numbers"] = sent.numbers
            if sent.size is not None:
                details["bytes"] = sent.size
            details |= {"form": sent.form, "data": sent.fingerprint}
            if sent.rows:
                details["rows"] = sent.rows
            if sent.columns:
                details |= {"with": sent.party, "columns": dict(sent.columns)}
            if sent.noise is not None:
                details |= {"asked": sent.noise.question, "rho": sent.noise.rho}
                details["answer"] = sent.noise.kept
                assert self._study.privacy is not None
                details["budget"] = self._study.privacy.rho
        if parties is not None:
            self.require_parties(parties)
            details["sites"] = self._study.roster.names(parties)
            details["keys"] = [self._study.members[i].key.hex() for i in sorted(parties)]
        given = {
            "heads": {key: head[:HASH] for key, head in (heads or {}).items()},
            "seen": {key: head[:HASH] for key, head in (seen or {}).items()},
            "result": result,
            "sites": list(sites),
        }
        details |= {key: value for key, value in given.items() if value}
        signed = {h[:HASH]: h[HASH:] for h in (*(heads or {}).values(), *(seen or {}).values())}
        if any(signed.values()):
            details["head_signatures"] = signed
        self._append(event, number, details)

    def contains(self, head: bytes) -> bool:
        """Return whether an entry has this hash; that of an empty ledger always counts."""
        return head.hex() == START or head.hex() in self.everything.hashes

    def record_refused_question(self, reason: str, number: int, question: bytes) -> None:
        """Write that a question of the coordinator was not answered. It counts as a round."""
        start = question[:EXCERPT].decode("ascii", "replace")
        details = {
            "why": reason,
            "question": "".join(c if c.isascii() and c.isprintable() else "?" for c in start),
            "bytes": len(question),
            "asked": digest(question).hex(),
        }
        try:
            self._append(REFUSED, number, details | {"counted": True})
        except DeniedError:
            return

    def record_refusal(
        self,
        reason: str,
        number: int,
        *,
        authentic: bool,
        evidence: Mapping[str, Any] | None = None,
    ) -> None:
        """Write that a message was not answered, with the evidence for the reason, if any.

        Nobody can fill the disk with refusals. Of messages that are not authentic, which anyone can
        send, and of other messages after the first hundred with the same reason, only those are
        written whose count is a power of two, together with that count.
        """
        details: dict[str, Any] = {"why": reason, **(evidence or {})}
        if self._is_worth_writing(reason, details, authentic=authentic):
            try:
                self._append(REFUSED, number, details)
            except DeniedError:
                # The ledger cannot be written. Nothing has left the site, so nothing is lost.
                return

    def _append(self, event: Event, number: int, details: dict[str, Any]) -> None:
        study = self._study.identity.hex()
        try:
            self._ledger.append(event.name, study=study, round=number, **details, **self._running)
        except LedgerError as error:
            raise DeniedError(Denial.LEDGER) from error

    def require_parties(self, parties: frozenset[int]) -> None:
        """Raise `DeniedError` unless results may be over these parties, and all others were, too.

        This is checked before a site agrees to a set of parties, and again before it is recorded.
        """
        roster, policy = self._study.roster, self._policy
        if len(roster.organisations(parties)) < policy.minimum_organisations:
            raise DeniedError(Denial.POLICY)
        keys = frozenset(self._study.members[i].key.hex() for i in parties)
        if self.here.results - {keys}:  # nobody can subtract one result of a study from another
            raise DeniedError(Denial.MEMBERSHIP)
        if policy.only_with and set(roster.names(parties)) != set(policy.only_with):
            raise DeniedError(Denial.MEMBERSHIP)

    def _is_worth_writing(
        self, what: str, details: dict[str, Any], *, authentic: bool = True
    ) -> bool:
        self._repetitions[what] += 1
        count = self._repetitions[what]
        if not authentic or count > WRITTEN_IN_FULL:
            details["frames"] = count
            return not count & (count - 1)
        return True


def _plain(request: Request) -> dict[str, Any]:
    data = request.to_bytes()
    short = len(data) <= LONGEST_REQUEST
    return request.to_dict() if short else {"sha256": digest(data).hex()}


# --- The rules that a site applies to every request: the stricter of study and policy -----------

YEAR = timedelta(days=365)
REPETITIONS = 10
"""On average, a question may be repeated this often after rounds that failed."""


@final
class SiteRules:
    """Decides whether a request may be answered, whatever its protocol.

    Parameters
    ----------
    study, policy
        The study that the site has countersigned, and the site's own policy.
    writer
        The site's ledger, which knows what was answered before.
    clock
        Returns the current time.
    code
        Hash of the installed package.
    simulated
        Whether the data are simulated, so that any basis functions may be asked for.
    """

    def __init__(
        self,
        study: Study,
        policy: Policy,
        writer: LedgerWriter,
        clock: Callable[[], datetime],
        code: str,
        *,
        simulated: bool = False,
    ) -> None:
        policy.require(study)
        self._study = study
        self._policy = policy
        self._writer = writer
        self._clock = clock
        self._code = code
        self._simulated = simulated

    def _closed(self) -> tuple[Denial, str] | None:
        """Return why the site answers nothing at all, for programs and for people."""
        stop_file = self._policy.stop_path
        if stop_file.exists():
            return Denial.STOPPED, (
                f"The site is stopped because the file {stop_file} exists. Whoever created it may "
                "remove it."
            )
        if self._clock() >= self._study.expires:
            return Denial.EXPIRED, "The study has expired. Its author may draft a new one."
        if self._code not in self._study.code:
            return Denial.OTHER_CODE, (
                f"The installed package has the hash {self._code}, which the study does not list. "
                "Install a version that the study lists."
            )
        return None

    def require_open(self) -> None:
        """Raise `RefusedError` with a sentence if the site answers nothing at all."""
        closed = self._closed()
        if closed is not None:
            raise RefusedError(closed[1])

    def require_running(self) -> None:
        """Raise `DeniedError` with a code if the site answers nothing at all."""
        closed = self._closed()
        if closed is not None:
            raise DeniedError(closed[0])

    def violations(self, request: Request) -> list[str]:
        """Return a phrase for each rule of the study and of the policy that a request breaks."""
        broken = []
        if request.name not in self._study.requests:
            broken.append(f"the study does not allow requests for {request.name}")
        if request.name not in self._policy.requests:
            broken.append(f"the policy does not allow requests for {request.name}")
        if not self._simulated:
            broken += request.window_violations(self._study)
        return broken + request.violations(self._study) + self.limits()

    def limits(self) -> list[str]:
        """Return a phrase for each limit on rounds and queries that is reached."""
        broken = []
        opened = self._writer.here.tally.questions
        limit = min(self._study.rounds, self._policy.rounds_per_study)
        if opened >= limit:
            broken.append(f"{opened} rounds were opened in this study; {limit} are allowed")
        openings = self._writer.here.tally.openings
        if openings >= REPETITIONS * max(limit, REPETITIONS):
            broken.append(f"{openings} rounds were opened and few of them were completed")
        rounds, queries = self._writer.count_since(self._clock() - YEAR)
        for number, limit, name in (
            (rounds, self._policy.rounds_per_year, "rounds"),
            (queries, self._policy.queries_per_year, "queries"),
        ):
            if number >= limit:
                broken.append(f"the policy allows {limit} {name} per year")
        return broken

    def budget_violations(self, rho: float) -> list[str]:
        """Return a phrase for each budget that another answer of this cost exceeds."""
        policy, privacy = self._policy, self._study.privacy
        if rho == 0.0:
            return []
        broken = []
        own, whole = self._writer.here.rho(), 0.0 if privacy is None else privacy.rho
        # The first answer needs room for the whole study: a series of rounds is not cut short.
        total = self._writer.everything.rho() - own + max(whole, own + rho)
        if epsilon_of(total, policy.maximum_delta) > policy.epsilon_limit:
            limit = f"ε = {policy.maximum_epsilon:g} at δ = {policy.maximum_delta:g}"
            broken.append(f"the policy allows {limit} over all studies")
        if own + rho > whole * (1 + 1e-9):
            broken.append("the budget of the study is used up")
        return broken

    def row_violations(self, rows: int) -> list[str]:
        """Return a phrase if the policy does not allow results of so few rows."""
        least = self._policy.minimum_cohort
        return [f"fewer than {least} rows"] if rows < least else []
