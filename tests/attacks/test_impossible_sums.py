"""A site sends impossible numbers, and the coordinator writes the sum to its journal.

The sum was then read from there again and again. Now it is looked at before it is written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.attacks.malicious import Attacked

from isthmus.errors import AbortedError
from isthmus.statistics import CountPlan, Kind, Schema, Variable
from isthmus_joint import AskCounts, AskMoments, Federation, InProcess, MemoryJournal, SumRequest
from isthmus_joint.federation.requests.expectation import AskExpectation
from isthmus_joint.methods.admm import AskConsensus
from isthmus_joint.secure_sum.terms import LimbArray, from_ints, to_ints

SITES = ("x", "y", "z")
NUMBERS = ("a", "b")
CONTINUOUS = Schema.continuous(NUMBERS)
DISCRETE = Schema(tuple(Variable(n, Kind.DISCRETE, (0, 1, 2)) for n in NUMBERS))


def world(request: SumRequest[Any]) -> Attacked:
    rng = np.random.default_rng(1)
    discrete = isinstance(request, AskCounts)
    tables = {
        s: {n: rng.integers(3, size=100) if discrete else rng.normal(size=100) for n in NUMBERS}
        for s in SITES
    }
    schema, bounds = (DISCRETE, {}) if discrete else (CONTINUOUS, dict.fromkeys(NUMBERS, (-9, 9)))
    plan = CountPlan.up_to(2) if discrete else None
    return Attacked(tables, schema, bounds, requests=(request.name,), plan=plan)


def lying(world: Attacked, at: int, value: int) -> None:
    """Let the site z send another number, so that the total at this place becomes the value."""
    inner: Callable[[Any], LimbArray] = world.controllers["z"]._exact

    def lie(request: SumRequest[Any]) -> LimbArray:
        numbers = inner(request).copy()
        others = [to_ints(world.controllers[s]._exact(request))[at] for s in ("x", "y")]
        numbers[at] = from_ints([value - sum(others)], request.limbs)[0]
        return numbers

    world.controllers["z"]._exact = lie  # type: ignore[method-assign]


def federation(world: Attacked, journal: MemoryJournal) -> Federation:
    transport = InProcess({n: s.handle for n, s in world.sites.items()})
    return Federation(world.study, world.signatures, world.boss, transport, journal=journal)


COUNTS = AskCounts(CountPlan.up_to(2))


@pytest.mark.long
@pytest.mark.parametrize(
    ("request_", "at", "value"),
    [
        (AskMoments(NUMBERS), 0, -(2**100)),
        (AskMoments(NUMBERS), 0, 0),
        (AskMoments(NUMBERS), 0, 2**150),
        (AskMoments(NUMBERS), 1, 2**180),
        (AskMoments(NUMBERS), 3, -(2**160)),
        (AskMoments(NUMBERS), 5, 0),
        (COUNTS, 0, -5),
        (COUNTS, 0, 301),
        (COUNTS, 1, -1),
        (COUNTS, 2, 2**60),
        (AskExpectation(NUMBERS, 0), 0, 0),
        (AskExpectation(NUMBERS, 0), 2, 301),
        (AskExpectation(NUMBERS, 0), 4, 2**185),
        (AskConsensus(NUMBERS, 0), 0, 4),
        (AskConsensus(NUMBERS, 0), 1, -1),
    ],
)
def test_an_impossible_sum_is_not_written_down(
    request_: SumRequest[Any], at: int, value: int
) -> None:
    attacked, journal = world(request_), MemoryJournal()
    lying(attacked, at, value)
    for _ in range(2):
        with pytest.raises(AbortedError, match="wrong numbers"):
            federation(attacked, journal).ask(request_)
        assert all(record["event"] != "sum" for record in journal.records())
    attacked.join()  # the site is repaired, and the same run goes on
    federation(attacked, journal).ask(request_)
    assert journal.records()[-1]["event"] == "sum"
