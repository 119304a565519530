"""The discrete kernel against plain sums in Python."""

from __future__ import annotations

import ctypes
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from isthmus.errors import DataError
from isthmus.numerics import discrete
from isthmus.numerics.discrete import Form, discrete_score, pack_discrete

FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64, *(ctypes.c_int64,) * 7)


def kernel_scores(
    packed: tuple[NDArray[np.int64], Any],
    child: int,
    parents: Sequence[int],
    candidates: Sequence[int],
) -> NDArray[np.float64]:
    given, added = np.array(parents, np.int64), np.array(candidates, np.int64)
    out = np.full(len(added) + 1, np.nan)
    status = FUNCTION(discrete_score.address)(
        packed[0].ctypes.data,
        child,
        given.ctypes.data,
        len(given),
        added.ctypes.data,
        len(added),
        out.ctypes.data,
    )
    assert status == 0
    return out


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
            terms += [math.lgamma(r) - math.lgamma(n_j + r)]
            terms += [math.lgamma(n + 1) for n in counts]
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
    packed = pack_discrete(codes, weights, np.array(cards), form, parameter)
    for child, parents in families:
        others = [v for v in range(len(cards)) if v != child and v not in parents]
        got = kernel_scores(packed, child, parents, others)
        sets = [list(parents), *([*parents, v] for v in others)]
        want = [slow_score(codes, weights, cards, form, parameter, child, s) for s in sets]
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-8)


FORMS = [
    (Form.LIKELIHOOD, 2.5),
    (Form.LIKELIHOOD, 0.0),
    (Form.BDEU, 1.0),
    (Form.BDEU, 17.5),
    (Form.K2, 0.0),
]


def dependent_codes(seed: int, cards: Sequence[int], m: int, dtype: Any) -> NDArray[Any]:
    """Each variable is often a function of the one before, so many configurations are unseen."""
    rng = np.random.default_rng(seed)
    codes = np.empty((len(cards), m), dtype)
    for v, r in enumerate(cards):
        codes[v] = rng.integers(0, r, m)
        if v:
            copied = rng.random(m) < 0.7
            codes[v, copied] = codes[v - 1, copied] % r
    return codes


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
def test_both_ways_of_counting_agree(
    kind: tuple[Form, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    cards = [2, 3, 4, 2, 3]
    codes = dependent_codes(8, cards, 3_001, np.uint8)
    by_bitmaps = pack_discrete(codes, None, np.array(cards), *kind)
    monkeypatch.setattr(discrete, "MOST_LEVELS", 0)
    by_histograms = pack_discrete(codes, None, np.array(cards), *kind)
    assert by_histograms[0][3] == 0  # no bitmaps at all
    for child, parents in [(0, []), (2, [1]), (4, [0, 2, 3])]:
        others = [v for v in range(5) if v != child and v not in parents]
        np.testing.assert_allclose(
            kernel_scores(by_bitmaps, child, parents, others),
            kernel_scores(by_histograms, child, parents, others),
            rtol=1e-12,
        )


def test_codes_beyond_the_levels_are_refused() -> None:
    with pytest.raises(DataError, match="Variable 1"):
        pack_discrete(np.full((2, 3), 2, np.uint8), None, np.array([3, 2]), Form.K2, 0.0)
