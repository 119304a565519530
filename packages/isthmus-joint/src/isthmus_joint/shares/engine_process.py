"""The process that computes on secret shares: it holds this party's columns and nobody else's.

It is a child of the party's own process, which holds the keys, the policy, the ledger and the
journal. It gets columns when the parent has checked the rules, and only rows that are computed
with. Before anything is opened, the child asks its parent, which writes it down. If the other party
is gone, the parent ends the child: the engine itself would wait.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from multiprocessing.connection import Connection
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import AbortedError, DataError, IsthmusError
from isthmus_joint.shares import alignment
from isthmus_joint.shares.engine import COMPUTATIONS, Opener, SecretSharingRuntime
from isthmus_joint.shares.link import Link, LinkOptions, connect
from isthmus_joint.shares.terms import Columns, ComputationTerms, SharedColumn

HASH = 64
INTERSECTION_SIZE = "intersection size"
"""The request for which no column is used."""

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

    def open(self, what: str, share: bytes, to: Sequence[int]) -> bytes:
        """Let the parent open a value, which decides that, records it and exchanges shares."""
        return self.call({"open": [what, base64.b64encode(share).decode(), list(to)]})


@final
@dataclass(frozen=True, eq=False)
class Inputs:
    """Inputs of the engine process from its parent.

    Attributes
    ----------
    terms
        What the study says about the computation.
    people
        Number of people in common, if the rows are already aligned; else how many people the other
        party states to have.
    hashes
        A keyed hash of each person's identifier; empty if the rows are already aligned.
    positions
        How the rows are aligned; empty if they are not yet.
    """

    link: LinkOptions
    terms: ComputationTerms
    request: str
    people: int
    hashes: list[str]
    positions: NDArray[np.intp]

    def to_bytes(self) -> bytes:
        """Return what `from_bytes` reads."""
        header = json.dumps([vars(self.link), vars(self.terms), self.request, self.people])
        buffer, hashes = BytesIO(), np.array(self.hashes, dtype=f"S{HASH}")
        np.savez(buffer, header=header, hashes=hashes, rows=self.positions)
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> Inputs:
        """Read what `to_bytes` wrote."""
        with np.load(BytesIO(data)) as given:
            link, terms, request, people = json.loads(str(given["header"]))
            options = LinkOptions(**link | {"address": tuple(link["address"])})
            hashes = [value.decode() for value in given["hashes"].tolist()]
            known = ComputationTerms.from_dict(terms)
            return cls(options, known, request, people, hashes, given["rows"])


def serve(parent: Parent) -> None:
    """Connect, find the common people, compute, and report the result."""
    given = Inputs.from_bytes(parent.call({"inputs": None}))
    parent.call({"ready": None})
    link = connect(given.link)
    terms = given.terms
    if given.request == INTERSECTION_SIZE:
        people = alignment.count_common(link, given.hashes, terms.minimum_cohort, given.people)
        parent.call({"counted": people})
        result: dict[str, Any] = {"people": people}
    else:
        positions, people = given.positions, given.people
        if given.hashes:
            positions, people = aligned(link, given)
            parent.call({"aligned": [alignment.written(positions), people]})
        values = np.frombuffer(parent.call({"sharing": None})).reshape(len(positions), -1)
        result = compute(link, terms, given.request, parent, values, positions >= 0, people)
    parent.call({"result": result})
    link.close()


def compute(
    link: Link,
    terms: ComputationTerms,
    name: str,
    opener: Opener,
    values: NDArray[np.float64],
    present: NDArray[np.bool_],
    people: int,
) -> dict[str, Any]:
    """Compute the request of this name together with the other party.

    Parameters
    ----------
    values
        The values of this party's variables, one row per person in the order of both parties.
    present
        Whether this party has the person of each row.
    people
        Number of people in common.
    """
    owners = {name: i for i, held in enumerate(terms.held) for name in held}
    columns = Columns(
        [SharedColumn(name, owners[name], terms.levels[name]) for name in terms.order],
        {name: values[:, i] for i, name in enumerate(terms.held[link.rank])},
        link.rank,
        len(values),
        knower=terms.knower,
        present=present,
        people=people,
    )
    return COMPUTATIONS[name](SecretSharingRuntime(link, opener), columns, terms)


def aligned(link: Link, given: Inputs) -> tuple[NDArray[np.intp], int]:
    """Return the own rows in an order that both parties use, and the number of common people.

    A row of -1 means that this party does not have the person.
    """
    knower = given.terms.knower
    if knower is None:
        return alignment.aligned_to_both(link, given.hashes, given.people)
    return alignment.aligned_to_one(link, given.hashes, knower, given.people)


def main(pipe: str) -> None:
    """Run the engine for the parent at the other end of the pipe with this number."""
    import resource  # not available on every system

    parent = Parent(Connection(int(pipe)))
    # If a message of the other party makes the engine crash, its columns do not go to disk.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        serve(parent)
    except AbortedError as error:
        parent.call({"failed": [error.reason or "engine", str(error)]})
    except DataError as error:
        parent.call({"failed": [REFUSED, str(error)]})
    except IsthmusError as error:
        parent.call({"failed": ["engine", str(error)]})
    except Exception as error:  # noqa: BLE001 - reported by the parent, which ends the run
        parent.call({"failed": ["engine", f"{type(error).__name__}: {str(error)[:200]}"]})


if __name__ == "__main__":
    main(sys.argv[1])
