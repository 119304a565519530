"""Scores are those of the Numba kernels to the last bit. Goes when these go."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.kernels import numba_original as original
from tests.kernels.problems import bic, boss, likelihood_tables, matrix_score, problem

from isthmus.kernels.scoring import LocalScore, foreign_score, gaussian_block_score, python_score
from isthmus.numerics import gaussian
from isthmus.objectives import CompiledLocalScore, PythonLocalScore

Integers = np.ndarray[Any, np.dtype[np.int64]]


def families(
    d: int, rng: np.random.Generator, count: int = 200
) -> Iterator[tuple[int, Integers, Integers]]:
    for _ in range(count):
        order = rng.permutation(d)
        k = int(rng.integers(0, min(d - 1, 12) + 1))
        m = int(rng.integers(0, d - 1 - k + 1))
        yield int(order[0]), order[1 : 1 + k], order[1 + k : 1 + k + m]


def assert_same(native: LocalScore, objective: Any, d: int) -> None:
    for child, parents, candidates in families(d, np.random.default_rng(0)):
        want = objective.extensions(child, parents, candidates)
        np.testing.assert_array_equal(native.extensions(child, parents, candidates), want)


@pytest.mark.parametrize("d", [2, 5, 33, 100])
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("gamma", [0.0, 0.7])
def test_bic_and_ebic(d: int, seed: int, gamma: float) -> None:
    p = problem(d, seed)
    tables = likelihood_tables(p.n, d, gamma=gamma)
    assert_same(matrix_score(p.covariance, tables), original.matrix_score(p.covariance, tables), d)


@pytest.mark.parametrize("d", [5, 40])
def test_determinants_as_in_bge(d: int) -> None:
    rng = np.random.default_rng(d)
    p = problem(d, 3)
    a, b, c = (rng.normal(size=d + 1) for _ in range(3))
    native = matrix_score(p.covariance, (a, b, c))
    assert_same(native, original.matrix_score(p.covariance, (a, b, c)), d)


def test_blocks() -> None:
    rng = np.random.default_rng(0)
    starts = np.array([0, 1, 3, 4, 8, 9, 11])
    width, d = 11, 6
    correlation = np.asarray(np.corrcoef(rng.normal(size=(200, width)), rowvar=False), np.float64)
    base = rng.normal(size=d)
    data, keep = gaussian.pack_block(correlation, starts, base, 100.0, 2.5, 1e-10)
    objective = CompiledLocalScore(
        list("abcdef"), gaussian.block_score.address, data, keep, equivalent=False
    )
    native = gaussian_block_score(
        correlation, starts, base, half_n=100.0, penalty=2.5, tolerance=1e-10
    )
    assert_same(native, objective, d)


def test_a_numba_score_runs_in_a_native_search() -> None:
    p = problem(20, 5)
    objective = original.bic(p)
    score = foreign_score(20, objective.handle, keep=objective)
    assert_same(score, objective, 20)
    assert boss(p, score, seed=1)[0] == original.boss(p, objective, seed=1).parents


def test_a_native_score_runs_in_a_numba_search() -> None:
    p = problem(30, 6)
    native = bic(p)
    address, data = native.handle
    cell = (ctypes.c_int64 * 1).from_address(data)  # only its address is used
    objective = CompiledLocalScore(
        original.names(30), address, np.ctypeslib.as_array(cell), (native,), equivalent=True
    )
    assert original.boss(p, objective, seed=2).parents == boss(p, native, seed=2)[0]


def test_python_scores() -> None:
    p = problem(8, 7)
    objective = original.bic(p)
    wrapped = PythonLocalScore(objective.nodes, objective.local, equivalent=True)
    native = python_score(8, objective.local)
    assert_same(native, wrapped, 8)
    want = original.boss(p, wrapped, seed=3)
    assert boss(p, native, seed=3) == (want.parents, want.score)
