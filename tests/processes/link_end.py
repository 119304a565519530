"""One end of the engines' connection, as a process: what two parties have in common."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from isthmus.errors import AbortedError
from isthmus_joint.shares import link
from isthmus_joint.shares.alignment import aligned_to_both
from isthmus_joint.shares.link import LinkOptions, connect
from isthmus_joint.transport.certificates import fingerprint


def main(
    folder: Path, rank: int, own: str, other: str, port: str, people: str, others: str
) -> None:
    link.CONNECTING = 6.0
    trusted = folder / f"{other}.crt"
    options = LinkOptions(
        "test",
        rank,
        ("127.0.0.1", int(port)),
        str(folder / f"{own}.crt"),
        str(folder / f"{own}.pem"),
        str(trusted),
        fingerprint(trusted.read_bytes()),
        10.0,
    )
    try:
        connection = connect(options)
        rows, _ = aligned_to_both(connection, people.split(","), int(others))
        connection.close()
        found = rows.tolist()
    except AbortedError as error:
        found = error.reason
    (folder / f"found{rank}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
