"""The counting kernels against np.add.at, cell by cell."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from isthmus.errors import DataError
from isthmus.numerics import counting


def slow(
    codes: NDArray[Any], weights: NDArray[Any] | None, cards: NDArray[Any], variables: Any
) -> NDArray[Any]:
    if len(variables) == 0:
        return np.array(codes.shape[1] if weights is None else weights.sum())
    table = np.zeros([int(cards[v]) for v in variables], np.int64)
    places = tuple(codes[v].astype(np.int64) for v in variables)
    np.add.at(table, places, 1 if weights is None else weights)
    return table


def random_codes(
    seed: int, cards: NDArray[Any], m: int, dtype: Any, power: float = 1.0
) -> NDArray[Any]:
    """Codes of the given cardinalities; a power above 1 makes low levels frequent."""
    rng = np.random.default_rng(seed)
    draws = [np.floor(c * rng.random(m) ** power) for c in cards]
    return np.array(draws).reshape(len(cards), m).astype(dtype)


@pytest.fixture(params=["bitmap", "histogram", "model"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Force one kernel, or leave the choice to the cost model."""
    name: str = request.param
    if name != "model":
        monkeypatch.setattr(
            counting,
            "_bitmaps_pay",
            lambda cards, lines, *, weighted, whole: np.full(
                len(lines), name == "bitmap" and not weighted
            ),
        )
    return name


# Around the lengths of a word, a vector and a block.
ROWS = [0, 1, 7, 8, 63, 64, 65, 511, 512, 513, 4_095, 4_097, 16_384, 16_391, 70_001]


@pytest.mark.parametrize("m", ROWS)
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_lengths(kernel: str, m: int, dtype: Any) -> None:
    cards = np.array([3, 1, 2, 5, 4])
    codes = random_codes(m, cards, m, dtype, power=2.0)
    for size in range(1, 6):
        tables = counting.tally_all(codes, None, cards, size)
        assert [tuple(s) for s in tables.sets] == list(combinations(range(5), size))
        for i, variables in enumerate(tables.sets):
            np.testing.assert_array_equal(tables.table(i), slow(codes, None, cards, variables))
    got = counting.tally(codes, None, cards, [4, 0, 3])
    np.testing.assert_array_equal(got, slow(codes, None, cards, [4, 0, 3]))


@settings(deadline=None, max_examples=150)
@given(
    cards=st.lists(st.integers(1, 9), min_size=1, max_size=6),
    m=st.integers(0, 400),
    seed=st.integers(0, 2**32 - 1),
    wide=st.booleans(),
    weighted=st.booleans(),
    forced=st.sampled_from([None, False, True]),
    data=st.data(),
)
def test_any_tables(
    cards: list[int],
    m: int,
    seed: int,
    wide: bool,
    weighted: bool,
    forced: bool | None,
    data: st.DataObject,
) -> None:
    levels = np.array(cards)
    codes = random_codes(seed, levels, m, np.uint16 if wide else np.uint8)
    weights = None
    if weighted:
        weights = np.random.default_rng(seed).integers(0, 2**40, m)
    member = st.integers(0, len(cards) - 1)
    sets = data.draw(st.lists(st.lists(member, max_size=4, unique=True), max_size=5))
    with pytest.MonkeyPatch.context() as patch:
        if forced is not None:
            patch.setattr(
                counting,
                "_bitmaps_pay",
                lambda cards, lines, *, weighted, whole: np.full(
                    len(lines), forced and not weighted
                ),
            )
        tables = counting.tally_many(codes, weights, cards, sets)
    assert len(tables) == len(sets)
    for table, variables in zip(tables, sets, strict=True):
        assert table.dtype == np.int64
        np.testing.assert_array_equal(table, slow(codes, weights, levels, variables))


def test_mixed_cardinalities_use_both_kernels() -> None:
    cards = np.array([2, 3, 63, 2, 300, 40])
    codes = random_codes(5, cards, 20_000, np.uint16)
    lines = np.array(list(combinations(range(6), 3)))
    pays = counting._bitmaps_pay(cards, lines, weighted=False, whole=False)
    assert pays.any()
    assert not pays.all()
    tables = counting.tally_all(codes, None, cards, 3)
    for i, variables in enumerate(lines):
        np.testing.assert_array_equal(tables.table(i), slow(codes, None, cards, variables))


def test_more_cells_than_16_bits(kernel: str) -> None:
    cards = np.array([50, 60, 41])
    codes = random_codes(1, cards, 5_000, np.uint8)
    got = counting.tally(codes, None, cards, [2, 0, 1])
    np.testing.assert_array_equal(got, slow(codes, None, cards, [2, 0, 1]))
    weights = np.arange(5_000)
    got = counting.tally(codes, weights, cards, [2, 0, 1])
    np.testing.assert_array_equal(got, slow(codes, weights, cards, [2, 0, 1]))


def test_many_variables_of_one_table(kernel: str) -> None:
    cards = np.array([2] * 14 + [1, 3])
    codes = random_codes(2, cards, 1_000, np.uint8)
    got = counting.tally(codes, None, cards, range(16))
    np.testing.assert_array_equal(got, slow(codes, None, cards, range(16)))


def test_full_range_of_codes(kernel: str) -> None:
    cards = np.array([256, 2])
    codes = np.stack([np.arange(256), np.arange(256) % 2]).astype(np.uint8)
    got = counting.tally(codes, None, cards, [0, 1])
    np.testing.assert_array_equal(got, slow(codes, None, cards, [0, 1]))


def test_no_variables_give_the_number_of_rows() -> None:
    codes = np.zeros((2, 5), np.uint8)
    assert counting.tally(codes, None, [1, 1], []) == 5
    assert counting.tally(codes, np.arange(5), [1, 1], []) == 10


@pytest.mark.parametrize(
    ("codes", "weights", "cards", "variables", "word"),
    [
        (np.zeros((2, 3), np.int64), None, [2, 2], [0], "uint8"),
        (np.zeros((3, 2), np.uint8).T, None, [2, 2], [0], "contiguous"),
        (np.zeros((2, 3), np.uint8), None, [2], [0], "cardinalities"),
        (np.zeros((2, 3), np.uint8), None, [2, 0], [0], "cardinalities"),
        (np.zeros((2, 3), np.uint8), np.ones(2, np.int64), [2, 2], [0], "weight"),
        (np.zeros((2, 3), np.uint8), np.ones(3), [2, 2], [0], "weight"),
        (np.zeros((2, 3), np.uint8), None, [2, 2], [2], "there are 0 to 1"),
        (np.zeros((2, 3), np.uint8), None, [2, 2], [-1], "there are 0 to 1"),
        (np.full((2, 3), 2, np.uint8), None, [3, 2], [1], "allow codes 0 to 1"),
        (np.zeros((5, 3), np.uint8), None, [256] * 5, range(5), "fewer variables"),
    ],
)
def test_what_the_kernels_rely_on_is_tested(
    codes: NDArray[Any], weights: Any, cards: list[int], variables: Any, word: str
) -> None:
    with pytest.raises(DataError, match=word):
        counting.tally(codes, weights, cards, variables)


@pytest.mark.parametrize("size", [0, 3])
def test_sizes_of_all_sets(size: int) -> None:
    with pytest.raises(DataError, match="1 to 2"):
        counting.tally_all(np.zeros((2, 3), np.uint8), None, [2, 2], size)
