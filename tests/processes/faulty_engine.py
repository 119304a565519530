"""The real engine with a fault, for tests of the other party.

FAULT names the fault, and the file FAULT_AT is created when it happens.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from isthmus_joint.shares import engine_process
from isthmus_joint.shares.engine import SecretSharingRuntime
from isthmus_joint.shares.secret_products import SecretProducts

COMMAND = [
    sys.executable,
    "-c",
    """
import os, signal, sys
from isthmus_joint.shares import two_party
two_party.ENGINE = (sys.executable, "-m", "tests.processes.faulty_engine")
opened = two_party.TwoPartyRun._open
def dying(self, value):
    opened(self, value)
    open(os.environ["FAULT_AT"], "w").close()
    os.kill(os.getpid(), signal.SIGKILL)
if os.environ["FAULT"] == "party dies":
    two_party.TwoPartyRun._open = dying
from isthmus.cli import main
raise SystemExit(main())
""",
]
"""The command of a party with this engine; "party dies" kills it after the first opening."""


def happened() -> None:
    Path(os.environ["FAULT_AT"]).touch()


def engine_dies(count: Callable[..., Any]) -> Callable[..., Any]:
    """Kill this process after the first secret counts."""

    def run_once(*arguments: Any, **options: Any) -> None:
        count(*arguments, **options)
        happened()
        os.kill(os.getpid(), signal.SIGKILL)

    return run_once


def garbage(engine: SecretSharingRuntime, *_: object) -> None:
    """Send bytes instead of a hash, and wait to be ended."""
    happened()
    engine._link.send(os.urandom(64))
    time.sleep(60)


def short_share(
    engine: SecretSharingRuntime, secret: NDArray[Any], what: str, *_: object, **_more: object
) -> None:
    """Open a share that has not the length of a share."""
    happened()
    engine._opener.open(what, secret.tobytes()[:-5], (0, 1))
    time.sleep(60)


def fewer_rows(compute: Callable[..., Any]) -> Callable[..., Any]:
    def compute_less(
        link: Any, study: Any, name: str, parent: Any, values: Any, present: Any, n: int
    ) -> Any:
        happened()
        return compute(link, study, name, parent, values[:-1], present[:-1], n)

    return compute_less


if __name__ == "__main__":
    match os.environ["FAULT"]:
        case "engine dies":
            SecretProducts.counts = engine_dies(SecretProducts.counts)  # type: ignore[method-assign]
        case "garbage":
            SecretSharingRuntime.agree = garbage  # type: ignore[assignment,method-assign]
        case "short share":
            SecretSharingRuntime.open = short_share  # type: ignore[assignment,method-assign]
        case "fewer rows":
            engine_process.compute = fewer_rows(engine_process.compute)
    engine_process.main(sys.argv[1])
