"""One end of the engines' connection, as a process: what two parties have in common."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from isthmus.errors import AbortedError
from isthmus.joint.shares import link
from isthmus.joint.shares.alignment import intersect
from isthmus.joint.shares.link import LinkOptions, connect


def main(folder: Path, rank: int, own: str, other: str, ports: str, people: str) -> None:
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
    private = folder / f"private{rank}"
    private.mkdir()
    try:
        found = intersect(connect(options), people.split(","), private).tolist()
    except AbortedError as error:
        found = error.reason
    left = [p.name for p in private.iterdir()]
    (folder / f"found{rank}.json").write_text(json.dumps([found, left]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
