"""A site's station as a service that lives as long as the study: data, keys, policy, ledger."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import final

from isthmus.errors import FederationError
from isthmus.parties.agreement.policy import Policy
from isthmus.parties.agreement.study import Signature, Study
from isthmus.parties.identity import Identity
from isthmus.parties.records.journal import FileSlot
from isthmus.parties.records.ledger import Entry, FileLedger
from isthmus.parties.transport.sockets import Service, socket_path
from isthmus.sources.horizontal.secure_sum.frames import Refusal, longest_question
from isthmus.sources.horizontal.station import Station


@final
class Host:
    """Serves the station of one site on a socket of the file system.

    The process that holds it is the only one that sees data and keys. What relays frames to it
    (a Flower client, a test) sees what the coordinator sees.

    Parameters
    ----------
    state
        A folder for the ledger, for what must survive a kill, and for the socket. One process may
        use it at a time.
    study, signatures, identity, data, policy
        As for `Station`.
    watch
        Is shown each entry of the ledger when it is written.
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
        self.station = Station(study, signatures, identity, data, policy, self.ledger)
        slot = FileSlot(self.state / f"study-{study.identity.hex()[:16]}")
        self._site = self.station.site(slot=slot)
        self.path = socket_path(self.state)
        limit = longest_question(study.terms)
        self._watch = watch
        self._seen = len(self.ledger.entries())
        self.service = Service(self.path, self._handle, limit, self._strange)

    def _locked(self) -> int:
        import fcntl  # not on every system, and needed only where a site is served

        handle = os.open(self.state / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(handle)
            raise FederationError(
                f"Another process serves the site in {self.state}. A site has one."
            ) from error
        return handle

    def _handle(self, data: bytes) -> bytes:
        answer = self._site.handle(data)
        self._tell()
        return answer

    def _strange(self) -> None:
        self.station.refused(Refusal.MALFORMED, 0)
        self._tell()

    def _tell(self) -> None:
        entries = self.ledger.entries()
        try:
            for entry in entries[self._seen :]:
                self._watch(entry)
        except OSError:
            pass  # a terminal that is gone keeps nobody from answering
        self._seen = len(entries)

    def close(self) -> None:
        """Answer no more."""
        self.service.close()
        os.close(self._lock)
