"""Scores of the compiled core against their definitions, and odd input."""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from typing import Any

import numpy as np
import pytest
from tests.kernels.problems import (
    NONE,
    TOLERANCE,
    bic,
    correlate,
    likelihood_tables,
    matrix_score,
    problem,
)

from isthmus.kernels.orders import BossRun
from isthmus.kernels.scoring import (
    UNFINISHED,
    LocalScore,
    foreign_score,
    gaussian_block_score,
    gaussian_score,
    local,
    python_score,
)

Any64 = np.ndarray[Any, np.dtype[np.int64]]


def slow_log_determinant(matrix: Any, columns: Any) -> float:
    return float(np.linalg.slogdet(matrix[np.ix_(columns, columns)])[1]) if len(columns) else 0.0


def test_bic_by_its_definition() -> None:
    p = problem(9, 5)
    score = bic(p)
    rng = np.random.default_rng(0)
    for _ in range(50):
        child, *parents = rng.permutation(9)[: rng.integers(1, 9)].tolist()
        log_variance = slow_log_determinant(p.covariance, [*parents, child])
        log_variance -= slow_log_determinant(p.covariance, parents)
        want = -0.5 * p.n * (np.log(2.0 * np.pi) + 1.0 + log_variance)
        want -= 0.5 * np.log(p.n) * (len(parents) + 2)
        assert local(score, child, parents) == pytest.approx(want, rel=1e-12)


def test_all_terms_by_their_definition() -> None:
    d = 7
    rng = np.random.default_rng(1)
    covariance = problem(d, 2).covariance
    correlation, variance = correlate(covariance)
    a, b, c = (rng.normal(size=d + 1) for _ in range(3))
    squares = rng.normal(size=d)
    score = gaussian_score(
        correlation,
        np.log(variance),
        constant=a,
        log_variance=b,
        log_determinant=c,
        squares=squares,
        tolerance=TOLERANCE,
    )
    for k in range(d):
        child, *parents = rng.permutation(d)[: k + 1].tolist()
        inside = slow_log_determinant(covariance, parents)
        log_variance = slow_log_determinant(covariance, [*parents, child]) - inside
        want = a[k] - b[k] * log_variance - c[k] * inside
        want -= squares[child] * np.exp(log_variance) / variance[child]
        assert local(score, child, parents) == pytest.approx(want, rel=1e-10)


@pytest.mark.parametrize("m", [0, 1, 31, 32, 33, 70])
def test_extensions_are_the_scores_of_larger_sets(m: int) -> None:
    score = bic(problem(80, 8))
    rng = np.random.default_rng(m)
    for k in (0, 1, 5):
        child, *others = rng.permutation(80).tolist()
        parents, candidates = others[:k], others[k : k + m]
        got = score.extensions(child, np.array(parents, np.int64), np.array(candidates, np.int64))
        want = [
            local(score, child, [*parents, *added]) for added in ([], *([j] for j in candidates))
        ]
        np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("k", [1, 2, 15, 16, 17, 33, 39])
@pytest.mark.parametrize("weight", [0.0, 0.5])
def test_reductions_are_the_scores_of_what_is_left(k: int, weight: float) -> None:
    d = 40
    constant, log_variance, _ = likelihood_tables(1000, d)
    score = matrix_score(problem(d, 9).covariance, (constant, log_variance, np.full(d + 1, weight)))
    rng = np.random.default_rng(k)
    for _ in range(5):
        child, *rest = rng.permutation(d)[: k + 1].tolist()
        parents = np.array(rest)
        want = [local(score, child, np.delete(parents, i).tolist()) for i in range(k)]
        reduced = score.reductions(child, parents)
        np.testing.assert_allclose(reduced, want, rtol=1e-12)
        np.testing.assert_array_equal(score.reductions(child, parents, k // 2), reduced[k // 2 :])


def test_blocks_by_their_definition() -> None:
    rng = np.random.default_rng(0)
    starts = np.array([0, 1, 3, 4, 8, 9, 11])
    d = 6
    correlation = np.asarray(np.corrcoef(rng.normal(size=(200, 11)), rowvar=False), np.float64)
    base = rng.normal(size=d)
    score = gaussian_block_score(
        correlation, starts, base, half_n=100.0, penalty=2.5, tolerance=TOLERANCE
    )

    def columns(variables: Any) -> list[int]:
        return [column for v in variables for column in range(starts[v], starts[v + 1])]

    for _ in range(30):
        child, *parents = rng.permutation(d)[: rng.integers(1, d + 1)].tolist()
        own, given = columns([child]), columns(parents)
        want = base[child] - 2.5 * len(own) * len(given)
        want -= 100.0 * slow_log_determinant(correlation, given + own)
        want += 100.0 * slow_log_determinant(correlation, given)
        assert local(score, child, parents) == pytest.approx(want, rel=1e-12)


def test_python_scores_are_asked_once() -> None:
    calls: list[tuple[int, tuple[int, ...]]] = []

    def function(child: int, parents: tuple[int, ...]) -> float:
        calls.append((child, parents))
        return child - 10.0 * sum(parents)

    score = python_score(5, function)
    for _ in range(2):
        got = score.extensions(4, np.array([3, 1]), np.array([2, 0]))
        np.testing.assert_array_equal(got, [-36.0, -56.0, -36.0])
    assert calls == [(4, (1, 3)), (4, (1, 2, 3)), (4, (0, 1, 3))]


def test_an_unfinished_python_score_is_asked_again() -> None:
    """Across slices of time, too: the search goes on where the function stopped."""
    asked: Counter[tuple[int, tuple[int, ...]]] = Counter()

    def function(child: int, parents: tuple[int, ...]) -> Any:
        asked[child, parents] += 1
        return UNFINISHED if asked[child, parents] % 4 else -float(len(parents))

    score = python_score(4, function)
    run = BossRun(score, np.random.default_rng(0), starts=1)
    slices = 0
    while not run.step(0.0):
        slices += 1
        assert slices < 10_000
    assert slices > 12
    assert run.best() == (((), (), (), ()), 0.0)
    assert set(asked.values()) == {4}


def test_a_cycle_through_a_python_score_is_freed() -> None:
    class Owner:
        run: BossRun

        def score(self, child: int, parents: tuple[int, ...]) -> float:
            return -float(len(parents))

    owner = Owner()
    owner.run = BossRun(python_score(3, owner.score), np.random.default_rng(0), starts=1)
    while not owner.run.step():
        pass
    gone = weakref.ref(owner)
    del owner
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize(
    ("child", "parents", "candidates", "error"),
    [
        (5, [], [], IndexError),
        (-1, [], [], IndexError),
        (0, [-1], [], IndexError),
        (0, [1], [9], IndexError),
        (0, [1, 2, 3, 4, 1], [], ValueError),
    ],
)
def test_bad_families_are_refused(
    child: int, parents: list[int], candidates: list[int], error: type[Exception]
) -> None:
    score = bic(problem(5, 1))
    with pytest.raises(error):
        score.extensions(child, np.array(parents, np.int64), np.array(candidates, np.int64))
    if not candidates:
        with pytest.raises(error):
            score.reductions(child, np.array(parents, np.int64))


def test_bad_arrays_are_refused() -> None:
    score: Any = bic(problem(5, 1))
    others = np.zeros((2, 2), np.int64), np.array(["a"]), np.array([1.0]), np.arange(4)[::2], None
    for parents in others:
        with pytest.raises(TypeError):
            score.extensions(0, parents, NONE)
    with pytest.raises(IndexError):
        score.reductions(0, np.array([1, 2]), 3)
    with pytest.raises(TypeError):
        score.reductions(0, np.array([1, 2]), -1)


def test_layouts_do_not_matter() -> None:
    p = problem(12, 1)
    tables = likelihood_tables(p.n, p.d)
    want = bic(p).extensions(3, np.array([1, 2]), np.array([5, 7, 9]))
    spread = np.zeros((24, 36))
    spread[::2, ::3] = p.covariance
    frozen = p.covariance.copy()
    frozen.flags.writeable = False
    for covariance in (np.asfortranarray(p.covariance), spread[::2, ::3], frozen):
        score = matrix_score(covariance, tables)
        got = score.extensions(3, np.array([1, 2]), np.array([5, 7, 9]))
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    "change",
    [
        {"constant": np.zeros(3)},
        {"log_variance": np.zeros(5)},
        {"log_determinant": np.zeros(0)},
        {"squares": np.zeros(2)},
        {"log_scale": np.zeros(4)},
        {"correlation": np.zeros((3, 4))},
        {"tolerance": 0.0},
        {"tolerance": float("nan")},
    ],
)
def test_bad_tables_are_refused(change: dict[str, Any]) -> None:
    arguments: dict[str, Any] = {
        "correlation": np.eye(3),
        "log_scale": np.zeros(3),
        "constant": np.zeros(4),
        "log_variance": np.zeros(4),
        "log_determinant": np.zeros(4),
        "squares": np.zeros(3),
        "tolerance": TOLERANCE,
    }
    gaussian_score(**arguments)
    with pytest.raises(ValueError, match=r"\w"):
        gaussian_score(**(arguments | change))


@pytest.mark.parametrize("starts", [[0, 1], [0, 2, 1, 3], [1, 2, 3], [0, 1, 4], [], [0, -1, 3]])
def test_bad_blocks_are_refused(starts: list[int]) -> None:
    with pytest.raises(ValueError, match="starts must ascend"):
        gaussian_block_score(
            np.eye(3),
            np.array(starts, np.int64),
            np.zeros(2),
            half_n=1.0,
            penalty=1.0,
            tolerance=TOLERANCE,
        )


def test_no_variables_and_one() -> None:
    empty = matrix_score(np.zeros((0, 0)), likelihood_tables(10, 0))
    assert empty.size == 0
    with pytest.raises(IndexError):
        local(empty, 0, [])
    single = matrix_score(np.array([[4.0]]), likelihood_tables(10, 1))
    want = -5.0 * (np.log(2.0 * np.pi) + 1.0 + np.log(4.0)) - np.log(10.0)
    assert local(single, 0, []) == pytest.approx(want)


def test_a_foreign_score_needs_an_address() -> None:
    with pytest.raises(ValueError, match="address"):
        foreign_score(3, (0, 0))


def test_a_handle_can_be_called_as_c() -> None:
    p = problem(6, 3)
    score = bic(p)
    again = foreign_score(6, score.handle, keep=score)
    assert isinstance(again, LocalScore)
    families = np.array([1, 4]), np.array([0, 5])
    np.testing.assert_array_equal(again.extensions(2, *families), score.extensions(2, *families))
    np.testing.assert_array_equal(
        again.reductions(2, families[0]), score.reductions(2, families[0])
    )
