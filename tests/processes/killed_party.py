"""The command of a party that is killed (kill -9) right after it has done something.

KILL_AFTER names what: "ledger", "journal" or "sent", and what was written or sent, such as "ledger
aligning", "journal commitment", "sent share"; the first time that it happens. With STAND_IN=1 the
engine stands in.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from isthmus_joint.records.journal import FileJournal
from isthmus_joint.records.ledger import FileLedger
from isthmus_joint.shares import requests, two_party
from isthmus_joint.transport.pinned_channel import PinnedChannel

COMMAND = [sys.executable, "-m", "tests.processes.killed_party"]

POINTS = (
    *("sent hello", "ledger aligning", "journal run", "ledger aligned", "journal positions"),
    *("ledger sharing", "journal share", "journal commitment", "ledger revealing", "sent share"),
    *("sent done", "ledger ended"),
)
"""Where a party can be killed, in the order in which it comes there."""


def killing(done: Callable[..., Any], what: Callable[..., str]) -> Callable[..., None]:
    def and_die(self: Any, *given: Any, **more: Any) -> None:
        done(self, *given, **more)
        if what(*given) == os.environ["KILL_AFTER"]:
            os.kill(os.getpid(), signal.SIGKILL)

    return and_die


def last_key(record: dict[str, Any]) -> str:
    return f"journal {list(record)[-1]}"


if __name__ == "__main__":
    FileLedger.append = killing(FileLedger.append, lambda event: f"ledger {event}")  # type: ignore[assignment,method-assign]
    FileJournal.append = killing(FileJournal.append, last_key)  # type: ignore[method-assign]
    PinnedChannel.send = killing(PinnedChannel.send, lambda m: f"sent {next(iter(m))}")  # type: ignore[method-assign]
    if "STAND_IN" in os.environ:
        two_party.ENGINE = (sys.executable, "-m", "tests.processes.stand_in_engine")
        requests.PrivateK2Request.openings = lambda *_: 6  # type: ignore[method-assign]
    from isthmus.cli import main

    raise SystemExit(main())
