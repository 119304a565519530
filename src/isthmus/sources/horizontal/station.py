"""A site at work: its data, its policy, its ledger, and its part in the protocol."""

from __future__ import annotations

import copy
import hashlib
import hmac
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TypeAlias, final

from isthmus.errors import (
    DataError,
    IsthmusError,
    MissingExtraError,
    RefusedError,
    StudyError,
)
from isthmus.federated.admm.consensus import Client
from isthmus.federated.admm.requests import AskConsensus, AskNetworks
from isthmus.federated.admm.snapshot import overlay, snapshot
from isthmus.parties.agreement.policy import Policy
from isthmus.parties.agreement.study import AUTHOR, Method, Signature, Study, code_hash
from isthmus.parties.disclosure.cells import smallest_cell
from isthmus.parties.disclosure.dryrun import DryRun
from isthmus.parties.identity import KEY, Identity, Verifier
from isthmus.parties.records.journal import Slot
from isthmus.parties.records.ledger import Ledger
from isthmus.parties.records.ledger_writer import OPENINGS, SENDINGS, Book
from isthmus.sources.base import Source
from isthmus.sources.horizontal.requests.sums import (
    AskCounts,
    AskTotals,
    Matrix,
    Request,
    read_request,
)
from isthmus.sources.horizontal.secure_sum.frames import (
    BrokenFrameError,
    FrameKind,
    Opening,
    Refusal,
    size_of,
)
from isthmus.sources.horizontal.secure_sum.keeper import Keeper
from isthmus.sources.horizontal.secure_sum.site import Site
from isthmus.sources.horizontal.secure_sum.words import Words
from isthmus.sources.tables.frame import Frame
from isthmus.sources.tables.lazy import Lazy, is_lazy
from isthmus.sources.tables.series import Series
from isthmus.statistics import Counts, Kind, Moments, Plan, Schema

YEAR = timedelta(days=365)
Step: TypeAlias = AskConsensus | AskNetworks
STEPS = (AskConsensus, AskNetworks)


@final
class Station(Keeper):
    """Decides what leaves a site: the stricter of study and policy.

    Parameters
    ----------
    study
        The study, which the site has countersigned.
    signatures
        At least those of the author and of this site.
    identity
        The site's key.
    data
        The site's table or source, with the variables of the study.
    policy, ledger
        The site's own.
    clock
        Tells the time.
    code
        Hash of the installed package.
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
    ) -> None:
        names = [m.name for m in study.members if m.key == identity.public]
        if not names:
            raise StudyError("This identity is not in the roster of the study.")
        self.name = names[0]
        study.require(signatures, [AUTHOR, self.name])
        policy.require(study)
        self._study = study
        self._identity = identity
        self._policy = policy
        self._ledger = ledger
        self._clock = clock
        self._code = code_hash() if code is None else code
        self._data = data
        self._checked = False
        self._book = Book(study, policy, ledger)
        self._client: Client | None = None
        self._kept = b""
        self._steps: dict[tuple[str, ...], Moments] = {}
        self._require_open()

    def site(self, verifier: Verifier | None = None, *, slot: Slot | None = None) -> Site:
        """The protocol's end at this site; `slot` keeps over a restart where to go on."""
        return Site(self._study.terms, self._identity, self, verifier=verifier, slot=slot)

    @cached_property
    def _source(self) -> Source:
        """The data, read as the study says."""
        return local_source(self._data, self._study.schema)

    # --- rules -----------------------------------------------------------------------------

    def _require_open(self) -> None:
        if self._policy.stop_file.exists():
            raise RefusedError(
                f"The site is stopped: the file {self._policy.stop_file} exists. "
                "Whoever put it there may take it away."
            )
        if self._clock() >= self._study.expires:
            raise RefusedError("The study has expired. Its author may write a new one.")
        if self._code not in self._study.code:
            raise RefusedError(
                f"The installed package has the hash {self._code}, which the study does not name. "
                "Install the version that the study names."
            )

    def last_round(self) -> int:
        """The highest round ever opened in this study."""
        return self._book.last_round()

    def _rules(self, request: Request) -> list[str]:
        """What of the study and the policy stands against a request."""
        study, policy, found = self._study, self._policy, list[str]()
        if request.message not in study.messages:
            found.append(f"the study does not allow {request.message.value}")
        if request.message not in policy.messages:
            found.append(f"the policy does not allow {request.message.value}")
        if isinstance(request, STEPS) and study.method is not Method.ADMM:
            found.append("the method of the study is not ADMM")
        if isinstance(request, AskCounts) and not _within(request.plan, study.plan):
            found.append("the study does not plan these tables")
        return found + self._caps()

    def _caps(self) -> list[str]:
        """Which limits on rounds and queries are reached."""
        study, policy, found = self._study, self._policy, []
        opened = sum(e["event"] in OPENINGS for e in self._book.past())
        limit = min(study.rounds, policy.rounds_per_study)
        if opened >= limit:
            found.append(f"{opened} rounds were opened in this study, {limit} are allowed")
        since = (self._clock() - YEAR).isoformat()
        recent = [e["event"] for e in self._ledger.entries() if e["time"] >= since]
        for events, most, what in (
            (OPENINGS, policy.rounds_per_year, "rounds"),
            (SENDINGS, policy.queries_per_year, "statistics"),
        ):
            if sum(event in events for event in recent) >= most:
                found.append(f"{most} {what} a year are allowed by the policy")
        return found

    def _gathered(
        self, request: Request, *, dry: bool = False
    ) -> tuple[Moments | Counts, Moments | Counts | Matrix, Words]:
        """The statistic, and what of it is sent, checked; messages hold no value of the data."""
        try:
            self._require_bounds()
            found = self._gather(request)
            sent: Moments | Counts | Matrix = found
            if isinstance(request, STEPS) and isinstance(found, Moments):
                sent = self._stepped(request, found, dry=dry)
            return found, sent, request.encode(sent, self._study.grid)
        except MissingExtraError as error:
            raise RefusedError(str(error)) from None
        except Exception as error:  # noqa: BLE001 - engines raise what they like
            kind = type(error).__name__
        # Messages about data may quote them: only the kind of the error is passed on, and not as
        # the context of another one.
        raise RefusedError(
            f"The data of this site do not fit the study ({kind}). "
            "Read them here with Frame(data, schema=study.schema) to see why."
        )

    def _gather(self, request: Request) -> Moments | Counts:
        """Compute the statistic; ADMM asks for the same moments in every step."""
        if not isinstance(request, STEPS):
            return request.gather(self._source)
        if request.names not in self._steps:
            self._steps[request.names] = request.gather(self._source)
        return self._steps[request.names]

    def _stepped(self, request: Step, found: Moments, *, dry: bool) -> Matrix:
        """Do a step of ADMM; a dry run leaves its state be."""
        client = copy.copy(self._client) if dry else self._client
        if client is None and self._kept:
            client = request.client(self._source, found)
            overlay(client, self._kept)
        if request.step == 1 and (client is None or client.step > 1):
            client = request.client(self._source, found)
        if client is None:
            raise RefusedError("ADMM begins with step 1.")
        sent = client.answer(request.step, request.common(), request.rho)
        if not dry:
            self._client = client
        return sent

    def _cohort_rules(self, found: Moments | Counts) -> list[str]:
        against = []
        if found.n < self._policy.minimum_cohort:
            against.append(f"fewer than {self._policy.minimum_cohort} rows")
        least = smallest_cell(found)
        if least is not None and least < self._policy.minimum_cell:
            against.append(f"a filled cell has fewer than {self._policy.minimum_cell} rows")
        return against

    def _require_bounds(self) -> None:
        """Compare every value with the bounds, where rows are at hand; else the sums must do."""
        if self._checked or not isinstance(self._source, (Frame, Series)):
            return
        names = [n for n in self._study.schema.names if n in self._study.grid.bounds]
        values = self._source.rows()[:, list(self._study.schema.indices(names))]
        for name, column in zip(names, values.T, strict=True):
            low, high = self._study.grid.bounds[name]
            if not ((column >= low) & (column <= high)).all():
                raise DataError(f"Variable {name!r} has values outside of the study's bounds.")
        self._checked = True

    @cached_property
    def _fingerprint(self) -> str:
        """Tells the data again without telling them: keyed, and only this site has the key."""
        schema = self._study.schema
        key = self._identity.fingerprint_key(b"data of " + self._study.identity)
        made = hmac.new(key.reveal(), digestmod=hashlib.sha256)
        continuous, discrete = schema.of_kind(Kind.CONTINUOUS), schema.of_kind(Kind.DISCRETE)
        if continuous:
            found = self._source.moments(continuous)
            values = [found.n, *found.mean().tolist(), *found.covariance().diagonal().tolist()]
            # An engine may add up in another order next time.
            made.update(" ".join(f"{v:.7g}" for v in values).encode())
        if discrete:
            counts = self._source.counts(Plan.sets([n] for n in discrete))
            made.update(repr([counts.table([n]).tolist() for n in discrete]).encode())
        return made.hexdigest()

    # --- the protocol's questions ------------------------------------------------------------

    def answer(self, opening: Opening) -> Words:
        """The numbers to be summed, if study, policy and data allow it."""
        self._require_running()
        try:
            request = read_request(opening.request, self._study.grid)
        except IsthmusError:
            raise BrokenFrameError(Refusal.BAD_REQUEST) from None
        if (opening.size, opening.limbs) != (request.size(self._study.grid), request.limbs):
            raise BrokenFrameError(Refusal.BAD_REQUEST)
        if self._rules(request):
            raise BrokenFrameError(Refusal.POLICY)
        try:
            found, _, words = self._gathered(request)
        except RefusedError:
            raise BrokenFrameError(Refusal.DATA) from None
        if self._cohort_rules(found):
            raise BrokenFrameError(Refusal.POLICY)
        known = {e["data"] for e in self._book.past() if "data" in e}
        if known - {self._fingerprint}:
            raise BrokenFrameError(Refusal.OTHER_DATA)
        return words

    def record(self, kind: FrameKind, opening: Opening, active: frozenset[int] | None) -> None:
        """Write down what is about to leave, or refuse it."""
        self._require_running()
        sent = kind in (FrameKind.MASKED, FrameKind.SUMMAND)
        self._book.record(kind, opening, active, self._fingerprint if sent else None)

    def record_keys(self, number: int, sites: frozenset[int]) -> None:
        """Write down that a key is about to leave, or refuse it."""
        self._require_running()
        found = self._caps()
        if found:
            raise BrokenFrameError(Refusal.POLICY)
        self._book.record_keys(number, sites)

    def record_again(self, number: int) -> None:
        """Write down that the same answer is about to leave once more, or refuse it."""
        self._require_running()
        self._book.record_again(number)

    def refused(self, why: Refusal, number: int) -> None:
        """Write down that a frame was not answered."""
        self._book.refused(why, number)

    def state(self) -> bytes:
        """The state of ADMM at this site."""
        return self._kept if self._client is None else snapshot(self._client)

    def restore(self, state: bytes) -> None:
        """Go on with ADMM."""
        self._kept = state  # the data are read when the next step is asked for

    def _require_running(self) -> None:
        if self._policy.stop_file.exists():
            raise BrokenFrameError(Refusal.STOPPED)
        if self._clock() >= self._study.expires:
            raise BrokenFrameError(Refusal.EXPIRED)
        if self._code not in self._study.code:
            raise BrokenFrameError(Refusal.OTHER_CODE)

    # --- for the site itself -----------------------------------------------------------------

    def dry_run(self, request: Request) -> DryRun:
        """Show what would leave. Opens no connection and writes nothing."""
        against = self._rules(request)
        sent: Moments | Counts | Matrix | None = None
        try:
            self._require_open()
            found, sent, _ = self._gathered(request, dry=True)
            against += self._cohort_rules(found)
        except RefusedError as error:
            against.append(str(error))
        numbers = request.size(self._study.grid)
        size = size_of(KEY + 4 * numbers * request.limbs)
        totals = isinstance(request, AskTotals)
        return DryRun(self.name, str(request), sent, numbers, size, tuple(against), totals)

    def __repr__(self) -> str:
        return f"Station({self.name!r}, {self._study.title!r})"


def local_source(data: object, schema: Schema) -> Source:
    """The data of a site, read as a study says."""
    if isinstance(data, Source):
        if data.schema() != schema:
            raise DataError("The source does not have the variables and levels of the study.")
        return data
    return Lazy(data, schema=schema) if is_lazy(data) else Frame(data, schema=schema)


def _within(asked: Plan, planned: Plan | None) -> bool:
    """Whether a study plans at least these tables."""
    if planned is None:
        return False
    if planned.is_everything or asked == planned:
        return True
    if asked.groups is not None:
        return all(planned.covers(g) for g in asked.groups)
    if asked.limit is not None and planned.limit is not None:
        return asked.limit <= planned.limit
    return False
