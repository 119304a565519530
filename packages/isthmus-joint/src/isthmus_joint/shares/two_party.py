"""Two parties with different columns of the same people, as a source of data."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import secrets
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Pipe
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import (
    AbortedError,
    FederationError,
    FormatError,
    IsthmusError,
    MismatchError,
    RefusedError,
    StudyError,
)
from isthmus.objectives import Capability
from isthmus.results.reading import Disclosure, Release
from isthmus.statistics import CountPlan, Counts, Expansion, Moments, Schema
from isthmus.tables.base import Source
from isthmus_joint.agreement.cards import Card, Folder
from isthmus_joint.agreement.identity import Identity
from isthmus_joint.agreement.policy import Policy
from isthmus_joint.agreement.study import Study
from isthmus_joint.extracts.checks import broken_rules
from isthmus_joint.methods.secret_search import (
    SECRET_SCORES,
    Computation,
    PrivateK2,
    SecretObjective,
    StructureOnly,
)
from isthmus_joint.records.journal import FileJournal, FolderLock
from isthmus_joint.records.ledger import FileLedger, MemoryLedger
from isthmus_joint.records.private_files import replace_private, write_private
from isthmus_joint.shares import alignment
from isthmus_joint.shares.alignment import SECONDS
from isthmus_joint.shares.cost import estimated
from isthmus_joint.shares.engine_process import REFUSED, Inputs
from isthmus_joint.shares.link import NO_ENGINE, LinkOptions
from isthmus_joint.shares.openings import DONE, NextRun, Openings, RunJournal, refusals
from isthmus_joint.shares.party_controller import PartyController, releases, table_releases
from isthmus_joint.shares.party_table import PartyTable, hashed, material_of, stricter
from isthmus_joint.shares.protocol import two_parties
from isthmus_joint.shares.requests import (
    CrossMoments,
    IntersectionSize,
    OwnTables,
    PrivateK2Request,
    StructureOnlyRequest,
    TwoPartyRequest,
    terms_of,
)
from isthmus_joint.shares.terms import OWN
from isthmus_joint.transport.certificates import ChildProcess, alone, fingerprint
from isthmus_joint.transport.pinned_channel import PinnedChannel
from isthmus_joint.transport.pinned_connection import Credentials

# --- One run of a study of two parties: the party's own process, which supervises the engine ----

ENGINE = (sys.executable, "-m", "isthmus_joint.shares.engine_process")
"""The command of the engine."""

MESSAGES = ("inputs", "ready", "aligned", "counted", "sharing", "open", "result", "failed")
"""Kinds of messages of the engine, each of which has a method."""

GREETING = 30.0
MESSAGE_TIMEOUT = 300.0
"""Seconds to wait for an engine whose party is alive, which may run on a busy machine. A party that
is gone or silent is noticed by its signs of life."""

TERMINATION = 0.5
"""Seconds for the engine to terminate. It has nothing to save: the journal is not its own."""

VIOLATIONS = ("broken message", "other identifiers")
"""Reasons of the engine that are the other party's doing, and no consequence of anything else."""

FIND_CAUSE = 3.0
"""Seconds to find out whether an engine failed because the other party is gone."""


@final
@dataclass(frozen=True)
class Connection:
    """Addresses of the two parties. A party needs two consecutive ports.

    Attributes
    ----------
    rank
        Position of this party in the study. The first one waits for the second to connect.
    own, other
        Host and port of the parties: where this one listens, and where the other one is reached.
    """

    rank: int
    own: tuple[str, int]
    other: tuple[str, int]
    credentials: Credentials
    gather: float = 3600.0
    message_timeout: float = MESSAGE_TIMEOUT

    def open(self, name: str) -> PinnedChannel:
        """Connect to the other party of this name."""
        host, port = self.own if self.rank == 0 else self.other
        meet = PinnedChannel.listen if self.rank == 0 else PinnedChannel.dial
        try:
            return meet((host, port + 1), self.credentials, name, self.gather)
        except AbortedError as error:
            if not error.silent:
                raise
            raise AbortedError(
                f"{error} If it is ready, check the address and the firewall: the first party of "
                f"the study must be reachable at the ports {port} and {port + 1}.",
                silent=error.silent,
                reason=error.reason,
            ) from None

    def link(self, session: str) -> LinkOptions:
        """Return how the engines connect."""
        return LinkOptions(
            session,
            self.rank,
            self.own if self.rank == 0 else self.other,
            str(self.credentials.certificate),
            str(self.credentials.key),
            str(self.credentials.trusted),
            self.credentials.fingerprint,
            self.message_timeout,
        )


@final
class TwoPartyRun:
    """Runs one request with the other party. Use it once.

    Parameters
    ----------
    keep
        Writes the result to disk, before the run is over and its values cannot be opened any more.
    """

    def __init__(
        self,
        controller: PartyController,
        table: PartyTable,
        connection: Connection,
        study: Study,
        request: TwoPartyRequest,
        folder: Path,
        *,
        watch: Callable[[str], None] = lambda _: None,
        keep: Callable[[dict[str, Any]], None] = lambda _: None,
    ) -> None:
        self._keep = keep
        self._controller = controller
        self._table = table
        self._connection = connection
        self._study = study
        self._request = request
        self._folder = folder
        self._watch = watch
        self._text = ""
        self._channel: PinnedChannel | None = None
        self._run: NextRun | None = None
        self._openings: Openings | None = None
        self._given = b""
        self._outcome: dict[str, Any] | None = None
        self._failure: IsthmusError | None = None
        self._positions: NDArray[np.intp] = np.zeros(0, np.intp)
        self._people = 0

    @property
    def rows(self) -> int:
        """How many people both parties have."""
        return self._people

    @property
    def number(self) -> int:
        """Number of the run."""
        return 0 if self._run is None else self._run.number

    def compute(self) -> Generator[str, None, dict[str, Any]]:
        """Compute together with the other party, or raise an error that names what happened.

        Yields what is going on, many times per second. If the generator is closed, the run ends at
        both parties.

        Raises
        ------
        AbortedError
            The other party is gone, silent or violated the protocol; `reason` names it. Nothing
            more is revealed. After the same command at both parties, the run is resumed.
        RefusedError
            This party's rules end the run.
        """
        controller = self._controller
        controller.bring(self._table)
        self._say(f"waiting for {controller.other}")
        channel = self._channel = self._connection.open(controller.other)
        reason: str | None = "failed"
        try:
            controller.require_running(self.number)  # it may have waited for long
            self._greet(channel)
            outcome = yield from self._supervise(channel)
            reason = None
            return outcome
        except AbortedError as error:
            reason = error.reason or "aborted"
            raise
        except RefusedError:
            reason = REFUSED
            raise
        except (KeyboardInterrupt, GeneratorExit):
            reason = "interrupted"
            raise
        finally:
            channel.close(reason)

    def _greet(self, channel: PinnedChannel) -> None:
        own = secrets.token_hex(32)
        channel.send({"nonce": own})
        nonces = own, str(channel.take("nonce", GREETING))
        channel.send({"hello": self._controller.hello(nonces)})
        run = self._run = self._controller.agree(channel.take("hello", GREETING), nonces)
        key = " ".join(sorted(nonces)).encode()
        session = hashlib.sha256(b"session " + key).hexdigest()[:32]
        self._openings = Openings(
            self._controller.journal,
            run,
            session,
            channel,
            self._connection.message_timeout,
            self._connection.rank,
            self._request.openings(self._study),
            lambda label: self._controller.spend(run, label),
        )
        positions = self._controller.positions(run)
        if run.settled:
            self._say(f"resumed: {len(run.settled)} values are not opened in another way")
        if positions is None:
            self._controller.record_aligning(run)
            self._say("comparing identifiers")
        else:
            self._positions, self._people = positions, run.rows
        self._given = Inputs(
            self._connection.link(session),
            terms_of(self._study),
            self._request.name,
            self._controller.other_people if positions is None else run.rows,
            hashed(self._table.identifiers, b"identifiers " + key) if positions is None else [],
            np.zeros(0, np.intp) if positions is None else positions,
        ).to_bytes()

    def _supervise(self, channel: PinnedChannel) -> Generator[str, None, dict[str, Any]]:
        """Start the engine, and wait until it has a result or someone fails."""
        ours, theirs = Pipe()
        process = ChildProcess(
            [*ENGINE, str(theirs.fileno())],
            engine_environment(),
            self._folder / "engine.log",
            [theirs.fileno()],
        )
        theirs.close()
        threading.Thread(target=self._answer, args=(ours,), daemon=True).start()
        try:
            while self._outcome is None:
                if self._failure is not None:
                    raise self._failure
                channel.check()
                self._controller.require_running(self.number)
                ended = process.code is not None
                if ended and self._outcome is None and self._failure is None:
                    self._failure = self._cause(f"it ended with code {process.code}", "engine")
                yield self._text
                time.sleep(0.05)
            # The engine is stopped only then: the other one may still wait for its last message.
            self._compare(channel, self._outcome)
            return self._outcome
        finally:
            process.stop(TERMINATION)  # which closes its end of the pipe

    def _answer(self, pipe: Any) -> None:
        """Answer the messages of the engine, until something has failed or the engine ends."""
        handlers = {kind: getattr(self, f"_{kind}") for kind in MESSAGES}
        with pipe, suppress(EOFError, OSError):
            while self._failure is None:
                ((kind, value),) = json.loads(pipe.recv_bytes()).items()
                try:
                    pipe.send_bytes(handlers[kind](value) or b"ok")
                except IsthmusError as error:
                    self._failure = error

    # --- answers to the messages of the engine, by their kinds -----------------------------------

    def _inputs(self, _: None) -> bytes:
        return self._given

    def _ready(self, _: None) -> None:
        """Wait until both engines are ready: then half a minute is enough to connect."""
        channel, run = self._parts()
        channel.send({"ready": run.number})
        channel.take("ready", self._connection.message_timeout)

    def _aligned(self, value: list[Any]) -> None:
        text, self._people = value
        self._positions = alignment.read(text)
        self._compare_rows()
        self._controller.record_aligned(self._parts()[1], self._positions, self.rows)

    def _counted(self, value: int) -> None:
        self._people = value
        self._compare_rows()
        self._controller.record_counted(self._parts()[1], self.rows)

    def _compare_rows(self) -> None:
        """Check that both parties have the same number of people in common, and enough people."""
        least = two_parties(self._study.protocol).minimum_cohort
        if self.rows > min(len(self._table.identifiers), self._controller.other_people):
            raise AbortedError(
                f"{self.rows} people would be in common; there are fewer here, or "
                f"{self._controller.other!r} has stated fewer. Nothing was computed.",
                reason="other identifiers",
            )
        self._say(f"{self.rows or f'fewer than {least}'} people in common")
        channel, _ = self._parts()
        channel.send({"rows": self.rows})
        theirs = channel.take("rows", self._connection.message_timeout)
        if theirs != self.rows:
            raise AbortedError(
                f"{self._controller.other!r} states {repr(theirs)[:40]} people in common; here "
                f"they are {self.rows}. Nothing was computed.",
                reason="other number of rows",
            )

    def _sharing(self, _: None) -> bytes:
        """Give the engine the columns, of no other people than it computes with."""
        self._controller.record_sharing(self._parts()[1], self._positions)
        self._say("computing on secret shares")
        values = self._table.columns[self._positions]
        values[self._positions < 0] = 0
        return values.tobytes()

    def _open(self, value: list[Any]) -> bytes:
        label, share, to = value
        assert self._openings is not None
        rank = self._connection.rank
        data = base64.b64decode(share)
        shares = self._openings.open(label, data, gives=1 - rank in to, takes=rank in to)
        self._say(label)
        return shares

    def _result(self, value: dict[str, Any]) -> None:
        self._outcome = value

    def _failed(self, value: list[str]) -> None:
        reason, text = value
        if reason == REFUSED:
            self._failure = self._controller.refused_by_engine(self._parts()[1], text)
        elif reason in VIOLATIONS:
            # Certain, whatever the other party says about the end of the run.
            self._failure = AbortedError(text, reason=reason)
        else:
            self._failure = self._cause(text, reason)

    def _cause(self, text: str, reason: str) -> IsthmusError:
        """Return why the engine failed: often because the other party is gone."""
        channel, _ = self._parts()
        end = time.monotonic() + FIND_CAUSE
        while time.monotonic() < end or channel.seems_silent():
            try:
                channel.check()
            except AbortedError as error:
                return error
            time.sleep(0.1)
        if reason == NO_ENGINE:
            return AbortedError(text, reason=reason)
        return AbortedError(
            f"The engine of this party failed: {text.rstrip('.')}. Either computer may be too busy "
            "to answer within --message-timeout, or the other party sent something invalid; "
            f"{self._folder / 'engine.log'} has details. Run the same command again at both "
            "parties to resume.",
            reason=reason,
        )

    def _compare(self, channel: PinnedChannel, outcome: dict[str, Any]) -> None:
        """End the run at both parties, if they have the same result."""
        common = {key: value for key, value in outcome.items() if key != OWN}
        text = json.dumps(common, sort_keys=True)
        own = hashlib.sha256(text.encode()).hexdigest()
        channel.send({"done": {"result": own, "head": self._controller.head()}})
        theirs = channel.take("done", self._connection.message_timeout)
        if not isinstance(theirs, dict) or theirs.get("result") != own:
            raise FederationError(
                f"{self._controller.other!r} has another result. One of the parties changed its "
                "program or its journal. Do not use this result."
            )
        self._controller.witness(theirs.get("head"))
        self._keep(outcome)
        self._controller.end(self._parts()[1], DONE)

    def _say(self, text: str) -> None:
        self._text = text
        self._watch(text)

    def _parts(self) -> tuple[PinnedChannel, NextRun]:
        assert self._channel is not None
        assert self._run is not None
        return self._channel, self._run


def engine_environment() -> dict[str, str]:
    """Return the environment of the engine: what protects keys is not for it.

    The engine reads messages of the other party, and was not written for malicious ones.
    """
    return {name: value for name, value in os.environ.items() if "PASSPHRASE" not in name}


# --- Two parties with different columns of the same people, as a source of data -----------------


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
        """Return the own certificate and the one that is trusted, each alone in its file."""
        self._state.mkdir(mode=0o700, parents=True, exist_ok=True)
        own, trusted = self._state / "own.crt", self._state / "trusted.crt"
        own.write_bytes(alone(Card.read(self._home / "card.toml").certificate))
        trusted.write_bytes(alone(self._cards[self._other.name].certificate))
        return Credentials(own, self._home / "connection.pem", trusted, self._other.certificate)

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
