"""The process of a site: it answers messages, which a transport brings."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import final

from isthmus.joint.agreement.identity import Identity
from isthmus.joint.agreement.policy import Policy
from isthmus.joint.agreement.signatures import Signature
from isthmus.joint.agreement.study import Study
from isthmus.joint.extracts.extract import Extract
from isthmus.joint.federation.site_controller import SiteController
from isthmus.joint.records.journal import FileJournal, FolderLock
from isthmus.joint.records.ledger import FileLedger
from isthmus.joint.records.ledger_entries import Entry
from isthmus.joint.secure_sum.envelopes import LARGEST, BrokenEnvelopeError, Refusal, size_of
from isthmus.joint.transport.base import PING
from isthmus.joint.transport.nodes import answer_greeting, is_greeting


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
