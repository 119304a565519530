"""The cost of a run is estimated from the shapes of what it computes, without data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.joint.shares.companies import Companies, protocol

from isthmus.joint.methods.private_k2 import private_k2
from isthmus.joint.shares.columns import Columns, SharedColumn
from isthmus.joint.shares.cost import ROUNDS, Cost, Rehearsal, Work, estimated
from isthmus.joint.shares.requests import PrivateK2Request, StructureOnlyRequest
from isthmus.joint.shares.secret_functions import count_intervals
from isthmus.joint.shares.secret_products import AHEAD, GROUP, MESSAGE
from isthmus.joint.shares.secret_scores import CountScore


def rehearsed(levels: list[int], owners: list[int], people: int, parents: int) -> Work:
    names = [f"x{i}" for i in range(len(levels))]
    described = [SharedColumn(*c) for c in zip(names, owners, levels, strict=True)]
    values = {n: np.zeros(1, np.int64) for n, o in zip(names, owners, strict=True) if o == 0}
    rehearsal = Rehearsal(0, people)
    columns = Columns(described, values, 0, 1, people=people)
    private_k2(rehearsal, columns, names, parents, CountScore())  # type: ignore[arg-type]
    return rehearsal.work


def test_work_of_two_variables_by_hand() -> None:
    """Products of (3 - 1) with (4 - 1) columns, the first bits of 6 counts of each of 8 groups of
    people and of all, 12 cells in a batch of 64, and a choice between two scores."""
    bounds = len(count_intervals(1000).starts) - 1
    comparisons = 64 * bounds + 2
    rounds = sum(ROUNDS.values()) + 2 + 2 + 2
    assert rehearsed([3, 4], [0, 1], 1000, 1) == Work(2, 2054, 6054, comparisons, rounds, 6)


def test_a_second_parent_needs_only_new_products() -> None:
    """x0, x2 | x1: first x0x1, x1x2; then x0x1x2, each one product of n numbers."""
    first = rehearsed([2, 2, 2], [0, 1, 0], 1000, 1)
    both = rehearsed([2, 2, 2], [0, 1, 0], 1000, 2)
    assert first.products == 2 * 1009
    assert both.products == 3 * 1009


def test_products_are_sent_in_blocks() -> None:
    """A transfer takes 16 bytes of a message, as much as 16 products."""
    height = MESSAGE // 16 // GROUP * GROUP
    few, many = (rehearsed([2, 2], [0, 1], n * height, 1) for n in (AHEAD, 3 * AHEAD))
    assert many.rounds == few.rounds + 2


@pytest.mark.parametrize("kind", [PrivateK2Request, StructureOnlyRequest])
@pytest.mark.parametrize("intersection", ["both", "shop"])
def test_more_people_cost_more(
    kind: type[PrivateK2Request | StructureOnlyRequest], intersection: str
) -> None:
    study = Companies(protocol=replace(protocol(), intersection=intersection)).study
    costs = [estimated(study, kind.of(study), 0, people) for people in (1_000, 1_000_000)]
    few, many = (cost for cost in costs if cost is not None)
    assert few.cpu < many.cpu
    assert few.traffic < many.traffic
    assert few.memory < many.memory < 1.2e9


def test_time_on_a_connection() -> None:
    cost = Cost(10.0, 50e6, 6e8, 200, 1600)
    assert cost.seconds(0.04, 12.5e6) == pytest.approx(20 + 8)
    assert cost.seconds(0.04, 1e6) == pytest.approx(50 + 8)
    assert "50 MB of traffic and 200 round trips; 28 s" in str(cost)
    assert str(cost).endswith("1,600 secret counts")
