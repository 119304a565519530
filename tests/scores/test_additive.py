"""Least squares of additive models against the rows of their features."""

from __future__ import annotations

import time

import numpy as np
import pytest

import isthmus as ist
from isthmus.objectives import QuadraticAdditiveLoss


@pytest.mark.parametrize("equal_variances", [True, False])
def test_features_of_a_node_are_uncorrelated_and_losses_are_those_of_rows(
    equal_variances: bool,
) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 4))
    x[:, 1] += np.sin(2 * x[:, 0])
    x[:, 2] = np.round(x[:, 2])  # few distinct values: its features depend on each other
    x[:, 2] = np.clip(x[:, 2], -1.0, 1.0)
    basis = ist.Chebyshev(4)
    moments = ist.WithFeatures(x, basis).moments()
    loss = ist.AdditiveLeastSquares(basis, equal_variances=equal_variances).bind(moments)
    assert isinstance(loss, QuadraticAdditiveLoss)
    assert np.bincount(loss.owner).tolist() == [4, 4, 2, 4]
    for node in range(4):
        own = np.flatnonzero(loss.owner == node)
        np.testing.assert_allclose(loss.features[np.ix_(own, own)], np.eye(len(own)), atol=1e-9)
    # A regression on all features of some nodes explains the same in any of their bases.
    u = np.clip((x - x.mean(axis=0)) / (3.0 * x.std(axis=0)), -1.0, 1.0)
    for target, causes in ((1, [0]), (3, [0, 1, 2])):
        rows = np.flatnonzero(np.isin(loss.owner, causes))
        inner = loss.features[np.ix_(rows, rows)]
        coefficients = np.linalg.solve(inner, loss.cross[rows, target])
        explained = float(coefficients @ loss.cross[rows, target]) / loss.variances[target]
        columns = [np.cos(k * np.arccos(u[:, c])) for c in causes for k in range(1, 5)]
        design = np.column_stack([np.ones(300), *columns])
        y = x[:, target]
        left = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
        assert 1.0 - explained == pytest.approx(left.var() / y.var(), abs=1e-9)


@pytest.mark.timing
def test_many_variables_are_whitened_quickly() -> None:
    x = np.random.default_rng(0).normal(size=(100, 400))
    moments = ist.WithFeatures(x, ist.Chebyshev(5)).moments()
    moments.covariance()
    begin = time.thread_time()
    ist.AdditiveLeastSquares(ist.Chebyshev(5)).bind(moments)
    # A product of whole matrices, of 2,000 columns, takes ten times as long.
    assert time.thread_time() - begin < 0.5
