"""A coordinator that kills itself, run by the tests: FOLDER OUTPUT KILLS.

It ends with SIGKILL after every write to its journal that it sees for the first time, and leaves
a line about that in the file KILLS. When there is nothing new, it writes the weights to OUTPUT.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import isthmus as ist
from isthmus_joint import ADMM, Federation, FileJournal, Journal
from isthmus_joint.agreement.cards import Folder
from isthmus_joint.agreement.identity import Identity
from isthmus_joint.federation.over_grpc import listen
from isthmus_joint.records.journal import Record
from isthmus_joint.transport.base import Timeouts, Transport, ignore


class Deadly(Journal):
    """Kills the process after a kind of write that was not seen before."""

    def __init__(self, inner: Journal, seen: Path) -> None:
        self._inner = inner
        self._seen = seen

    def append(self, record: Record) -> None:
        sums = sum(r["event"] == "sum" for r in self.records())
        self._inner.append(record)
        line = f"{record['event']} {sums}"
        before = self._seen.read_text().splitlines() if self._seen.exists() else []
        if line not in before:
            self._seen.write_text("\n".join([*before, line]))
            os.kill(os.getpid(), signal.SIGKILL)

    def records(self) -> tuple[Record, ...]:
        return self._inner.records()


@contextmanager
def connected(folder: Path, shared: Folder) -> Iterator[Transport]:
    names = [m.name for m in shared.study().members]
    times = Timeouts(120.0, 300.0, 0.0)
    with listen(folder / "board", shared, "127.0.0.1", times, ignore) as transport:
        transport.gather(names)
        yield transport


def main(folder: Path, output: Path, seen: Path) -> None:
    shared = Folder(folder / "study")
    journal = Deadly(FileJournal(folder / "board" / "journal"), seen)
    boss = Identity.load(folder / "board" / "identity.pem")
    with connected(folder, shared) as transport:
        federation = Federation(
            shared.study(), shared.signatures(), boss, transport, journal=journal
        )
        found = ist.learn(federation, search=ADMM(rounds=3))
    output.write_bytes(found.details.weights.tobytes())


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]))
