"""What a computation of two parties will cost: estimated by a rehearsal, before anyone connects.

The rehearsal runs the same code as the party's engine, with products that are zeros: it adds up
their work. Which parents are added is not known beforehand; the rehearsal adds as many as the study
allows, from the middle of the order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any, cast, final

import numpy as np
from numpy.typing import NDArray

from isthmus.statistics import Kind
from isthmus_joint.shares.engine import COMPUTATIONS
from isthmus_joint.shares.link import Words
from isthmus_joint.shares.protocol import two_parties
from isthmus_joint.shares.requests import terms_of
from isthmus_joint.shares.secret_products import (
    AHEAD,
    GROUP,
    KEY,
    MESSAGE,
    SECURITY,
    ColumnProducts,
    messages,
)
from isthmus_joint.shares.terms import Columns, SharedColumn

if TYPE_CHECKING:
    from isthmus_joint.agreement.study import Study
    from isthmus_joint.shares.engine import SecretSharingRuntime
    from isthmus_joint.shares.requests import TwoPartyRequest


@final
@dataclass(frozen=True)
class Work:
    """What a computation does.

    Attributes
    ----------
    messages
        Messages with bits, of both parties, each of which is answered.
    transfers
        Bits of a party that are multiplied with numbers of the other.
    numbers
        Bytes of these numbers.
    rounds
        Messages that one of the parties waits for, one after the other.
    opened
        Bits of the values that are opened.
    """

    messages: int = 0
    transfers: int = 0
    numbers: int = 0
    rounds: int = 0
    opened: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    @property
    def traffic(self) -> float:
        """Bytes that both parties send: 16 for each transfer, the numbers, and checks."""
        return KEY * (self.transfers + self.messages * (2.5 * SECURITY + 1)) + self.numbers


@final
@dataclass(frozen=True)
class Cost:
    """An estimate of what one computation costs.

    Attributes
    ----------
    traffic
        Bytes that both parties send.
    memory
        Bytes that the engine of each party needs at most.
    rounds
        Round trips, one after the other.
    opened
        Bits that are opened: a party that changes its program learns no more of the columns. With
        tables, that is so for networks in which no parents have more levels.
    """

    cpu: float
    traffic: float
    memory: float
    rounds: int
    opened: int = 0

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
            f"40 ms and 100 Mbit/s; {self.opened:,} bits are opened"
        )


def _shown(number: float) -> str:
    return f"{float(f'{number:.2g}'):,g}"


PER_PARTY = (1.5, 0.0, 3.4e-7, 1.5e-8, 0.0, 0.0)
"""CPU seconds of a party: of the start, and per unit of `Work`. Fitted by
benchmarks/vertical/table.py, see benchmarks/results/vertical.md."""

BASE, PER_VALUE = 3e8, 40
"""Bytes of memory of the engine, and of each value of a party."""


def cost_of(work: Work, memory: float) -> Cost:
    """Return the cost of this work."""
    units = (1, *astuple(work))
    cpu = sum(a * b for a, b in zip(units, PER_PARTY, strict=True))
    return Cost(cpu, work.traffic, memory, work.rounds, work.opened)


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
        sent = [list(messages(x, self._rows, 1)) for x in wanted]
        cells = sum(math.prod(x.widths) for x in wanted)
        self.work += Work(
            sum(map(len, sent)),
            self._rows * sum(x.widths[0] for x in wanted),
            self._rows * cells,
            math.ceil(sum(map(len, sent)) / AHEAD),
        )
        self._add(cells * math.ceil(self._rows / GROUP), 8, ways=1)
        return [np.zeros(x.widths, dtype=np.uint64) for x in wanted]

    def chosen(self, own: NDArray[Any], shape: tuple[int, int, int]) -> Words:
        """Add the work of a selection; the result is zeros."""
        del own
        m, k, c = shape
        self._add(m * k, c * KEY, ways=1)
        return np.zeros((m, c, 2), dtype=np.uint64)

    def crossed(self, bits: NDArray[np.uint8], numbers: NDArray[Any]) -> NDArray[Any]:
        """Add the work of products in both directions; they are zeros."""
        self._add(len(bits), numbers[:1].nbytes, ways=2)
        return np.zeros_like(numbers)

    def _add(self, transfers: int, size: int, ways: int) -> None:
        sent = math.ceil(transfers * max(size, KEY) / MESSAGE)
        rounds = math.ceil(sent / AHEAD)
        self.work += Work(ways * sent, ways * transfers, ways * transfers * size, rounds)

    def open(
        self, secret: Words, what: str, to: Sequence[int] = (0, 1), bits: int | Sequence[int] = 64
    ) -> NDArray[Any]:
        """Return positions in the middle: the k-th variable that has a choice has k candidates."""
        del what, to
        self.work += Work(rounds=2, opened=int(np.broadcast_to(bits, secret.shape).sum()))
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
    compute = COMPUTATIONS.get(request.name)
    if compute is None:
        return None
    compute(cast("SecretSharingRuntime", rehearsal), columns, terms_of(study))
    values = people * len(terms.parties[rank].columns)
    return cost_of(rehearsal.work, BASE + PER_VALUE * values)
