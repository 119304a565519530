"""The process of a site: it serves the site's controller on a socket."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import final

from isthmus.errors import FederationError
from isthmus.parties.agreement.policy import Policy
from isthmus.parties.agreement.signatures import Signature
from isthmus.parties.agreement.study import Study
from isthmus.parties.identity import Identity
from isthmus.parties.records.journal import FileSlot
from isthmus.parties.records.ledger import Entry, FileLedger
from isthmus.parties.transport.sockets import Service, socket_path
from isthmus.sources.horizontal.secure_sum.frames import Refusal, longest_request_frame
from isthmus.sources.horizontal.site_controller import SiteController
from isthmus.sources.horizontal.study_terms import terms_of


@final
class SiteService:
    """Serves one site on a Unix domain socket.

    Only the process that runs this service sees the data and the keys. Whatever relays frames to
    the socket (a Flower client, a test) sees no more than the coordinator.

    Parameters
    ----------
    state
        A folder for the ledger, for the state that must survive a crash, and for the socket. Only
        one process may use it at a time.
    study, signatures, identity, data, policy
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
        data: object,
        policy: Policy,
        *,
        watch: Callable[[Entry], None] = lambda _: None,
    ) -> None:
        self.state = Path(state).absolute()
        self.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.state.chmod(0o700)
        self._lock = self._locked()
        self.ledger = FileLedger(self.state / "ledger.jsonl")
        self.controller = SiteController(study, signatures, identity, data, policy, self.ledger)
        self.controller.require_admission()
        slot = FileSlot(self.state / f"study-{study.identity.hex()[:16]}")
        self._site = self.controller.site(slot=slot)
        self.path = socket_path(self.state)
        limit = longest_request_frame(terms_of(study))
        self._watch = watch
        self._seen = len(self.ledger.entries())
        self.service = Service(self.path, self._handle, limit, self._reject)

    def _locked(self) -> int:
        import fcntl  # not available on every system

        handle = os.open(self.state / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(handle)
            raise FederationError(
                f"Another process serves the site in {self.state}. Stop it first: a site has "
                "only one process."
            ) from error
        return handle

    def _handle(self, data: bytes) -> bytes:
        answer = self._site.handle(data)
        self._notify()
        return answer

    def _reject(self) -> None:
        self.controller.refused(Refusal.MALFORMED, 0)
        self._notify()

    def _notify(self) -> None:
        entries = self.ledger.entries()
        try:
            for entry in entries[self._seen :]:
                self._watch(entry)
        except OSError:
            pass  # a closed terminal must not stop the site from answering
        self._seen = len(entries)

    def close(self) -> None:
        """Stop answering."""
        self.service.close()
        os.close(self._lock)
