"""A coordinator that kills itself, run by the tests: FOLDER OUTPUT KILLS.

It ends with SIGKILL after every write to its journal that it sees for the first time, and leaves
a line about that in the file KILLS. When there is nothing new, it writes the weights to OUTPUT.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from isthmus.federated import LinearADMM, learn_admm
from isthmus.parties import FileJournal, Journal
from isthmus.parties.agreement.cards import Folder
from isthmus.parties.identity import Identity
from isthmus.parties.records.journal import Record
from isthmus.parties.transport.base import Timeouts
from isthmus.parties.transport.sockets import Sockets
from isthmus.sources import Federation
from isthmus.sources.horizontal.secure_sum.frames import LARGEST, size_of


class Deadly(Journal):
    """Kills the process after a kind of write that was not seen before."""

    def __init__(self, inner: Journal, seen: Path) -> None:
        self._inner = inner
        self._seen = seen

    def append(self, record: Record) -> None:
        sums = sum(r["event"] == "sum" for r in self.records())
        keys = any(r["event"] == "keys" for r in self.records())
        self._inner.append(record)
        line = f"{record['event']} {sums} {keys}"
        before = self._seen.read_text().splitlines() if self._seen.exists() else []
        if line not in before:
            self._seen.write_text("\n".join([*before, line]))
            os.kill(os.getpid(), signal.SIGKILL)

    def records(self) -> tuple[Record, ...]:
        return self._inner.records()


def main(folder: Path, output: Path, seen: Path) -> None:
    shared = Folder(folder / "study")
    study = shared.study()
    paths = {m.name: folder / m.name / "socket" for m in study.members}
    transport = Sockets(paths, size_of(LARGEST), Timeouts(20.0, 20.0, 0.0))
    journal = Deadly(FileJournal(folder / "board" / "journal"), seen)
    boss = Identity.load(folder / "board" / "identity.pem")
    federation = Federation(study, shared.signatures(), boss, transport, journal=journal)
    found = learn_admm(federation, LinearADMM(rounds=3))
    output.write_bytes(found.weights.tobytes())


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
