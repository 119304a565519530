"""Arithmetic on shares of two words, against integers of unlimited size."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from isthmus_joint.shares.link import (
    Words,
    added,
    decoded,
    divided,
    encoded,
    negative,
    shifted,
    total,
    truncated,
    wide,
)

RING = 2**128
edges = st.sampled_from([0, 1, 2**32 - 1, 2**63, 2**64 - 1, 2**64, 2**127, RING - 1])
elements = st.lists(edges | st.integers(0, RING - 1), min_size=1, max_size=6)
places = st.integers(0, 63)


def numbers(words: Words) -> list[int]:
    return [low | high << 64 for low, high in words.reshape(-1, 2).tolist()]


@given(elements, st.data())
def test_sums(first: list[int], data: st.DataObject) -> None:
    second = data.draw(st.lists(edges, min_size=len(first), max_size=len(first)))
    pairs = list(zip(first, second, strict=True))
    assert numbers(added(wide(first), wide(second))) == [(a + b) % RING for a, b in pairs]
    assert numbers(negative(wide(first))) == [-a % RING for a in first]
    stacked = np.stack([wide(first), wide(second), wide(second)])
    assert numbers(total(stacked, 0)) == [(a + 2 * b) % RING for a, b in pairs]


@given(elements, places)
def test_powers_of_two(own: list[int], k: int) -> None:
    assert numbers(shifted(wide(own), np.array(k))) == [(a << k) % RING for a in own]
    assert numbers(divided(wide(own), k)) == [a >> k for a in own]


@given(st.integers(-(2**90), 2**90), st.integers(2**91, RING - 2**91), places)
def test_truncated_shares(secret: int, mask: int, k: int) -> None:
    """Unless a share is within the size of the secret from the ends of the ring."""
    shares = [wide([(secret - mask) % RING]), wide([mask])]
    parts = [truncated(share, k, rank) for rank, share in enumerate(shares)]
    (found,) = numbers(added(*parts))
    found -= found >> 127 << 128
    assert abs(found - (secret >> k)) <= 1


@given(st.floats(-4e9, 4e9), st.integers(0, 2**64 - 1))
def test_scores(value: float, mask: int) -> None:
    other = np.array([mask], dtype=np.uint64)
    assert abs(decoded(encoded([value]) - other + other)[0] - value) <= 2.0**-31
