"""What a computation of two parties will cost: estimated by a rehearsal, before anyone connects.

The rehearsal runs the same code as the party's engine, with a runtime that computes nothing: it
adds up the work of each program. Which parents are added is not known beforehand; the rehearsal
adds as many as the study allows, from the middle of the order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any, cast, final

import numpy as np
from numpy.typing import NDArray

from isthmus.joint.shares.columns import Columns, SharedColumn
from isthmus.joint.shares.protocol import two_parties
from isthmus.joint.shares.secret_products import (
    AHEAD,
    GROUP,
    LIFTED,
    ColumnProducts,
    messages,
)
from isthmus.joint.shares.shares import SecretShare, Words
from isthmus.statistics import Kind

if TYPE_CHECKING:
    from isthmus.joint.agreement.study import Study
    from isthmus.joint.shares.engine import SecretSharingRuntime
    from isthmus.joint.shares.requests import TwoPartyRequest


@final
@dataclass(frozen=True)
class Work:
    """What the programs of a computation do.

    Attributes
    ----------
    programs
        Number of programs that run.
    transfers
        Bits of a party that are multiplied with numbers of the other.
    products
        Numbers with which they are multiplied, of all bits together.
    comparisons
        Secret comparisons of counts and scores.
    rounds
        Messages that one of the parties waits for, one after the other.
    counts
        Secret counts of people.
    """

    programs: int = 0
    transfers: int = 0
    products: int = 0
    comparisons: int = 0
    rounds: int = 0
    counts: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


def work_of_products(wanted: Sequence[ColumnProducts], rows: int) -> Work:
    """Return the work of products of columns with this number of rows."""
    transfers = rows * sum(products.widths[0] for products in wanted)
    counts = sum(math.prod(products.widths) for products in wanted)
    lifted = counts * (math.ceil(rows / GROUP) + 1)
    sent = sum(1 for products in wanted for _ in messages(products, rows, 1))
    rounds = math.ceil(sent / AHEAD) + math.ceil(lifted / LIFTED) + 1
    return Work(0, transfers + lifted, counts * rows + lifted, 0, rounds, counts)


def work_of(program: str, shapes: Sequence[tuple[int, ...]]) -> Work:
    """Return the work of one program of this name, given the shapes of its inputs."""
    if program == "piecewise":
        return Work(1, 0, 0, shapes[0][0] * shapes[1][0], ROUNDS[program])
    if program == "positions_of_largest":
        height, width = shapes[0]
        return Work(1, 0, 0, height * width, ROUNDS[program] * (width - 1).bit_length())
    return Work(1, 0, 0, 2 * math.prod(shapes[0]), ROUNDS.get(program, 0))


ROUNDS = {"piecewise": 40, "positions_of_largest": 24}
"""Round trips of each program, measured with a relay of 500 ms; for the choice of the largest
score, those of each doubling."""


@final
@dataclass(frozen=True)
class Cost:
    """An estimate of what one computation costs.

    Attributes
    ----------
    cpu
        CPU seconds of each party.
    traffic
        Bytes that both parties send.
    memory
        Bytes that the engine of each party needs at most.
    rounds
        Round trips, one after the other.
    counts
        Secret counts of people, which a party that changes its program could read.
    """

    cpu: float
    traffic: float
    memory: float
    rounds: int
    counts: int

    def seconds(self, round_trip: float, bandwidth: float) -> float:
        """Return the duration with a connection of this round trip (s) and bandwidth (bytes/s).

        The parties mostly wait for each other, so their CPU seconds add up; but they compute while
        messages are on their way.
        """
        return max(2 * self.cpu, self.traffic / bandwidth) + self.rounds * round_trip

    def __str__(self) -> str:
        far = self.seconds(0.04, 100e6 / 8)
        return (
            f"about {_shown(self.cpu)} CPU seconds and {_shown(self.memory / 1e9)} GB of memory at "
            f"each party, {_shown(self.traffic / 1e6)} MB of traffic and {_shown(self.rounds)} "
            f"round trips; {_shown(far)} s if both computers are idle and the connection has "
            f"40 ms and 100 Mbit/s; {self.counts:,} secret counts"
        )


def _shown(number: float) -> str:
    return f"{float(f'{number:.2g}'):,g}"


PER_PARTY = (2.6, 0.45, 4.5e-7, 2e-8, 1.3e-4, 0.0, 0.0)
TRAFFIC = (0.0, 4.5e5, 16.0, 0.9, 2_700.0, 0.0, 0.0)
"""CPU seconds of a party, and bytes of both: of the start, and per unit of `Work`. Fitted by
benchmarks/vertical/table.py, see benchmarks/results/vertical.md."""

BASE, PER_VALUE = 8e8, 25
"""Bytes of memory of the engine, and of each value of a party."""


def cost_of(work: Work, memory: float) -> Cost:
    """Return the cost of this work."""
    units = (1, *astuple(work))
    cpu, traffic = (sum(a * b for a, b in zip(units, c, strict=True)) for c in (PER_PARTY, TRAFFIC))
    return Cost(cpu, traffic, memory, work.rounds, work.counts)


@final
class Rehearsal:
    """Stands in for a `SecretSharingRuntime` in which one row stands for many."""

    def __init__(self, rank: int, rows: int) -> None:
        self.rank = rank
        self.work = Work()
        self._rows = rows

    @property
    def products(self) -> Rehearsal:
        """Stands in for `SecretProducts` as well."""
        return self

    def counts(self, wanted: Sequence[ColumnProducts], rows: int) -> list[Words]:
        """Add the work of products of columns; the counts are zeros."""
        del rows
        self.work += work_of_products(wanted, self._rows)
        return [np.zeros(products.widths, dtype=np.uint64) for products in wanted]

    def run(self, program: Any, *inputs: Any) -> list[SecretShare]:
        """Add the work of a program; its result is zeros."""
        shapes = [value.shape for value in inputs]
        size = math.prod(shapes[0]) + 1 if program.__name__ == "release" else shapes[0][0]
        self.work += work_of(program.__name__, shapes)
        return [SecretShare(np.zeros((size, 2), dtype=np.uint64), 128)]

    def open(self, secret: SecretShare, what: str, to: Sequence[int] = (0, 1)) -> NDArray[Any]:
        """Return positions in the middle: the k-th variable that has a choice has k candidates."""
        del what, to
        self.work += Work(rounds=2)
        return 1 + np.arange(secret.shape[0]) // 2

    def agree(self, topic: str, terms: object) -> None:
        """Agree."""
        del topic, terms
        self.work += Work(rounds=1)


def estimated(study: Study, request: TwoPartyRequest, rank: int, people: int) -> Cost | None:
    """Return what a request costs with at most this many people; None if that is not known.

    Identifiers are not counted. Computations with continuous variables are not known.
    """
    if study.schema.of_kind(Kind.CONTINUOUS):
        return None
    terms = two_parties(study.protocol)
    owners = {name: i for i, party in enumerate(terms.parties) for name in party.columns}
    levels = {v.name: len(v.levels) for v in study.schema.variables}
    columns = Columns(
        [SharedColumn(name, owners[name], levels[name]) for name in terms.order],
        {name: np.zeros(1, dtype=np.int64) for name in terms.parties[rank].columns},
        rank,
        1,
        knower=terms.knower,
        people=people,
    )
    rehearsal = Rehearsal(rank, people)
    request.compute(cast("SecretSharingRuntime", rehearsal), columns, study)
    values = people * len(terms.parties[rank].columns)
    return cost_of(rehearsal.work, BASE + PER_VALUE * values)
