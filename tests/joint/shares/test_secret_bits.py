"""Circuits of secret bits against plain arithmetic, and what a party sees of them."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.joint.shares.links import at_both
from tests.joint.shares.pair import Pair

from isthmus_joint.shares import private_k2, secret_functions
from isthmus_joint.shares.link import Words, added, wide
from isthmus_joint.shares.secret_products import SecretProducts

RNG = np.random.default_rng(4)


def bit_shares(bits: NDArray[Any]) -> list[NDArray[np.uint8]]:
    mask = RNG.integers(0, 2, bits.shape).astype(np.uint8)
    return [bits.astype(np.uint8) ^ mask, mask]


def shares(numbers: Any) -> list[Words]:
    whole = np.asarray(numbers, dtype=np.int64).view(np.uint64)
    mask = RNG.integers(0, 2**64, whole.shape, dtype=np.uint64)
    return [whole - mask, mask]


def test_bits_of_sums_that_exceed_the_ring(pair: Pair) -> None:
    numbers = np.array([0, 1, 127, 128, 255, *RNG.integers(0, 256, 40)])
    own = shares(numbers)
    first, second = pair(
        lambda engine, share: secret_functions.bits_of(engine.products, share, 8, engine.rank),
        own=[(x,) for x in own],
    )
    assert ((first ^ second) << np.arange(8)).sum(axis=1).tolist() == numbers.tolist()


def test_signs_at_the_ends_of_the_range(pair: Pair) -> None:
    numbers = [0, 1, -1, 2**63 - 1, -(2**63), *RNG.integers(-(2**62), 2**62, 40)]
    first, second = pair(
        lambda engine, share: secret_functions.negatives(engine.products, share, engine.rank),
        own=[(x,) for x in shares(numbers)],
    )
    assert (first ^ second).tolist() == [x < 0 for x in numbers]


@pytest.mark.parametrize("width", [1, 2, 3, 5, 8])
def test_carries_reach_every_place(pair: Pair, width: int) -> None:
    cases = list(product(("make", "pass", "stop"), repeat=width))[:: 1 + 3**width // 300]
    makes = np.array([[x == "make" for x in case] for case in cases])
    passes = np.array([[x == "pass" for x in case] for case in cases])
    first, second = pair(
        lambda engine, *own: secret_functions.carried(engine.products, *own),
        own=list(zip(bit_shares(makes), bit_shares(passes), strict=True)),
    )
    expected = np.zeros_like(makes)
    for k in range(width):
        expected[:, k] = makes[:, k] | (passes[:, k] & expected[:, k - 1] if k else False)
    assert ((first ^ second) == expected).all()


def test_bits_times_numbers(pair: Pair) -> None:
    bits = np.arange(30) % 2
    numbers = RNG.integers(-(2**63), 2**63 - 1, (30, 3))
    first, second = pair(
        lambda engine, *own: secret_functions.times(engine.products, *own),
        own=list(zip(bit_shares(bits), shares(numbers), strict=True)),
    )
    assert ((first + second).view(np.int64) == numbers * bits[:, None]).all()


def test_numbers_of_bits_times_wide_numbers(pair: Pair) -> None:
    factors, whole = [0, 1, 5, 255], [3**70, 1, 2**120 + 7, 2**64 - 1]
    bits = np.array([[f >> k & 1 for k in range(8)] for f in factors])
    masks = [int.from_bytes(RNG.bytes(16), "little") for _ in whole]
    split = [wide([x - m for x, m in zip(whole, masks, strict=True)]), wide(masks)]
    first, second = pair(
        lambda engine, x, y: secret_functions.scaled(engine.products, x, y, np.arange(8)),
        own=list(zip(bit_shares(bits), split, strict=True)),
    )
    expected = wide([f * x for f, x in zip(factors, whole, strict=True)])
    assert (added(first, second) == expected).all()


@pytest.mark.long
@pytest.mark.parametrize(
    ("table", "shown"),
    [
        ([[5, 6], [7, 8]], True),
        ([[5, 6], [0, 0]], True),  # nobody has this value of the receiver's variable
        ([[5, 6, 0], [0, 9, 5]], True),
        ([[5, 6], [4, 8]], False),  # too few people in a cell
        ([[5, 6], [0, 9]], False),  # all people of a row in one cell
        ([[5, 6], [1, 9]], False),
        ([[5], [6]], False),
        ([[0, 0], [0, 0]], True),
    ],
)
def test_a_table_is_shown_unless_it_tells_about_single_people(
    pair: Pair, table: list[list[int]], shown: bool
) -> None:
    first, second = pair(
        lambda engine, own: private_k2.release(engine, own, 40, 5),
        own=[(x,) for x in shares(table)],
    )
    expected = [*np.ravel(table), 1] if shown else [0] * (np.size(table) + 1)
    assert (first + second).tolist() == expected


def test_a_party_sees_random_numbers_whatever_it_gives() -> None:
    """All that a party gets of the other's numbers, here always 77, is masked by random ones."""
    size = 20_000

    def run(link: Any) -> Any:
        if link.rank == 1:
            bits, numbers = np.ones(size, np.uint8), np.full((size, 1), 77, np.uint8)
        else:  # deviates: bits and numbers of its choice, which are no shares of anything
            bits = (np.arange(size) % 2).astype(np.uint8)
            numbers = np.arange(size, dtype=np.uint8)[:, None]
        return SecretProducts(link).crossed(bits, numbers)[:, 0]

    (first, second), _ = at_both(run)
    for part in (first[::2], first[1::2], second):
        seen = np.bincount(part, minlength=256)
        expected = len(part) / 256
        assert ((seen - expected) ** 2 / expected).sum() < 255 + 6 * np.sqrt(2 * 255)
