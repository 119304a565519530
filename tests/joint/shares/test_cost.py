"""The cost of a run is estimated from the shapes of what it computes, without data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.joint.shares.companies import Companies, protocol
from tests.joint.shares.links import at_both

from isthmus_joint.shares.cost import Cost, Rehearsal, Work, estimated
from isthmus_joint.shares.engine import SecretSharingRuntime
from isthmus_joint.shares.private_k2 import private_k2
from isthmus_joint.shares.requests import PrivateK2Request, StructureOnlyRequest
from isthmus_joint.shares.secret_functions import CountScore
from isthmus_joint.shares.secret_products import AHEAD, GROUP, MESSAGE
from isthmus_joint.shares.terms import Columns, SharedColumn


def rehearsed(levels: list[int], owners: list[int], people: int, parents: int) -> Work:
    names = [f"x{i}" for i in range(len(levels))]
    described = [SharedColumn(*c) for c in zip(names, owners, levels, strict=True)]
    values = {n: np.zeros(1, np.int64) for n, o in zip(names, owners, strict=True) if o == 0}
    rehearsal = Rehearsal(0, people)
    columns = Columns(described, values, 0, 1, people=people)
    private_k2(rehearsal, columns, names, parents, CountScore())  # type: ignore[arg-type]
    return rehearsal.work


@pytest.mark.long
def test_the_work_of_a_run_is_that_of_its_rehearsal() -> None:
    """Every variable gets the parents that a rehearsal gives it, so that both do the same."""
    rng, levels, owners = np.random.default_rng(0), [2, 3, 4], [0, 1, 0]
    first = rng.integers(0, 2, 3000)
    second = np.where(rng.random(3000) < 0.8, first, 2)
    data = np.stack([first, second, np.where(rng.random(3000) < 0.8, second, 3)], axis=1)
    names = ["x0", "x1", "x2"]

    def run(link: Any) -> Any:
        own = {n: data[:, i] for i, n in enumerate(names) if owners[i] == link.rank}
        described = [SharedColumn(*c) for c in zip(names, owners, levels, strict=True)]
        columns = Columns(described, own, link.rank, 3000)
        return private_k2(SecretSharingRuntime(link), columns, names, 1, CountScore())[0].edges

    results, links = at_both(run)
    assert set(results[0]) == {("x0", "x1"), ("x1", "x2")}
    work = rehearsed(levels, owners, 3000, 1)
    seeds = 128 * 2 * (2 * 33) + 4 * 32
    sent = sum(len(message) for link in links for message in link.seen) - seeds
    assert sent == pytest.approx(work.traffic, rel=0.05)
    # Each message with bits is answered; the others are four of the seeds and one agreement each.
    assert sum(len(link.seen) for link in links) - 2 * work.messages < 16


def test_a_second_parent_needs_only_new_products() -> None:
    """x0, x2 | x1: first x0x1, x1x2; then x0x1x2, each one product of n numbers."""
    first = rehearsed([2, 2, 2], [0, 1, 0], 10**6, 1)
    both = rehearsed([2, 2, 2], [0, 1, 0], 10**6, 2)
    assert first.numbers == pytest.approx(2e6, rel=0.2)
    assert both.numbers == pytest.approx(3e6, rel=0.2)


def test_products_are_sent_in_blocks() -> None:
    """A transfer takes 16 bytes of a message, as much as 16 products."""
    height = MESSAGE // 16 // GROUP * GROUP
    few, many = (rehearsed([2, 2], [0, 1], n * height, 1) for n in (AHEAD, 3 * AHEAD))
    assert many.messages - few.messages >= 2 * AHEAD
    assert many.rounds >= few.rounds + 2


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
    cost = Cost(10.0, 50e6, 6e8, 200)
    assert cost.seconds(0.04, 12.5e6) == pytest.approx(20 + 8)
    assert cost.seconds(0.04, 1e6) == pytest.approx(50 + 8)
    assert "50 MB of traffic and 200 round trips; 28 s" in str(cost)


def test_opened_bits_are_those_of_positions() -> None:
    """Two, three and four candidates of each variable but the first, of which one is no parent."""
    assert rehearsed([2] * 4, [0, 1, 0, 1], 1000, 1).opened == 1 + 2 + 2
