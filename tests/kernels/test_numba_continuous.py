"""The continuous solvers against the Numba kernels that they replace. Goes when those go.

Regressions and group lassos are equal to the last bit. The Newton systems of the originals are
compiled with reassociation and fused multiply-add, so their bits depend on the processor: there
the weights agree within the tolerance to which columns are solved.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.kernels.moments import Floats, random_moments

from isthmus.kernels.continuous import BarrierSweeps, GroupDescent, regression
from isthmus.numerics import columns, group_descent


@pytest.mark.parametrize("seed", range(40))
def test_regressions_are_equal_to_the_last_bit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 60))
    moments = random_moments(d, int(rng.integers(3, 100)), seed)
    moments[:, d // 2] = moments[d // 2] = 0.0 if seed % 7 == 0 else moments[0]
    for _ in range(10):
        child, *others = rng.permutation(d).tolist()
        parents = np.array(others[: int(rng.integers(0, d))], np.int64)
        share, weights = columns.regression(moments, child, parents, 1e-10)
        native_share, native_weights = regression(moments, child, parents, 1e-10)
        assert native_share == share
        np.testing.assert_array_equal(native_weights, weights)


@pytest.mark.parametrize("seed", range(40))
def test_group_lassos_are_equal_to_the_last_bit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 5, int(rng.integers(1, 30)))
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    p = int(starts[-1])
    features = random_moments(p, int(rng.integers(2, 80)), seed)
    steeps = np.array(
        [np.linalg.norm(features[a:b, a:b], 2) if b > a else 0.0
         for a, b in zip(starts[:-1], starts[1:], strict=True)]
    )  # fmt: skip
    cross = rng.normal(size=p)
    penalties = rng.uniform(0.0, 1.0, len(sizes))
    causes = rng.permutation(len(sizes))[: int(rng.integers(0, len(sizes) + 1))].astype(np.int64)
    start = rng.normal(size=p) * (rng.random(p) < 0.5)
    limit = int(rng.choice([0, 1, 7, 500]))
    expected = start.copy()
    sweeps = group_descent.descend(
        features, cross, starts, steeps, penalties, causes, expected, 1e-7, limit
    )
    for seconds in (0.0, 3600.0):
        descent = GroupDescent(features, starts=starts, steeps=steeps)
        descent.begin(
            start, cross=cross, penalties=penalties, causes=causes, tolerance=1e-7, limit=limit
        )
        while not descent.step(seconds):
            pass
        np.testing.assert_array_equal(descent.coefficients(), expected)
        assert descent.sweeps == sweeps


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("d", "n"), [(1, 10), (2, 5), (12, 30), (30, 500), (60, 100)])
def test_sweeps_under_a_barrier_agree(d: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    moments = random_moments(d, n, seed)
    if seed == 3 and d > 2:
        moments[1] = moments[:, 1] = 0.0
    scale = rng.uniform(0.5, 2.0, d) if seed % 2 else np.ones(d)
    opened = ~np.eye(d, dtype=np.bool_) & (rng.random((d, d)) < 0.8)
    penalties = np.full((d, d), 0.1)
    unit = float(np.diagonal(moments).mean())
    incoming, inverse = np.zeros((d, d)), np.eye(d)
    problem = columns.Problem(
        moments, scale, penalties.T.copy(), opened.T.copy(), np.zeros((d, d), np.bool_)
    )
    native = BarrierSweeps(moments, open=opened)
    room = columns.new_room(d)
    for stage in range(5):
        turns, t = rng.permutation(d), 0.03 * 4.0**stage * unit
        moved = columns.sweep(problem, incoming, inverse, turns, t, 1.0, 1e-6 * unit, room)
        native.begin(turns, scale=scale, penalties=penalties, barrier=t, tolerance=1e-6 * unit)
        while not native.step():
            pass
        assert native.moved == pytest.approx(moved, abs=1e-7)
        np.testing.assert_allclose(native.weights(), incoming.T, atol=1e-7)
        assert _same_support(native.weights(), incoming.T)


def _same_support(a: Floats, b: Floats) -> bool:
    return bool((((a != 0.0) == (b != 0.0)) | (np.abs(a - b) < 1e-7)).all())
