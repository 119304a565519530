"""One run of a study of two parties: the party's own process, which supervises the engine."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import secrets
import sys
import threading
import time
from collections.abc import Callable, Generator
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
    IsthmusError,
    RefusedError,
)
from isthmus.joint.agreement.study import Study
from isthmus.joint.shares import alignment
from isthmus.joint.shares.engine_process import REFUSED, Inputs
from isthmus.joint.shares.link import NO_ENGINE, LinkOptions
from isthmus.joint.shares.openings import DONE, NextRun, Openings
from isthmus.joint.shares.party_controller import PartyController
from isthmus.joint.shares.party_table import PartyTable, hashed
from isthmus.joint.shares.protocol import two_parties
from isthmus.joint.shares.requests import TwoPartyRequest, terms_of
from isthmus.joint.shares.terms import OWN
from isthmus.joint.transport.child_process import ChildProcess
from isthmus.joint.transport.pinned_channel import PinnedChannel
from isthmus.joint.transport.pinned_connection import Credentials

ENGINE = (sys.executable, "-m", "isthmus.joint.shares.engine_process")
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
    folder
        A private folder for the log of the engine.
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
