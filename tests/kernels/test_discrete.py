"""Discrete scores of the compiled core against plain sums in Python."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.kernels.discrete_problems import dependent_codes

from isthmus.kernels._native import DiscreteForm as Form
from isthmus.kernels._native import DiscreteScore


def kernel_scores(
    score: DiscreteScore, child: int, parents: Sequence[int], candidates: Sequence[int]
) -> NDArray[np.float64]:
    return score.extensions(child, np.array(parents, np.int64), np.array(candidates, np.int64))


def slow_score(
    codes: NDArray[Any],
    weights: NDArray[np.int64] | None,
    cards: Sequence[int],
    form: Form,
    parameter: float,
    child: int,
    parents: Sequence[int],
) -> float:
    """Sums over dictionaries of counts; written from the formulas, sharing nothing."""
    r = int(cards[child])
    q = math.prod(int(cards[p]) for p in parents)
    cells: Counter[tuple[Any, ...]] = Counter()
    for i in range(codes.shape[1]):
        w = 1 if weights is None else int(weights[i])
        cells[(*(int(codes[p, i]) for p in parents), int(codes[child, i]))] += w
    groups: dict[tuple[Any, ...], list[int]] = {}
    for key, n in cells.items():
        if n > 0:
            groups.setdefault(key[:-1], []).append(n)
    terms: list[float] = []
    for counts in groups.values():
        n_j = sum(counts)
        if form is Form.LIKELIHOOD:
            terms += [n * math.log(n / n_j) for n in counts]
        elif form is Form.BDEU:
            a_j, a_jk = parameter / q, parameter / (q * r)
            terms += [math.lgamma(a_j) - math.lgamma(a_j + n_j)]
            terms += [math.lgamma(a_jk + n) - math.lgamma(a_jk) for n in counts]
        else:
            a_j, a_jk = r * parameter, parameter
            terms += [math.lgamma(a_j) - math.lgamma(a_j + n_j)]
            terms += [math.lgamma(a_jk + n) - math.lgamma(a_jk) for n in counts]
    if form is Form.LIKELIHOOD:
        terms.append(-parameter * (r - 1) * q)
    return math.fsum(terms)


def check(
    codes: NDArray[Any],
    weights: NDArray[np.int64] | None,
    cards: Sequence[int],
    form: Form,
    parameter: float,
    families: Sequence[tuple[int, Sequence[int]]],
) -> None:
    score = DiscreteScore(codes, weights, np.array(cards, np.int64), form, parameter)
    for child, parents in families:
        others = [v for v in range(len(cards)) if v != child and v not in parents]
        got = kernel_scores(score, child, parents, others)
        sets = [list(parents), *([*parents, v] for v in others)]
        want = [slow_score(codes, weights, cards, form, parameter, child, s) for s in sets]
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-8)


FORMS = [
    (Form.LIKELIHOOD, 2.5),
    (Form.LIKELIHOOD, 0.0),
    (Form.BDEU, 1.0),
    (Form.BDEU, 17.5),
    (Form.K2, 1.0),
    (Form.K2, 0.5),
]


@pytest.mark.long
@settings(deadline=None, max_examples=120)
@given(
    cards=st.lists(st.integers(1, 5), min_size=1, max_size=7),
    m=st.integers(0, 300),
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(FORMS),
    weighted=st.booleans(),
    data=st.data(),
)
def test_small_tables(
    cards: list[int],
    m: int,
    seed: int,
    kind: tuple[Form, float],
    weighted: bool,
    data: st.DataObject,
) -> None:
    codes = dependent_codes(seed, cards, m, np.uint8)
    weights = np.random.default_rng(seed).integers(0, 9, m) if weighted else None
    order = data.draw(st.permutations(range(len(cards))))
    k = data.draw(st.integers(0, len(cards) - 1))
    check(codes, weights, cards, *kind, [(order[0], order[1 : k + 1])])


@pytest.mark.long
@pytest.mark.parametrize("kind", FORMS)
@pytest.mark.parametrize("m", [1, 2, 64, 1_000, 10_000])
def test_sizes(kind: tuple[Form, float], m: int) -> None:
    cards = [2, 3, 4, 5, 2, 3, 5, 4]
    codes = dependent_codes(m, cards, m, np.uint8)
    families = [(0, []), (3, [1]), (2, [7, 0]), (7, [3, 6, 1]), (1, [0, 2, 3, 4, 5, 6])]
    check(codes, None, cards, *kind, families)


@pytest.mark.parametrize("kind", FORMS)
def test_many_levels(kind: tuple[Form, float]) -> None:
    """Tables far larger than the data: renumbering, and variables without bitmaps."""
    cards = [63, 2, 40, 300, 3, 17, 32, 33]
    codes = dependent_codes(3, cards, 700, np.uint16)
    check(
        codes, None, cards, *kind, [(0, [2]), (4, []), (3, [0, 2]), (5, [3, 0, 2, 6, 7]), (1, [4])]
    )


@pytest.mark.parametrize("kind", FORMS)
def test_counts_beyond_the_tables(kind: tuple[Form, float]) -> None:
    cards = [2, 3, 2]
    codes = dependent_codes(4, cards, 50, np.uint8)
    weights = np.random.default_rng(4).integers(1, 10**7, 50)
    check(codes, weights, cards, *kind, [(0, []), (1, [2])])


def test_bdeu_with_more_keys_than_tables() -> None:
    cards = [*range(2, 26), 2, 3]
    codes = dependent_codes(6, cards, 120, np.uint8)
    families = [(25, [v]) for v in range(20)] + [(24, [])]
    check(codes, None, cards, Form.BDEU, 3.0, families)


@pytest.mark.parametrize("kind", FORMS)
def test_both_ways_of_counting_agree(kind: tuple[Form, float]) -> None:
    cards = [2, 3, 4, 2, 3]
    codes = dependent_codes(8, cards, 3_001, np.uint8)
    one = DiscreteScore(codes, None, np.array(cards), *kind)
    other = DiscreteScore(codes, None, np.array(cards), *kind, bitmaps=False)
    for child, parents in [(0, []), (2, [1]), (4, [0, 2, 3])]:
        others = [v for v in range(5) if v != child and v not in parents]
        np.testing.assert_allclose(
            kernel_scores(one, child, parents, others),
            kernel_scores(other, child, parents, others),
            rtol=1e-12,
        )


@pytest.mark.parametrize("kind", FORMS)
@pytest.mark.parametrize("m", [40, 3_000])
def test_reductions_are_the_smaller_sets(kind: tuple[Form, float], m: int) -> None:
    cards = [2, 3, 40, 2, 3, 5]
    codes = dependent_codes(8, cards, m, np.uint8)
    score = DiscreteScore(codes, None, np.array(cards), *kind)
    parents = [5, 0, 2, 3]
    for first in range(5):
        got = score.reductions(4, np.array(parents), first)
        want = [
            kernel_scores(score, 4, parents[:i] + parents[i + 1 :], [])[0] for i in range(first, 4)
        ]
        assert got.tolist() == want


# --- defects, odd input, stopping ----------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("kind", FORMS)
@pytest.mark.parametrize(("d", "levels"), [(6, 8_000), (4, 60_000)])
def test_products_of_levels_beyond_64_bits(kind: tuple[Form, float], d: int, levels: int) -> None:
    """K1: sizes of tables overflowed, and a table that was too small was written to."""
    rng = np.random.default_rng(1)
    codes = np.stack([rng.permutation(levels) for _ in range(d)]).astype(np.uint16)
    check(codes, None, [levels] * d, *kind, [(2, [0, 1, 3])])


def test_many_different_cardinalities() -> None:
    """K2: the index of tables of values filled up, and a search in it never ended."""
    rng = np.random.default_rng(1)
    cards = list(range(2, 300))
    codes = np.stack([rng.permutation(np.arange(600) % c) for c in cards]).astype(np.uint16)
    score = DiscreteScore(codes, None, np.array(cards), Form.K2, 1.0)
    for child in range(len(cards)):
        others = [v for v in range(len(cards)) if v != child]
        got = kernel_scores(score, child, [], others)
        if child % 60 == 0:
            want = [slow_score(codes, None, cards, Form.K2, 1.0, child, [v]) for v in others[::50]]
            np.testing.assert_allclose(got[1::50], want, rtol=1e-11)
    for child in range(0, len(cards), 10):  # and as many sample sizes of BDeu
        bdeu = DiscreteScore(codes, None, np.array(cards), Form.BDEU, 1.0)
        kernel_scores(bdeu, child, [], [v for v in range(len(cards)) if v != child])


@pytest.mark.parametrize(
    ("codes", "weights", "cards", "form", "parameter", "word"),
    [
        (np.full((2, 3), 2, np.uint8), None, [3, 2], Form.K2, 1.0, "Variable 1 has code 2"),
        (np.zeros((2, 3), np.uint8), None, [3], Form.K2, 1.0, "2 cardinalities"),
        (np.zeros((2, 3), np.uint8), None, [3, 0], Form.K2, 1.0, "2 cardinalities"),
        (np.zeros((2, 3), np.uint8), np.ones(2, np.int64), [3, 2], Form.K2, 1.0, "one weight"),
        (np.zeros((2, 3), np.uint8), np.array([1, 2, -1]), [3, 2], Form.K2, 1.0, "at least 0"),
        (np.zeros((2, 3), np.uint8), None, [3, 2], Form.LIKELIHOOD, math.nan, "penalty"),
        (np.zeros((2, 3), np.uint8), None, [3, 2], Form.BDEU, 0.0, "sample size"),
        (np.zeros((2, 3), np.uint8), None, [3, 2], Form.BDEU, math.inf, "sample size"),
        (np.zeros((2, 3), np.uint8), None, [3, 2], Form.K2, 0.0, "pseudo-count"),
    ],
)
def test_odd_input_is_refused(
    codes: NDArray[Any], weights: Any, cards: list[int], form: Form, parameter: float, word: str
) -> None:
    with pytest.raises(ValueError, match=word):
        DiscreteScore(codes, weights, np.array(cards), form, parameter)


def test_other_types_of_codes_are_refused() -> None:
    codes = np.zeros((2, 6), np.uint8)
    for bad in (codes.astype(np.int64), codes.astype(float), codes[:, ::2], codes.T, codes[0]):
        with pytest.raises(TypeError):
            DiscreteScore(cast(Any, bad), None, np.array([2, 2]), Form.K2, 1.0)
    codes.flags.writeable = False
    score = DiscreteScore(codes, None, np.array([2, 2]), Form.LIKELIHOOD, 1.0)
    assert kernel_scores(score, 0, [], [1]).tolist() == [-1.0, -2.0]


def score_for_a_minute(score: DiscreteScore) -> None:
    end = time.perf_counter() + 60
    while time.perf_counter() < end:
        kernel_scores(score, 0, [1, 2], list(range(3, 40)))


@pytest.mark.timing
def test_a_batch_of_huge_tables_can_be_interrupted() -> None:
    """K5: a score of variables with thousands of levels hears Ctrl-C."""
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 3_000, (40, 300_000)).astype(np.uint16)
    score = DiscreteScore(codes, None, np.full(40, 3_000), Form.BDEU, 1.0)
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    started = time.perf_counter()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        score_for_a_minute(score)
    assert time.perf_counter() - started < 3
    # The room to work in is as clean as before.
    small = np.ascontiguousarray(codes[:, :500])
    got = kernel_scores(score, 0, [], [1, 2, 3])
    anew = DiscreteScore(codes, None, np.full(40, 3_000), Form.BDEU, 1.0)
    assert got.tolist() == kernel_scores(anew, 0, [], [1, 2, 3]).tolist()
    check(small, None, [3_000] * 40, Form.BDEU, 1.0, [(0, [1])])


@pytest.mark.parametrize("kind", FORMS)
def test_threads_share_a_score(kind: tuple[Form, float]) -> None:
    cards = [2, 3, 4, 5, 63, 3, 300, 4]
    codes = dependent_codes(1, cards, 2_000, np.uint16)

    def scores(score: DiscreteScore, child: int) -> list[float]:
        others = [v for v in range(8) if v != child]
        result: list[float] = kernel_scores(score, child, others[:2], others[2:]).tolist()
        return result

    want = [scores(DiscreteScore(codes, None, np.array(cards), *kind), v) for v in range(8)]
    shared = DiscreteScore(codes, None, np.array(cards), *kind)
    wrong: list[int] = []

    def work(first: int) -> None:
        children = [(first + i) % 8 for i in range(80)]
        wrong.extend(child for child in children if scores(shared, child) != want[child])

    threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
