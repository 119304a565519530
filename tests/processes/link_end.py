"""One end of the engines' connection, as a process: what two parties have in common."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from isthmus.errors import AbortedError
from isthmus.joint.shares import link
from isthmus.joint.shares.alignment import aligned_to_both
from isthmus.joint.shares.link import LinkOptions, connect


def main(
    folder: Path, rank: int, own: str, other: str, ports: str, people: str, others: str
) -> None:
    link.TRIES, link.ANSWER = 6, 2.0
    first, second = (f"127.0.0.1:{p}" for p in ports.split(","))
    options = LinkOptions(
        "test",
        rank,
        (first, second),
        str(folder / f"{own}.crt"),
        str(folder / f"{own}.pem"),
        str(folder / f"{other}.crt"),
        10.0,
    )
    try:
        connection = connect(options)
        rows, _ = aligned_to_both(connection, people.split(","), int(others))
        found = rows.tolist()
    except AbortedError as error:
        found = error.reason
    (folder / f"found{rank}.json").write_text(json.dumps(found))
    end = time.monotonic() + 30
    while not (folder / f"found{1 - rank}.json").exists() and time.monotonic() < end:
        time.sleep(0.1)  # as a party does: the other engine may still wait for its last message


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
