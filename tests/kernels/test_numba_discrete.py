"""Discrete scores of the compiled core: the same bits as Numba's. Goes when Numba goes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.kernels.discrete_problems import dependent_codes

from isthmus.kernels._native import DiscreteForm as Form
from isthmus.kernels._native import DiscreteScore

FORMS = [
    (Form.LIKELIHOOD, 2.5),
    (Form.LIKELIHOOD, 0.0),
    (Form.BDEU, 1.0),
    (Form.BDEU, 17.5),
    (Form.K2, 0.0),
    (Form.SUPPORT, 0.0),
]


def kernel_scores(
    score: DiscreteScore, child: int, parents: Sequence[int], candidates: Sequence[int]
) -> list[float]:
    given, added = np.array(parents, np.int64), np.array(candidates, np.int64)
    result: list[float] = score.extensions(child, given, added).tolist()
    return result


def numba_scores(
    codes: NDArray[Any],
    weights: NDArray[np.int64] | None,
    cards: NDArray[np.int64],
    kind: tuple[Form, float],
) -> Any:
    import ctypes

    from isthmus.numerics import discrete

    form = discrete.Form[kind[0].name]
    data, keep = discrete.pack_discrete(codes, weights, cards, form, kind[1])
    function = ctypes.CFUNCTYPE(ctypes.c_int64, *(ctypes.c_int64,) * 7)(
        discrete.discrete_score.address
    )

    def scores(child: int, parents: Sequence[int], candidates: Sequence[int]) -> list[float]:
        assert keep is not None
        given, added = np.array(parents, np.int64), np.array(candidates, np.int64)
        out = np.full(len(added) + 1, np.nan)
        addresses = given.ctypes.data, len(given), added.ctypes.data, len(added), out.ctypes.data
        assert function(data.ctypes.data, child, *addresses) == 0
        return out.tolist()

    return scores


CARDS = {
    "few": [2, 3, 4, 5, 2, 3, 5, 4, 2, 1],
    "mixed": [63, 2, 40, 300, 3, 17, 32, 33, 2, 1],
    "many": [700, 2, 1200, 3_000, 90, 3, 2_000, 5, 60_000, 500],
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("levels", CARDS)
@pytest.mark.parametrize("kind", FORMS)
def test_same_bits_as_numba(kind: tuple[Form, float], levels: str, weighted: bool) -> None:
    cards = CARDS[levels]
    d = len(cards)
    for seed, m in enumerate([0, 1, 2, 63, 64, 65, 500, 513, 4_097, 20_000]):
        rng = np.random.default_rng(seed)
        codes = dependent_codes(seed, cards, m, np.uint8 if levels == "few" else np.uint16)
        weights = rng.integers(0, 9, m) if weighted else None
        ours = DiscreteScore(codes, weights, np.array(cards), *kind)
        theirs = numba_scores(codes, weights, np.array(cards), kind)
        for k in [0, 1, 2, 3, 5, 7]:
            order = rng.permutation(d).tolist()
            child, parents, others = order[0], order[1 : k + 1], order[k + 1 :]
            if math.prod(cards[v] for v in order[: k + 1]) * max(cards) >= 2**62:
                continue  # where the original overflowed
            choices: tuple[list[int], ...] = (others, others[:2], [])
            for candidates in choices:
                got = kernel_scores(ours, child, parents, candidates)
                assert got == theirs(child, parents, candidates)
