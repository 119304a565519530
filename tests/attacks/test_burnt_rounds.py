"""A site that goes silent at a bad moment uses up the rounds that the others allow.

A question counts once until its answer is known. Openings are bounded by themselves.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.attacks.malicious import Attacked

from isthmus.errors import AbortedError
from isthmus.statistics import Schema

ROUNDS = 10


def world() -> Attacked:
    rng = np.random.default_rng(1)
    tables = {n: {"a": rng.normal(size=100), "b": rng.normal(size=100)} for n in "xyz"}
    return Attacked(
        tables,
        Schema.continuous(["a", "b"]),
        dict.fromkeys("ab", (-9, 9)),
        rounds=ROUNDS,
    )


@pytest.mark.long
@pytest.mark.parametrize("exchange", range(4))
def test_silences_use_up_no_rounds(exchange: int) -> None:
    attacked = world()
    for number in range(1, 3 * ROUNDS):
        with pytest.raises(AbortedError):
            attacked.federation(number, lost=[("z", exchange)]).moments()
    assert attacked.federation(50).moments().n == 300
    writer = attacked.controllers["x"]._writer
    assert writer.here.tally.questions == 1
    assert not attacked.why("x")


def test_the_same_question_counts_again_once_it_was_answered() -> None:
    attacked = world()
    for number in range(1, ROUNDS + 1):
        assert attacked.federation(number).moments().n == 300
    with pytest.raises(AbortedError):
        attacked.federation(50).moments()
    assert attacked.why("x") == ["policy"]


def test_a_sum_that_z_can_unmask_alone_counts() -> None:
    """The others have given their shares. Whether z keeps its own to itself, nobody knows."""
    attacked = world()
    for number in range(1, ROUNDS + 1):
        with pytest.raises(AbortedError):
            attacked.federation(number, lost=[("z", 4)]).moments()
    assert attacked.controllers["x"]._writer.here.tally.questions == ROUNDS


@pytest.mark.long
def test_openings_are_bounded() -> None:
    attacked = world()
    for number in range(1, 10 * ROUNDS + 1):
        with pytest.raises(AbortedError):
            attacked.federation(number, lost=[("z", 1)]).moments()
    assert not attacked.why("x")
    with pytest.raises(AbortedError, match="'x': 'refused'"):
        attacked.federation(1000).moments()
    assert attacked.why("x") == ["policy"]
