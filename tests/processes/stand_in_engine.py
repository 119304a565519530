"""An engine that computes nothing in secret: it opens a list of random values, with pauses.

For tests of everything around the engine: journals, ledgers, kills. It stands in for the
computation only; connection and alignment are the real ones.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from isthmus_joint.shares import engine_process, link
from isthmus_joint.shares.terms import ComputationTerms

STEPS = 6


def compute(
    channel: Any,
    terms: ComputationTerms,
    _: str,
    parent: Any,
    values: Any,
    _present: Any,
    people: int,
) -> dict[str, Any]:
    assert values.shape == (people, 2)  # the columns of nobody else
    assert resource.getrlimit(resource.RLIMIT_CORE) == (0, 0)
    pause = float(os.environ.get("STAND_IN_PAUSE", "0"))
    kill_at = int(os.environ.get("STAND_IN_KILL", "-1"))
    stop_at = int(os.environ.get("STAND_IN_STOP", "-1"))
    opened = []
    for i in range(STEPS):
        if i == kill_at:
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)
        if i == stop_at:
            os.kill(os.getpid(), signal.SIGSTOP)
        share = os.urandom(8)  # new in every attempt, as those of the real engine are
        shares = np.frombuffer(parent.open(f"decision {i}", share, (0, 1)), np.uint64)
        opened.append(int(shares.sum(dtype=np.uint64)))
        channel.send(f"{i}".encode())
        assert channel.receive().decode() == f"{i}"
        time.sleep(pause)
    Path(os.environ.get("STAND_IN_VALUES", os.devnull)).write_text(str(opened))
    order = terms.order
    return {"parents": {b: [a] for a, b in pairwise(order)} | {order[0]: []}, "values": opened}


def connect_late(options: Any) -> Any:
    """Connect some seconds after the other engine, as on a busy machine."""
    time.sleep(float(os.environ.get("STAND_IN_LATE", "0")))
    return link.connect(options)


if __name__ == "__main__":
    engine_process.__dict__["connect"] = connect_late
    engine_process.__dict__["compute"] = compute
    engine_process.main(sys.argv[1])
