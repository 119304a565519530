"""Tables of counts against np.add.at, cell by cell."""

from __future__ import annotations

import signal
import threading
import time
from itertools import combinations
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from isthmus.errors import DataError
from isthmus.kernels import counting
from isthmus.kernels.counting import CountingMethod


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


@pytest.fixture(params=list(CountingMethod))
def method(request: pytest.FixtureRequest) -> CountingMethod:
    """Force one way to count, or leave the choice to the cost model."""
    result: CountingMethod = request.param
    return result


# Around the lengths of a word, a vector and a block.
ROWS = [0, 1, 7, 8, 63, 64, 65, 511, 512, 513, 4_095, 4_097, 16_384, 16_391, 70_001]


@pytest.mark.long
@pytest.mark.parametrize("m", ROWS)
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_lengths(method: CountingMethod, m: int, dtype: Any) -> None:
    cards = np.array([3, 1, 2, 5, 4])
    codes = random_codes(m, cards, m, dtype, power=2.0)
    for size in range(1, 6):
        tables = counting.tally_all(codes, None, cards, size, method=method)
        assert [tuple(s) for s in tables.sets] == list(combinations(range(5), size))
        for i, variables in enumerate(tables.sets):
            np.testing.assert_array_equal(tables.table(i), slow(codes, None, cards, variables))
    got = counting.tally(codes, None, cards, [4, 0, 3], method=method)
    np.testing.assert_array_equal(got, slow(codes, None, cards, [4, 0, 3]))


@settings(deadline=None, max_examples=150)
@given(
    cards=st.lists(st.integers(1, 9), min_size=1, max_size=6),
    m=st.integers(0, 400),
    seed=st.integers(0, 2**32 - 1),
    wide=st.booleans(),
    weighted=st.booleans(),
    method=st.sampled_from(list(CountingMethod)),
    data=st.data(),
)
def test_any_tables(
    cards: list[int],
    m: int,
    seed: int,
    wide: bool,
    weighted: bool,
    method: CountingMethod,
    data: st.DataObject,
) -> None:
    levels = np.array(cards)
    codes = random_codes(seed, levels, m, np.uint16 if wide else np.uint8)
    weights = None
    if weighted:
        weights = np.random.default_rng(seed).integers(0, 2**40, m)
    member = st.integers(0, len(cards) - 1)
    sets = data.draw(st.lists(st.lists(member, max_size=4, unique=True), max_size=5))
    tables = counting.tally_many(codes, weights, cards, sets, method=method)
    assert len(tables) == len(sets)
    for table, variables in zip(tables, sets, strict=True):
        assert table.dtype == np.int64
        np.testing.assert_array_equal(table, slow(codes, weights, levels, variables))


def test_mixed_cardinalities_use_both_kernels() -> None:
    cards = np.array([2, 3, 63, 2, 300, 40])
    codes = random_codes(5, cards, 20_000, np.uint16)
    tables = counting.tally_all(codes, None, cards, 3)
    for i, variables in enumerate(tables.sets):
        np.testing.assert_array_equal(tables.table(i), slow(codes, None, cards, variables))


def test_more_cells_than_16_bits(method: CountingMethod) -> None:
    cards = np.array([50, 60, 41])
    codes = random_codes(1, cards, 5_000, np.uint8)
    got = counting.tally(codes, None, cards, [2, 0, 1], method=method)
    np.testing.assert_array_equal(got, slow(codes, None, cards, [2, 0, 1]))
    weights = np.arange(5_000)
    got = counting.tally(codes, weights, cards, [2, 0, 1], method=method)
    np.testing.assert_array_equal(got, slow(codes, weights, cards, [2, 0, 1]))


def test_many_variables_of_one_table(method: CountingMethod) -> None:
    cards = np.array([2] * 14 + [1, 3])
    codes = random_codes(2, cards, 1_000, np.uint8)
    got = counting.tally(codes, None, cards, range(16), method=method)
    np.testing.assert_array_equal(got, slow(codes, None, cards, range(16)))


def test_full_range_of_codes(method: CountingMethod) -> None:
    cards = np.array([256, 2])
    codes = np.stack([np.arange(256), np.arange(256) % 2]).astype(np.uint8)
    got = counting.tally(codes, None, cards, [0, 1], method=method)
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
        (np.zeros((2, 3), np.uint8), None, [2, 65_537], [0], "cardinalities"),
        (np.zeros((2, 3), np.uint8), np.array([1, -1, 1]), [2, 2], [0], "at least 0"),
        (np.zeros((2, 3), np.uint8), np.full(3, 2**62), [2, 2], [0], "below 2"),
        (np.zeros((2, 3), np.uint8), None, [2, 2], [2], "there are 0 to 1"),
        (np.zeros((2, 3), np.uint8), None, [2, 2], [-1], "there are 0 to 1"),
        (np.full((2, 3), 2, np.uint8), None, [3, 2], [1], "allow codes 0 to 1"),
        (np.zeros((5, 3), np.uint8), None, [256] * 5, range(5), "fewer variables"),
        (np.zeros((12, 3), np.uint8), None, [256] * 12, range(12), "fewer variables"),
    ],
)
def test_what_the_kernels_rely_on_is_tested(
    codes: NDArray[Any], weights: Any, cards: list[int], variables: Any, word: str
) -> None:
    with pytest.raises(DataError, match=word):
        counting.tally(codes, weights, cards, variables)


@pytest.mark.parametrize("size", [-1, 0, 3])
def test_sizes_of_all_sets(size: int) -> None:
    with pytest.raises(DataError, match="1 to 2"):
        counting.tally_all(np.zeros((2, 3), np.uint8), None, [2, 2], size)


def test_too_many_sets_are_refused() -> None:
    with pytest.raises(DataError, match="fewer variables"):
        counting.tally_all(np.zeros((200, 3), np.uint8), None, [2] * 200, 50)


def test_read_only_codes_and_strided_weights() -> None:
    codes = random_codes(3, np.array([3, 4]), 100, np.uint8)
    codes.flags.writeable = False
    weights = np.arange(200)[::2]
    got = counting.tally(codes, weights, [3, 4], [1, 0])
    np.testing.assert_array_equal(got, slow(codes, weights, np.array([3, 4]), [1, 0]))


def test_no_sets_and_no_variables() -> None:
    assert counting.tally_many(np.zeros((2, 5), np.uint8), None, [1, 1], []) == []
    assert counting.tally(np.zeros((0, 5), np.uint8), None, [], []) == 5
    with pytest.raises(DataError):
        counting.tally_all(np.zeros((0, 5), np.uint8), None, [], 1)


def test_the_compiled_module_checks_by_itself() -> None:
    """Whatever the Python side may let through: an exception, never a crash."""
    from isthmus.kernels import _native

    codes = np.zeros((2, 3), np.uint8)
    cards, sets = np.array([2, 2]), np.array([[0, 1]])
    for bad in (codes.astype(np.int64), codes[:, ::2], codes.T, codes[0], codes.astype(float)):
        with pytest.raises(TypeError):
            _native.tally_sets(cast(Any, bad), None, cards, sets)
    with pytest.raises(ValueError, match="there are 0 to 1"):
        _native.tally_sets(codes, None, cards, np.array([[0, 2**62]]))
    with pytest.raises(ValueError, match="at least one variable"):
        _native.tally_sets(codes, None, cards, np.zeros((3, 0), np.int64))
    with pytest.raises(ValueError, match="weights"):
        _native.tally_sets(codes, np.ones(4, np.int64), cards, sets)
    with pytest.raises(TypeError):
        _native.tally_all(codes, None, cards, -1)


def count_for_a_minute(codes: NDArray[Any]) -> None:
    end = time.perf_counter() + 60
    while time.perf_counter() < end:
        counting.tally_all(codes, None, [3] * len(codes), 3)


def test_many_tables_can_be_interrupted() -> None:
    codes = np.zeros((60, 200_000), np.uint8)
    timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
    started = time.perf_counter()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        count_for_a_minute(codes)
    assert time.perf_counter() - started < 5
