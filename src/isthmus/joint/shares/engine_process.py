"""The process that computes on secret shares: it holds this party's columns and nobody else's.

It is a child of the party's own process, which holds the keys, the policy, the ledger and the
journal. Before anything is opened, the child asks its parent, which writes it down. If the other
party is gone, the parent ends the child: the engine itself would wait.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from io import BytesIO
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import AbortedError, DataError, IsthmusError
from isthmus.joint.shares.alignment import aligned_to_one, count_common, intersect
from isthmus.joint.shares.link import LinkOptions, connect, require_spu
from isthmus.joint.shares.requests import IntersectionSize

if TYPE_CHECKING:
    from spu.libspu.link import Context

HASH = 64
REFUSED = "refused"
"""Why a run ends if a party's rules or data forbid it. The other party learns nothing more."""


@final
class Parent:
    """The party's own process, at the other end of a pipe."""

    def __init__(self, pipe: Connection[Any, Any]) -> None:
        self._pipe = pipe

    def call(self, message: dict[str, Any]) -> bytes:
        """Send a message and return the answer; the process ends if there is none."""
        try:
            self._pipe.send_bytes(json.dumps(message).encode())
            return self._pipe.recv_bytes()
        except (EOFError, OSError):
            raise SystemExit(1) from None

    def before(self, label: str) -> None:
        """Ask before a value is opened; returns when that is written down and allowed."""
        self.call({"revealing": label})

    def after(self, label: str, value: Any) -> None:
        """Report a value that was opened."""
        self.call({"decided": [label, plain(value)]})


@final
@dataclass(frozen=True, eq=False)
class Inputs:
    """Inputs of the engine process from its parent.

    Attributes
    ----------
    task
        The computation: request, order, parents, score, levels, columns of both parties.
    hashes
        A hash of each person's identifier; empty if the rows are already aligned.
    positions
        How the rows are aligned; empty if they are not yet.
    columns
        The values of this party's variables, one row per person.
    """

    link: LinkOptions
    task: dict[str, Any]
    hashes: list[str]
    positions: NDArray[np.intp]
    columns: NDArray[np.float64]

    def to_bytes(self) -> bytes:
        """Return what `from_bytes` reads."""
        buffer, header = BytesIO(), json.dumps([vars(self.link), self.task])
        hashes = np.array(self.hashes, dtype=f"S{HASH}")
        np.savez(buffer, header=header, hashes=hashes, rows=self.positions, columns=self.columns)
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> Inputs:
        """Read what `to_bytes` wrote."""
        with np.load(BytesIO(data)) as given:
            link, task = json.loads(str(given["header"]))
            link["addresses"] = tuple(link["addresses"])
            hashes = [value.decode() for value in given["hashes"].tolist()]
            return cls(LinkOptions(**link), task, hashes, given["rows"], given["columns"])


def plain(value: Any) -> Any:
    """Return a value as plain data for JSON."""
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def serve(parent: Parent, folder: Path) -> None:
    """Connect, find the common people, compute, and report the result."""
    from isthmus.joint.shares.computation import compute

    given = Inputs.from_bytes(parent.call({"inputs": None}))
    require_spu()
    parent.call({"ready": None})
    link = connect(given.link)
    parent.call({"connected": None})
    if given.task["request"] == IntersectionSize.name:
        people = count_common(link, given.hashes)
        parent.call({"counted": people})
        parent.call({"result": {"people": people}})
        link.stop_link()
        return
    positions, task = given.positions, given.task
    if given.hashes:
        positions, people = aligned(link, given.hashes, task["knower"], folder)
        task["people"] = people
        parent.call({"aligned": [positions.tolist(), people]})
    parent.call({"sharing": None})
    result = compute(link, task, given.columns[positions], parent, positions >= 0)
    parent.call({"result": result})
    link.stop_link()


def aligned(
    link: Context, hashes: list[str], knower: int | None, folder: Path
) -> tuple[NDArray[np.intp], int]:
    """Return the own rows in an order that both parties use, and the number of common people.

    A row of -1 means that this party does not have the person.
    """
    if knower is None:
        rows = intersect(link, hashes, folder)
        return rows, len(rows)
    return aligned_to_one(link, hashes, knower)


def main(pipe: str, folder: str) -> None:
    """Run the engine for the parent at the other end of the pipe with this number."""
    parent = Parent(Connection(int(pipe)))
    os.chdir(folder)  # SPU leaves log files where it runs
    try:
        serve(parent, Path(folder))
    except AbortedError as error:
        parent.call({"failed": [error.reason or "engine", str(error)]})
    except DataError as error:
        parent.call({"failed": [REFUSED, str(error)]})
    except IsthmusError as error:
        parent.call({"failed": ["engine", str(error)]})
    except Exception as error:  # noqa: BLE001 - the engine raises exceptions of any type
        # The text of an engine's error has file names of the engine, and is of no use to people.
        parent.call({"failed": ["engine", f"{type(error).__name__}: {str(error)[:200]}"]})


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
