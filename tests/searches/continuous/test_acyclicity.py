"""Acyclicity functions against closed walks counted one by one, and against differences."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from isthmus.arrays import completed
from isthmus.searches.central_path import log_determinant as by_squares
from isthmus.searches.notears_penalties import exponential

Floats = NDArray[np.float64]
Measure = Callable[[Floats], tuple[float, Floats]]


def log_determinant(weights: Floats, s: float = 1.0) -> tuple[float, Floats]:
    found = completed(by_squares(weights * weights, s))
    return (np.inf, np.full_like(weights, np.nan)) if found is None else _chained(weights, *found)


def _chained(weights: Floats, value: float, slopes: Floats) -> tuple[float, Floats]:
    return value, slopes * 2.0 * weights


def wide(weights: Floats) -> tuple[float, Floats]:
    return log_determinant(weights, s=1.7)


MEASURES: list[Measure] = [exponential, log_determinant, wide]


def weight_of_a_walk(measure: Measure, k: int) -> float:
    if measure is exponential:
        return 1.0 / math.factorial(k)
    return float(1.0 / (k * (1.7 if measure is wide else 1.0) ** k))


def small(seed: int, d: int = 5) -> Floats:
    rng = np.random.default_rng(seed)
    found: Floats = rng.uniform(-0.6, 0.6, (d, d)) * (rng.random((d, d)) < 0.6)
    np.fill_diagonal(found, 0.0)
    return found


def closed_walks(squares: Floats, k: int) -> float:
    """The sum over closed walks of k steps of the products along them, by recursion."""
    d = len(squares)

    def onward(start: int, here: int, left: int) -> float:
        if left == 0:
            return float(here == start)
        return sum(
            float(squares[here, there]) * onward(start, there, left - 1)
            for there in range(d)
            if squares[here, there] > 0.0
        )

    return sum(onward(v, v, k) for v in range(d))


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("seed", range(3))
def test_value_is_the_weighted_sum_over_closed_walks(measure: Measure, seed: int) -> None:
    weights = 0.5 * small(seed, d=4)
    walks = sum(
        weight_of_a_walk(measure, k) * closed_walks(weights * weights, k) for k in range(1, 9)
    )
    assert walks > 1e-4
    # Walks longer than eight are left out of the slow version; they weigh less than 1e-6 of it.
    assert measure(weights)[0] == pytest.approx(walks, rel=1e-5)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("seed", range(3))
def test_gradient_against_central_differences(measure: Measure, seed: int) -> None:
    weights = small(seed)
    gradient = measure(weights)[1]
    step = 1e-5
    for i in range(5):
        for j in range(5):
            moved = weights.copy()
            moved[i, j] += step
            above = measure(moved)[0]
            moved[i, j] -= 2 * step
            slope = (above - measure(moved)[0]) / (2 * step)
            assert gradient[i, j] == pytest.approx(slope, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("d", [1, 2, 30])
def test_zero_without_cycles_and_positive_with_one(measure: Measure, d: int) -> None:
    rng = np.random.default_rng(d)
    order = rng.permutation(d)
    weights = np.triu(rng.normal(size=(d, d)), 1)[np.ix_(order, order)]
    # The entries of the exponential are large here although its trace is not.
    assert measure(weights)[0] == pytest.approx(0.0, abs=1e-9)
    if d >= 2:
        weights = np.zeros((d, d))
        weights[0, 1] = weights[1, 0] = 0.1
        assert measure(weights)[0] > 1e-6


def test_the_log_determinant_knows_where_it_ends() -> None:
    weights = np.zeros((3, 3))
    weights[0, 1] = weights[1, 0] = 1.1
    assert log_determinant(weights)[0] == np.inf
    assert np.isnan(log_determinant(weights)[1]).all()
    assert np.isfinite(log_determinant(weights, s=1.5)[0])
    # Two large eigenvalues make the determinant positive again: the sign alone does not tell.
    double = np.kron(np.eye(2), 1.1 * (1.0 - np.eye(2))).astype(np.float64)
    assert np.linalg.det(np.eye(4) - double * double) > 0
    assert log_determinant(double)[0] == np.inf
    # And exactly on the border.
    weights[0, 1] = weights[1, 0] = 1.0
    assert log_determinant(weights)[0] == np.inf


def test_only_the_log_determinant_sees_long_cycles() -> None:
    ring: Floats = 0.9 * np.roll(np.eye(30), 1, axis=1)
    assert exponential(ring)[0] < 1e-12
    assert log_determinant(ring)[0] > 1e-3
