"""The real engine with a fault, for tests of the other party.

FAULT names the fault, and the file FAULT_AT is created when it happens.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from isthmus.joint.shares import computation, engine_process
from isthmus.joint.shares.engine import SecretSharingRuntime

COMMAND = [
    sys.executable,
    "-c",
    """
import os, signal, sys
from isthmus.joint.shares import two_party, two_party_run
two_party.TwoParty.__init__.__kwdefaults__["engine"] = (
    sys.executable, "-m", "tests.processes.faulty_engine"
)
decided = two_party_run.TwoPartyRun._decided
def dying(self, value):
    decided(self, value)
    open(os.environ["FAULT_AT"], "w").close()
    os.kill(os.getpid(), signal.SIGKILL)
if os.environ["FAULT"] == "party dies":
    two_party_run.TwoPartyRun._decided = dying
from isthmus.cli import main
raise SystemExit(main())
""",
]
"""The command of a party with this engine; "party dies" kills it after the first decision."""


def happened() -> None:
    Path(os.environ["FAULT_AT"]).touch()


def engine_dies(run: Callable[..., Any]) -> Callable[..., Any]:
    """Kill this process after the first program."""

    def run_once(*arguments: Any, **options: Any) -> None:
        run(*arguments, **options)
        happened()
        os.kill(os.getpid(), signal.SIGKILL)

    return run_once


def garbage(engine: SecretSharingRuntime, *_: object) -> None:
    """Send bytes instead of a hash, and wait to be ended."""
    happened()
    engine._link.send(1 - engine.rank, os.urandom(64))
    time.sleep(60)


def short_share(
    engine: SecretSharingRuntime, _secret: object, what: str, _to: Sequence[int] = ()
) -> None:
    """Send bytes instead of a share, which have not even its length."""
    assert engine._witness is not None
    engine._witness.before(what)
    happened()
    engine._link.send(1 - engine.rank, os.urandom(5))
    time.sleep(60)


def fewer_rows(compute: Callable[..., Any]) -> Callable[..., Any]:
    def compute_less(link: Any, task: Any, values: Any, witness: Any, present: Any) -> Any:
        happened()
        return compute(link, task, values[:-1], witness, present[:-1])

    return compute_less


if __name__ == "__main__":
    match os.environ["FAULT"]:
        case "engine dies":
            SecretSharingRuntime.run = engine_dies(SecretSharingRuntime.run)  # type: ignore[method-assign]
        case "garbage":
            SecretSharingRuntime.agree = garbage  # type: ignore[assignment,method-assign]
        case "short share":
            SecretSharingRuntime.open = short_share  # type: ignore[assignment,method-assign]
        case "fewer rows":
            computation.compute = fewer_rows(computation.compute)
    engine_process.main(sys.argv[1], sys.argv[2])
