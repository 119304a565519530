"""Intervals of effects also cover if the variance of the noise depends on the cause."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import isthmus as ist

TIERS = ist.Knowledge(tiers=[["z"], ["x"], ["y"]])
# A variance that depends on x also looks like a curve.
pytestmark = pytest.mark.filterwarnings("ignore::isthmus.errors.NotesWarning")


def table(n: int, rng: np.random.Generator, *, constant: bool = False) -> dict[str, np.ndarray]:
    z = rng.normal(size=n)
    x = 0.5 * z + rng.normal(size=n)
    scale = 1.0 if constant else np.abs(x)
    return {"z": z, "x": x, "y": x - z + scale * rng.normal(size=n)}


@pytest.mark.long
@pytest.mark.parametrize("constant", [False, True])
def test_intervals_cover(*, constant: bool) -> None:
    trials, robust, classical = 300, 0, 0
    for seed in range(trials):
        data = table(200, np.random.default_rng(seed), constant=constant)
        solution = ist.learn(data, knowledge=TIERS)
        estimate = solution.effect("x", "y")
        assert estimate.robust
        low, high = estimate.interval()
        robust += low <= 1.0 <= high
        without = copy.deepcopy(solution).effect("x", "y")
        assert not without.robust
        low, high = without.interval()
        classical += low <= 1.0 <= high
    assert 0.92 <= robust / trials <= 0.98
    assert constant or classical / trials < 0.85  # what rows are needed for


def test_the_standard_error_is_the_textbook_formula() -> None:
    data = table(60, np.random.default_rng(1))
    estimate = ist.learn(data, knowledge=TIERS).effect("x", "y")
    x = np.stack([data["x"], data["z"], np.ones(60)], axis=1)
    inverse = np.linalg.inv(x.T @ x)
    hat = x @ inverse @ x.T
    maker = np.eye(60) - hat
    residual = maker @ data["y"]
    weight = (inverse @ x.T)[0] ** 2 / np.diag(maker)
    assert estimate.adjustment == ("z",)
    assert np.isclose(estimate.standard_error, np.sqrt(weight @ residual**2))
    values = np.linalg.eigvalsh(maker @ np.diag(weight) @ maker)
    assert np.isclose(estimate.degrees, values.sum() ** 2 / (values**2).sum())


def test_a_rare_flag_has_few_degrees_of_freedom() -> None:
    rng = np.random.default_rng(0)
    flag = np.zeros(500)
    flag[:3] = 1.0
    source = ist.Frame({"x": flag, "y": flag + rng.normal(size=500)}, kinds={"x": "continuous"})
    known = ist.Knowledge(tiers=[["x"], ["y"]])
    estimate = ist.learn(source, knowledge=known).effect("x", "y")
    assert 1.5 < estimate.degrees < 4.0


def test_rows_that_changed_or_are_gone_give_the_error_of_the_moments() -> None:
    data = table(200, np.random.default_rng(3))
    solution = ist.learn(data, knowledge=TIERS)
    plain = ist.learn(ist.summarise(data), knowledge=TIERS).effect("x", "y")
    assert "constant variance" in str(plain)
    assert "constant variance" not in str(solution.effect("x", "y"))
    assert copy.deepcopy(solution).effect("x", "y") == plain
    data["y"][:] = 0.0
    assert solution.effect("x", "y") == plain
