"""Arithmetic on shares, without an engine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.errors import ArgumentError
from isthmus.joint.shares.shares import FRACTION, MODULUS, SecretShare, _elements, encoded

ring = st.integers(0, MODULUS - 1)


@given(st.lists(st.floats(-1e15, 1e15), min_size=1, max_size=5))
def test_numbers_as_ring_elements(values: list[float]) -> None:
    words = _elements(np.array(values))
    numbers = SecretShare(words, 128, real=True).numbers()
    assert numbers == [round(v * 2**FRACTION) % MODULUS for v in values]
    assert numbers == [encoded(v) for v in values]


@given(st.lists(st.tuples(st.integers(-(2**100), 2**100), ring), min_size=1, max_size=5))
def test_shares_sum_to_the_value(pairs: list[tuple[int, int]]) -> None:
    mine = SecretShare.from_numbers([(x - mask) % MODULUS for x, mask in pairs], (len(pairs),))
    theirs = SecretShare.from_numbers([mask for _, mask in pairs], (len(pairs),))
    expected = np.array([x / 2**FRACTION for x, _ in pairs])
    np.testing.assert_allclose(mine.combine(theirs.words), expected, rtol=1e-15, atol=0)


@given(st.integers(0, 10**6), st.integers(2**32, 2**63 - 2**32) | st.integers(-(2**63) + 2**32, 0))
def test_widening_keeps_the_value(count: int, mask: int) -> None:
    mine = np.array([(count - mask) % 2**64], dtype=np.uint64)
    theirs = np.array([mask % 2**64], dtype=np.uint64)
    wide = SecretShare(mine, 64).widened()
    assert wide.combine(SecretShare(theirs, 64).widened().words)[0] == count
    total = wide.numbers()[0] + SecretShare(theirs, 64).widened().numbers()[0]
    assert total % MODULUS == count


def test_only_integers_of_64_bits_are_widened() -> None:
    with pytest.raises(ArgumentError, match="64 bits"):
        SecretShare(np.zeros((2, 2), dtype=np.uint64), 128).widened()
