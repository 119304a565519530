"""Large symmetric matrices, in blocks."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.statistics import Moments, Schema, accumulator


@pytest.mark.parametrize("size", [0, 1, 5, 130, 300])
def test_the_symmetric_part_is_that_of_the_formula(size: int) -> None:
    matrix = np.random.default_rng(size).normal(size=(size, size))
    expected = (matrix + matrix.T) / 2
    accumulator.symmetrise(matrix)
    np.testing.assert_array_equal(matrix, expected)


@pytest.mark.parametrize("size", [0, 1, 5, 130])
def test_the_upper_triangle_is_mirrored(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accumulator, "_NUMBERS", 1000)
    matrix = np.random.default_rng(size).normal(size=(size, size))
    expected = np.triu(matrix) + np.triu(matrix, 1).T
    accumulator.mirror(matrix)
    np.testing.assert_array_equal(matrix, expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_moments_in_blocks_are_those_of_the_definition(
    weighted: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(accumulator, "_NUMBERS", 1000)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1500, 40)) @ rng.normal(size=(40, 40)) + 5.0
    weights = rng.integers(1, 4, 1500) if weighted else None
    moments = Moments.from_array(
        Schema.continuous([f"x{i}" for i in range(40)]), x, weights=weights
    )
    repeated = x if weights is None else np.repeat(x, weights, axis=0)
    np.testing.assert_allclose(
        moments.covariance(), np.cov(repeated.T, bias=True), rtol=1e-10, atol=1e-12
    )
    np.testing.assert_array_equal(moments.gram, moments.gram.T)
    np.testing.assert_array_equal(moments.scatter(), moments.scatter().T)
