"""An engine without encryption whose traffic can be read, as a process that obeys its stdin.

Each line of stdin names a file with this party's codes; the network is printed after it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from isthmus_joint.shares.engine import SecretSharingRuntime
from isthmus_joint.shares.link import connect_local
from isthmus_joint.shares.private_k2 import private_k2
from isthmus_joint.shares.secret_functions import CountScore
from isthmus_joint.shares.terms import Columns, SharedColumn


def leak_to_first(engine: SecretSharingRuntime, columns: Columns, how: str) -> None:
    """Tell the first party what it must not learn: for tests that such a leak is found."""
    if engine.rank == 0:
        engine._link.receive()
        return
    own = np.concatenate([columns.values[c.name] for c in columns.columns if c.owner == 1])
    message = own.astype("<i8").tobytes()
    if how == "masked":  # always with the same mask
        mask = np.random.default_rng(0).bytes(len(message))
        message = bytes(a ^ b for a, b in zip(message, mask, strict=True))
    if how == "length":
        message = bytes(20 * int(own.sum()))
    engine._link.send(message)


def main(rank: int, port: str, described: str, leak: str) -> None:
    engine = SecretSharingRuntime(connect_local(rank, int(port)))
    shapes = [SharedColumn(*each) for each in json.loads(described)]
    mine = [c.name for c in shapes if c.owner == rank]
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        codes = np.fromfile(Path(line.strip()), dtype=np.uint8).reshape(-1, len(mine))
        values = {name: codes[:, i].astype(np.int64) for i, name in enumerate(mine)}
        columns = Columns(shapes, values, rank, len(codes))
        if leak:
            leak_to_first(engine, columns, leak)
        dag, _ = private_k2(engine, columns, columns.names, 1, CountScore())
        sys.stdout.write(json.dumps(sorted(map(list, dag.edges))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
