"""The likelihood with all other variables as parents, which bounds every likelihood."""

from __future__ import annotations

from collections import Counter
from math import log

import numpy as np
import pytest
from numpy.typing import NDArray

import isthmus as ist
from isthmus.scores import score_bounds
from isthmus.scores.score_bounds import _likelihood_given_all, _sum_n_log_n
from isthmus.statistics.coded import CodedRows


def drawn(seed: int, d: int, n: int) -> NDArray[np.int64]:
    rng = np.random.default_rng(seed)
    found = rng.integers(0, rng.integers(2, 5, size=(d, 1)), size=(d, n))
    return np.asarray(found, np.int64)


def joint_of(codes: NDArray[np.int64]) -> CodedRows:
    table = {f"v{i}": column for i, column in enumerate(codes)}
    kinds = dict.fromkeys(table, ist.Kind.DISCRETE)
    counts = ist.summarise(table, plan=ist.Plan.everything(), kinds=kinds)
    assert isinstance(counts, ist.Counts)
    assert counts.joint is not None
    return counts.joint


def slowly(codes: NDArray[np.int64], v: int) -> float:
    rows = [tuple(row) for row in codes.T.tolist()]
    others = [row[:v] + row[v + 1 :] for row in rows]
    both, given = Counter(rows), Counter(others)
    return sum(n * log(n) for n in both.values()) - sum(n * log(n) for n in given.values())


@pytest.mark.parametrize("at_once", [1, 50, 1 << 20])
@pytest.mark.parametrize(("d", "n"), [(1, 30), (3, 200), (5, 60), (6, 1)])
def test_against_counting(d: int, n: int, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score_bounds, "_AT_ONCE", at_once)
    codes = drawn(d, d, n)
    found = _likelihood_given_all(joint_of(codes))
    expected = [slowly(codes, v) for v in range(d)]
    np.testing.assert_allclose(found, expected, atol=2e-9)


@pytest.mark.parametrize("at_once", [1, 1 << 20])
def test_rows_that_only_look_alike_are_told_apart(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(score_bounds, "_AT_ONCE", at_once)
    codes = np.array([[0, 0, 1], [0, 0, 0], [0, 1, 0]], np.uint8)
    weights = np.ones(3)
    marks = np.array([7, 7, 9], np.uint64)  # the first two rows differ in the last column
    assert _sum_n_log_n(codes, None, marks, weights) is None
    assert _sum_n_log_n(codes, 0, marks, weights) is None
    assert _sum_n_log_n(codes, 2, marks, weights) == pytest.approx(2 * log(2))
