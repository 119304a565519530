"""The exact solver of one node against plain proximal gradient steps."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.objectives.test_additive import make

from isthmus.arrays import completed
from isthmus.searches.notears_mlp import NodeLasso

Floats = NDArray[np.float64]


def proximal(kind: str, target: int, causes: list[int], penalty: float) -> Floats:
    """Fifty thousand small steps; shares no code with what it checks."""
    loss, features, _ = make(kind, n=200)
    c = np.zeros(features.shape[1])
    everything = np.arange(len(c))
    rate = 0.05
    for _ in range(50_000):
        gradient = loss.column(target, everything, c)[1]
        moved = c - rate * gradient
        for node in range(4):
            own = loss.owner == node
            size = float(np.linalg.norm(moved[own]))
            if node in causes and size > 0.0:
                moved[own] *= max(1.0 - rate * penalty / size, 0.0)
            else:
                moved[own] = 0.0
        if float(np.abs(moved - c).max()) < 1e-14:
            break
        c = moved
    return c


@pytest.mark.long
@pytest.mark.parametrize("kind", ["squares", "logistic", "poisson"])
@pytest.mark.parametrize("penalty", [0.0, 0.02, 0.1])
def test_solution_is_that_of_proximal_steps(kind: str, penalty: float) -> None:
    loss, features, _ = make(kind, n=200)
    lasso = NodeLasso(loss, 1, [0, 2, 3], np.full(4, penalty))
    found, residual = completed(lasso.solve(np.zeros(features.shape[1])))
    assert residual < 1e-9
    np.testing.assert_allclose(found, proximal(kind, 1, [0, 2, 3], penalty), atol=1e-8)


@pytest.mark.parametrize("kind", ["squares", "profiled", "logistic", "poisson"])
def test_start_does_not_matter(kind: str) -> None:
    loss, features, _ = make(kind, n=200)
    lasso = NodeLasso(loss, 2, [0, 1, 3], np.full(4, 0.03))
    rng = np.random.default_rng(5)
    found = [completed(lasso.solve(0.2 * s))[0] for s in rng.normal(size=(3, features.shape[1]))]
    np.testing.assert_allclose(found[1], found[0], atol=1e-8)
    np.testing.assert_allclose(found[2], found[0], atol=1e-8)


def test_columns_that_determine_each_other() -> None:
    from isthmus.objectives import QuadraticAdditiveLoss

    rng = np.random.default_rng(6)
    x = rng.normal(size=(100, 3))
    x = np.column_stack([x, x[:, 0]])
    s = x.T @ x / 100
    loss = QuadraticAdditiveLoss(("a", "b", "c", "e"), np.arange(4), s, s, s.diagonal())
    found, residual = completed(NodeLasso(loss, 1, [0, 2, 3], np.full(4, 0.01)).solve(np.zeros(4)))
    assert np.isfinite(found).all()
    assert residual < 1e-8
