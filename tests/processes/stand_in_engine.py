"""An engine that computes nothing in secret: it opens a fixed list of values, with pauses.

For tests of everything around the engine: journals, ledgers, kills. It stands in for the
computation only; connection and alignment are the real ones.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import types
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isthmus.joint.shares import engine_process, link

STEPS = 6


def compute(
    channel: Any,
    task: dict[str, Any],
    columns: NDArray[np.float64],
    parent: Any,
    present: NDArray[np.bool_],
) -> dict[str, Any]:
    rank: int = channel.rank
    pause = float(os.environ.get("STAND_IN_PAUSE", "0"))
    kill_at = int(os.environ.get("STAND_IN_KILL", "-1"))
    stop_at = int(os.environ.get("STAND_IN_STOP", "-1"))
    odd = os.environ.get("STAND_IN_ODD", "")
    parents = {}
    for i in range(STEPS):
        label = f"decision {i}"
        if i == kill_at:
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)
        if i == stop_at:
            os.kill(os.getpid(), signal.SIGSTOP)
        if label not in task["known"]:
            parent.before(label)
            channel.send(1 - rank, f"{i}")
            assert channel.recv(1 - rank).decode() == f"{i}"
            parent.after(label, f"{odd}{i}")
        time.sleep(pause)
    order = task["order"]
    parents = {b: [a] for a, b in pairwise(order)} | {order[0]: []}
    return {"parents": parents}


def connect_late(options: Any) -> Any:
    """Connect some seconds after the other engine, as behind a slow network."""
    time.sleep(float(os.environ.get("STAND_IN_LATE", "0")))
    return link.connect(options)


if __name__ == "__main__":
    engine_process.__dict__["connect"] = connect_late
    link.ANSWER, link.RETRIES = 4.0, 0  # tests need not wait for messages that were lost
    module = types.ModuleType("isthmus.joint.shares.computation")
    module.__dict__["compute"] = compute
    sys.modules[module.__name__] = module
    engine_process.main(sys.argv[1], sys.argv[2])
