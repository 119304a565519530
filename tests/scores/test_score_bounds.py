"""The likelihood with all other variables as parents, which bounds every likelihood."""

from __future__ import annotations

import time
from collections import Counter
from math import log

import numpy as np
import pytest
from numpy.typing import NDArray

import isthmus as ist
from isthmus.arrays import completed
from isthmus.scores import score_bounds
from isthmus.scores.score_bounds import _inverse, _likelihood_given_all, _sum_n_log_n
from isthmus.statistics.coded import CodedRows


def drawn(seed: int, d: int, n: int) -> NDArray[np.int64]:
    rng = np.random.default_rng(seed)
    found = rng.integers(0, rng.integers(2, 5, size=(d, 1)), size=(d, n))
    return np.asarray(found, np.int64)


def joint_of(codes: NDArray[np.int64]) -> CodedRows:
    table = {f"v{i}": column for i, column in enumerate(codes)}
    kinds = dict.fromkeys(table, ist.Kind.DISCRETE)
    counts = ist.summarise(table, plan=ist.CountPlan.everything(), kinds=kinds)
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
    found = completed(_likelihood_given_all(joint_of(codes)))
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


@pytest.mark.parametrize("d", [1, 5, 127, 128, 129, 300])
def test_a_matrix_is_inverted_by_blocks(d: int) -> None:
    rows = np.random.default_rng(d).normal(size=(3 * d + 5, d))
    matrix = rows.T @ rows / len(rows)
    inverse = completed(_inverse(matrix, 1e-7))
    assert inverse is not None
    np.testing.assert_allclose(inverse @ matrix, np.eye(d), atol=1e-9)


def test_no_inverse_of_a_matrix_that_is_nearly_singular() -> None:
    rows = np.random.default_rng(0).normal(size=(500, 200))
    rows[:, 150] = rows[:, 3] + 1e-6 * rows[:, 150]
    assert completed(_inverse(np.asarray(np.corrcoef(rows.T)), 1e-7)) is None
    assert completed(_inverse(np.ones((3, 3)), 1e-7)) is None


@pytest.mark.timing
def test_a_bound_is_computed_in_short_pieces() -> None:
    rng = np.random.default_rng(0)
    table = {f"v{i}": column for i, column in enumerate(rng.integers(0, 3, size=(90, 3000)))}
    kinds = dict.fromkeys(table, ist.Kind.DISCRETE)
    counts = ist.summarise(table, plan=ist.CountPlan.everything(), kinds=kinds)
    assert isinstance(counts, ist.Counts)
    work, longest, pieces = ist.BIC().bind(counts).ceiling_work(), 0.0, 0
    begin = time.thread_time()
    for _ in work:
        longest = max(longest, time.thread_time() - begin)
        begin = time.thread_time()
        pieces += 1
    assert pieces > 90
    assert longest < 0.1
