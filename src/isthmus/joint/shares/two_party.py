"""Two parties with different columns of the same people, as a source of data."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import FormatError, MismatchError, StudyError
from isthmus.joint.agreement.cards import Card, Folder
from isthmus.joint.agreement.identity import Identity
from isthmus.joint.agreement.policy import Policy
from isthmus.joint.agreement.study import Study
from isthmus.joint.extracts.checks import broken_rules
from isthmus.joint.methods.secret_search import (
    SECRET_SCORES,
    Computation,
    PrivateK2,
    SecretObjective,
    StructureOnly,
)
from isthmus.joint.records.journal import FileJournal, FolderLock
from isthmus.joint.records.ledger import FileLedger, MemoryLedger
from isthmus.joint.records.private_files import replace_private, write_private
from isthmus.joint.shares.alignment import SECONDS
from isthmus.joint.shares.cost import estimated
from isthmus.joint.shares.openings import RunJournal
from isthmus.joint.shares.party_controller import PartyController
from isthmus.joint.shares.party_rules import refusals
from isthmus.joint.shares.party_table import PartyTable, material_of, stricter
from isthmus.joint.shares.protocol import two_parties
from isthmus.joint.shares.requests import (
    CrossMoments,
    IntersectionSize,
    OwnTables,
    PrivateK2Request,
    StructureOnlyRequest,
    TwoPartyRequest,
)
from isthmus.joint.shares.run_disclosure import releases, table_releases
from isthmus.joint.shares.terms import OWN
from isthmus.joint.shares.two_party_run import MESSAGE_TIMEOUT, Connection, TwoPartyRun
from isthmus.joint.transport.certificates import alone, fingerprint
from isthmus.joint.transport.pinned_connection import Credentials
from isthmus.objectives import Capability
from isthmus.results.disclosure import Disclosure, Release
from isthmus.sources.base import Source
from isthmus.statistics import CountPlan, Counts, Expansion, Moments, Schema


@final
class TwoParty(Source):
    """Two parties that hold different columns for the same people, as a source of data.

    Experimental until somebody outside the project has audited it. The other party runs the same
    code with its own columns. Both compute on secret shares, and only what the study states is
    revealed to them.

    Parameters
    ----------
    home
        The private folder of this party, with its keys, policy and ledger.
    study
        The shared folder of the study.
    data
        The table of this party, with the identifier and its variables.
    identity
        The key of this party; by default read from ``home``.
    listen
        Host and port on which this party listens, if the study names it first; by default as on its
        card.
    connect
        Host and port of the other party, if the study names this one second; by default as on its
        card.
    gather
        Seconds to wait for the other party at the beginning.
    message_timeout
        Seconds to wait for a message of the other party's engine, while the party itself gives
        signs of life.
    on_event
        Called with a phrase when something happens.
    """

    def __init__(
        self,
        home: str | os.PathLike[str],
        study: str | os.PathLike[str],
        data: object,
        *,
        identity: Identity | None = None,
        listen: str | None = None,
        connect: str | None = None,
        gather: float = 3600.0,
        message_timeout: float = MESSAGE_TIMEOUT,
        on_event: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._home = Path(home).absolute()
        self._folder = Folder(study)
        self._require_files(identity)
        self._study = self._folder.study()
        self._terms = two_parties(self._study.protocol)
        self._identity = identity or Identity.load(self._home / "identity.pem")
        self.name = self._study.name_of(self._identity)
        self._own = self._terms.holding(self.name)
        self._other = self._terms.other(self.name)
        self._cards = self._checked_cards()
        self._policy = Policy.read(self._home / "policy.toml")
        self._table = PartyTable.read(
            data, self._study, self.name, self._identity, self._policy.persons
        )
        self._state = self._study.state_folder(self._home)
        self._addresses = [
            address_of(listen or self._cards[self.name].address),
            address_of(connect or self._cards[self._other.name].address),
        ]
        self._gather = gather
        self._message_timeout = message_timeout
        self._watch = on_event
        self._releases: list[Release] = []
        self._moments: Moments | None = None

    def _require_files(self, identity: Identity | None) -> None:
        """Raise `StudyError` if a file is missing without which there is no run."""
        needed = {
            self._folder.path / "study.toml": (
                "Name the shared folder of a study, which isthmus party draft writes."
            ),
            self._home / "identity.pem": (
                "Name the private folder of this party, which isthmus party new creates."
            ),
            self._home / "policy.toml": "Write the policy with isthmus party policy.",
        }
        for path, advice in needed.items():
            given = identity is not None and path.name == "identity.pem"
            if not given and not path.exists():
                raise StudyError(f"There is no file {str(path)!r}. {advice}")

    def _checked_cards(self) -> dict[str, Card]:
        cards = self._folder.cards()
        for party in self._terms.parties:
            if fingerprint(cards[party.name].certificate) != party.certificate:
                raise StudyError(
                    f"The certificate on the card of {party.name!r} is not the one that the study "
                    "names. Ask that party for its card, or draft the study again."
                )
        return cards

    @property
    def study(self) -> Study:
        """The study that both parties signed."""
        return self._study

    def rows(self) -> NDArray[np.float64]:
        """Raise `MismatchError`: rows never leave a party."""
        raise MismatchError("The rows of two parties stay where they are.", self._advice())

    def schema(self) -> Schema:
        """Return the variables of both parties, as stated in the study."""
        return self._study.schema

    def counts(self, plan: CountPlan) -> Counts:
        """Raise `MismatchError`: tables stay secret."""
        raise MismatchError(f"Tables over the columns of two parties stay secret. {self._advice()}")

    def with_features(self, expansion: Expansion) -> Source:
        """Raise `MismatchError`: basis functions are not computed on secret shares."""
        raise MismatchError("Two parties cannot compute basis functions. Use moments.")

    def _advice(self) -> str:
        searches = {PrivateK2Request.name: PrivateK2(), StructureOnlyRequest.name: StructureOnly()}
        allowed = [
            f"learn(data, search={s!r})"
            for name, s in searches.items()
            if name in self._study.requests
        ]
        if not allowed:
            return "Use a score that needs moments of continuous columns, such as GaussianBIC()."
        return f"Use {' or '.join(allowed)}, which the study allows."

    def moments(self, names: Sequence[str] | None = None) -> Moments:
        """Compute moments over the columns of both parties, which both of them learn."""
        if CrossMoments.name not in self._study.requests:
            raise MismatchError(f"The study does not allow cross moments. {self._advice()}")
        if self._moments is None:
            found = self._computed(CrossMoments.of(self._study))
            self._moments = moments_of(found, self._study)
        return self._moments if names is None else self._moments.select(names)

    def count_people(self) -> int:
        """Count the people whom both parties have; the other party calls this at the same time.

        No column is used, and parties that follow the protocol do not learn who the people are. The
        study must allow the request ``"intersection size"``. Use it before a study commits to more.

        Returns
        -------
        int
            Their number; 0 if they are fewer than the study's ``minimum_cohort``.
        """
        if IntersectionSize.name not in self._study.requests:
            raise MismatchError(
                f"The study allows {sorted(self._study.requests)}, not {IntersectionSize.name!r}."
            )
        return int(self._computed(IntersectionSize.of(self._study))["people"])

    def objective(self, accepts: Sequence[Capability[Any]] | None) -> SecretObjective | None:
        """Return the secret scores, if the study allows a search on them."""
        offered = {PrivateK2Request.name, StructureOnlyRequest.name} & self._study.requests
        if accepts is None and CrossMoments.name in self._study.requests:
            return None
        wanted = accepts is None or SECRET_SCORES in accepts
        return SecretObjective(self._study, self._computation) if offered and wanted else None

    def notes(self) -> tuple[str, ...]:
        """Return where the tables of this party's own variables are, if there are some."""
        path = self._state / "tables.json"
        return (f"Tables of {self.name}'s own variables are in {path}.",) if path.exists() else ()

    def _keep(self, outcome: dict[str, Any]) -> None:
        replace_private(self._state / "result.json", json.dumps(outcome, indent=1).encode())
        if "parents" in outcome:
            self._keep_tables(outcome.get(OWN, []))

    def _keep_tables(self, tables: list[dict[str, Any]]) -> None:
        path = self._state / "tables.json"
        path.unlink(missing_ok=True)
        if tables:
            levels = {v.name: list(v.levels) for v in self._study.schema.variables}
            text = json.dumps({"levels": levels, OWN: tables}, indent=1)
            write_private(path, text.encode())

    def preview(self) -> str:
        """Return what would happen in a run, for people. Opens no connection."""
        people, columns = len(self._table.identifiers), ", ".join(self._own.columns)
        kinds = [
            kind
            for kind in (PrivateK2Request, StructureOnlyRequest, CrossMoments)
            if kind.name in self._study.requests
        ]
        lines = [f"{self.name} has {people} people, and the columns {columns}."]
        path = self._home / "ledger.jsonl"
        ledger = FileLedger(path) if path.exists() else MemoryLedger()
        broken = refusals(self._study, self._policy, ledger, self.name, self._table)
        lines += [f"It would refuse: {why}." for why in broken]
        everyone = np.arange(people, dtype=np.intp)
        material = material_of(self._study, self.name, self._table, everyone)
        lines += [
            f"It would refuse if all its people were common: {why}."
            for why in broken_rules(material, stricter(self._policy, self._study))
        ]
        lines.append(
            f"A run compares {people} identifiers by private set intersection, of at most "
            f"{self._own.people}, with at most {self._other.people} of {self._other.name}: "
            f"{self._terms.knowing}. Both learn how many people the other party has. That takes "
            f"about {np.dot(SECONDS, (people, self._other.people)):.0f} s of CPU time."
        )
        lines.append(
            f"With at least {self._terms.minimum_cohort} common people, the columns leave as "
            f"secret shares, from which {self._other.name} learns the results and, if it follows "
            "the protocol, nothing else. If it changes its program, it can choose what the bits "
            "that are opened tell it, and so read a few values of these columns; see the page 'Two "
            "parties with different columns'."
        )
        lines += [f"Both parties learn: {kind.of(self._study)}." for kind in kinds]
        if OwnTables.name in self._study.requests:
            lines.append(
                f"Each party learns {OwnTables.of(self._study)}, unless a cell has fewer than "
                f"{self._terms.minimum_cell} people or people with equal values of the owner's "
                "columns are all in one cell."
            )
        return "\n".join([*lines, *self._estimates(kinds)])

    def _estimates(self, kinds: Sequence[type[TwoPartyRequest]]) -> list[str]:
        """Return what a run of each kind will cost, if that is known, in words."""
        rank, sizes = self._terms.parties.index(self._own), [p.people for p in self._terms.parties]
        sizes[rank] = len(self._table.identifiers)
        # A party that does not know who is common brings all its rows.
        rows = min(sizes) if self._terms.knower is None else sizes[1 - self._terms.knower]
        costs = {
            kind.name: estimated(self._study, kind.of(self._study), rank, rows) for kind in kinds
        }
        return [
            f"An estimate for {name} of {rows} rows, besides the comparison of identifiers: {cost}."
            for name, cost in costs.items()
            if cost is not None
        ]

    def disclosure(self) -> Disclosure:
        """Return what both parties have learned so far."""
        return Disclosure(tuple(self._releases))

    def _computed(self, request: TwoPartyRequest) -> dict[str, Any]:
        computation = self._computation(request)
        while True:
            try:
                next(computation)
            except StopIteration as end:
                outcome: dict[str, Any] = end.value
                return outcome

    def _computation(self, request: TwoPartyRequest) -> Computation:
        """Compute a request; yields what is going on."""
        with FolderLock(self._home, "a run of two parties"):
            outcome = yield from self._run(request, self._credentials())
        return outcome

    def _credentials(self) -> Credentials:
        """Return the own certificate and the one that is trusted, alone in its file."""
        self._state.mkdir(mode=0o700, parents=True, exist_ok=True)
        trusted = self._state / "trusted.crt"
        trusted.write_bytes(alone(self._cards[self._other.name].certificate))
        own = self._home / "connection.crt", self._home / "connection.pem"
        return Credentials(*own, trusted, self._other.certificate)

    def _run(self, request: TwoPartyRequest, credentials: Credentials) -> Computation:
        rank = self._terms.parties.index(self._own)
        own, other = self._addresses
        journal = FileJournal(self._state / "journal")
        try:
            controller = PartyController(
                self._study,
                self._folder.signatures(),
                self._identity,
                self._policy,
                FileLedger(self._home / "ledger.jsonl"),
                RunJournal(journal),
                request,
            )
            run = TwoPartyRun(
                controller,
                self._table,
                Connection(rank, own, other, credentials, self._gather, self._message_timeout),
                self._study,
                request,
                self._state,
                watch=self._watch,
                keep=self._keep,
            )
            if (self._state / "result.json").exists():
                self._watch(f"the result of the last run is in {self._state / 'result.json'}")
            outcome = yield from run.compute()
            self._releases += releases(self._study, request, run.rows, outcome)
            if "parents" in outcome:
                self._releases += table_releases(self._study, outcome["parents"])
        finally:
            journal.close()
        return outcome

    def __repr__(self) -> str:
        return f"TwoParty({self.name!r}, {self._study.title!r})"


def moments_of(found: dict[str, Any], study: Study) -> Moments:
    """Return the moments that the engine revealed."""
    schema = study.schema.subset(two_parties(study.protocol).order)
    shift, sums, gram = (np.array(found[name]) for name in ("shift", "sums", "gram"))
    return Moments(schema, int(found["n"]), shift, sums, gram)


def address_of(text: str) -> tuple[str, int]:
    """Read host and port."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65535:
        raise FormatError(
            f"The address {text!r} must have the form HOST:PORT, with a port below 65535."
        )
    return host, int(port)
