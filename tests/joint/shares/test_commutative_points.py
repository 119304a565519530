"""Intersections by commutative encryption: people to both or to one party, or the size alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Queue
from typing import Any

import numpy as np
import pytest
from tests.joint.shares.links import WINDOW, Link, at_both

from isthmus.errors import AbortedError
from isthmus_joint.shares import alignment
from isthmus_joint.shares.alignment import (
    CURVE,
    MODULUS,
    Multiplier,
    aligned_to_both,
    aligned_to_one,
    count_common,
    point_of,
)


def both(function: Callable[..., Any], people: list[list[str]], *more: Any) -> Any:
    results, links = at_both(
        lambda link: function(link, people[link.rank], *more, len(people[1 - link.rank]))
    )
    return results, [link.seen for link in links]


pytest.importorskip("gmpy2", reason="gmpy2 is not installed: isthmus[vertical]")

PEOPLE = [[f"p{i}" for i in range(40)], [f"p{i}" for i in range(60, 15, -1)]]
HIGH_BIT = point_of("x")[:-1] + bytes([point_of("x")[-1] | 128])
LOW_ORDER_ADDED = pow(int.from_bytes(point_of("x"), "little"), -1, MODULUS).to_bytes(32, "little")
"""The sum of a point and the one of order two, which has the same product."""
COMMON = {f"p{i}" for i in range(16, 40)}


def test_multiplying_commutes() -> None:
    first, second = Multiplier(), Multiplier()
    point = point_of("x")
    assert first(second(point)) == second(first(point)) != point
    assert point_of("x") != point_of("y")


def test_hashes_are_points_of_the_curve_itself() -> None:
    """Not of its twist: the right side of the equation is a square."""
    for k in range(100):
        x = int.from_bytes(point_of(f"p{k}"), "little")
        assert pow(x**3 + CURVE * x**2 + x, (MODULUS - 1) // 2, MODULUS) == 1


def test_points_and_their_products_tell_no_bit_of_the_hash() -> None:
    """All are on the curve and none on its twist; a plain hash would be on either."""

    def on_curve(data: bytes) -> bool:
        x = int.from_bytes(data, "little")
        return pow(x**3 + CURVE * x**2 + x, (MODULUS - 1) // 2, MODULUS) == 1

    key = Multiplier()
    assert all(on_curve(point_of(str(i))) for i in range(50))
    assert all(on_curve(key(point_of(str(i)))) for i in range(50))


@pytest.mark.parametrize("batch", [7, 1024])
def test_both_learn_the_size(monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    monkeypatch.setattr(alignment, "BATCH", batch)
    results, _ = both(count_common, PEOPLE, 24)
    assert results == [24, 24]
    assert both(count_common, PEOPLE, 25)[0] == [0, 0]  # fewer than that
    assert both(count_common, [["a"], ["b", "c"]], 0)[0] == [0, 0]


def test_the_size_does_not_tell_who() -> None:
    """The points that come back to the party that counts are in an order of their own."""
    results, seen = both(count_common, [PEOPLE[0], PEOPLE[0]], 2)
    assert results == [40, 40]
    _, first, returned = seen[0]
    assert len(first) == len(returned) == 40 * 32
    sent = seen[1][1]  # what the first party sent, in its order
    assert not any(sent[k : k + 32] in first for k in range(0, len(sent), 32))


@pytest.mark.parametrize("batch", [7, 1024])
def test_each_party_learns_who_and_rows_are_aligned(
    monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    monkeypatch.setattr(alignment, "BATCH", batch)
    (first, second), _ = both(aligned_to_both, PEOPLE)
    assert first[1] == second[1] == len(COMMON)
    names = [[PEOPLE[rank][i] for i in rows] for rank, (rows, _) in enumerate((first, second))]
    assert names[0] == names[1]
    assert set(names[0]) == COMMON
    for rows, people in both(aligned_to_both, [["a"], ["b", "c"]])[0]:
        assert (rows.tolist(), people) == ([], 0)


def against(other: Callable[[Any], None], people: list[str], stated: int) -> AbortedError:
    """How an unchanged party of rank 0 ends that aligns with another program."""
    queues: list[Queue[bytes]] = [Queue(WINDOW), Queue(WINDOW)]
    links: list[Any] = [Link(rank, queues) for rank in (0, 1)]
    thread = threading.Thread(target=other, args=(links[1],))
    thread.start()
    with pytest.raises(AbortedError) as caught:
        aligned_to_both(links[0], people, stated)
    thread.join(60)
    return caught.value


@pytest.mark.parametrize(("counts", "reason"), [(3, "broken message"), (4, "other identifiers")])
def test_nobody_asks_for_more_people_than_it_has_stated(counts: int, reason: str) -> None:
    """The other party states three people, and comes with four points."""

    def other(link: Any) -> None:
        link.send(counts.to_bytes(8, "little"))
        link.send(b"".join(point_of(str(i)) for i in range(4)))

    assert against(other, ["0", "1"], 3).reason == reason


def test_nobody_names_rows_of_the_other_party_by_returning_its_answers() -> None:
    """Whoever may answer last could send points of the other party back, and then its answers."""

    def other(link: Any) -> None:
        for _ in range(2):  # the number of people, and their points
            link.send(link.receive())
        link.receive()
        link.send(bytes(32))  # it cannot commit yet to what it will get
        for _ in range(2):  # the salt and the answers
            link.send(link.receive())

    assert against(other, ["0", "1"], 2).reason == "broken message"


def test_a_commitment_sent_back_is_not_one_of_the_other_party() -> None:
    def other(link: Any) -> None:
        for _ in range(5):
            link.send(link.receive())

    assert against(other, ["0", "1"], 2).reason == "broken message"


@pytest.mark.parametrize("receiver", [0, 1])
def test_one_party_learns_who_and_rows_are_aligned(receiver: int) -> None:
    results, _ = both(aligned_to_one, PEOPLE, receiver)
    (known, people), (order, told) = results[receiver], results[1 - receiver]
    assert people == told == len(COMMON)
    mine, others = PEOPLE[receiver], PEOPLE[1 - receiver]
    assert sorted(order.tolist()) == list(range(len(others)))  # all its rows, none left out
    pairs = [(mine[i], others[j]) for i, j in zip(known, order, strict=True) if i >= 0]
    assert {a for a, _ in pairs} == COMMON
    assert all(a == b for a, b in pairs)
    assert not np.array_equal(order, np.arange(len(others)))


@pytest.mark.parametrize(
    "messages",
    [
        [b""],
        [b"12345678"],
        [(2).to_bytes(8, "little"), bytes(63)],
        [(2).to_bytes(8, "little"), bytes(96)],
        [(2).to_bytes(8, "little"), bytes(32) + point_of("x")],  # a point of low order
        [(2).to_bytes(8, "little"), point_of("x") * 2],
        [(2).to_bytes(8, "little"), point_of("x") + HIGH_BIT],  # the same point, written otherwise
        [(2).to_bytes(8, "little"), point_of("x") + LOW_ORDER_ADDED],
    ],
)
def test_messages_that_are_no_points(messages: list[bytes]) -> None:
    queues: list[Queue[bytes]] = [Queue(WINDOW), Queue(WINDOW)]
    for message in messages:
        queues[1].put(message)
    link: Any = Link(1, queues)
    with pytest.raises(AbortedError) as caught:
        count_common(link, ["a"], 2, 2)
    assert caught.value.reason == "broken message"
