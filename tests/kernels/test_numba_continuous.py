"""The continuous solvers against the Numba kernels that they replace. Goes when those go.

Regressions and group lassos are equal to the last bit. The Newton systems of the originals are
compiled with reassociation and fused multiply-add, so their bits depend on the processor: there
the weights agree within the tolerance to which columns are solved.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from tests.kernels.moments import Floats, random_moments

from isthmus.kernels.continuous import BarrierSweeps, GroupDescent, OrderedLassos, regression
from isthmus.numerics import column_orders, columns, group_descent


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
         for a, b in pairwise(starts)]
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
    native = BarrierSweeps(moments, allowed=opened)
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


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("d", "n", "worth"), [(2, 20, 0.0), (12, 100, 0.0), (40, 30, 0.0),
                                               (40, 300, 0.0), (60, 400, 0.02)])  # fmt: skip
def test_orders_of_lassos_agree(d: int, n: int, worth: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    moments = random_moments(d, n, seed)
    rank = rng.permutation(d)
    forward = rank[:, None] < rank[None, :]
    required = forward & (rng.random((d, d)) < 0.5 / d) if seed % 2 else np.zeros((d, d), np.bool_)
    allowed = (~np.eye(d, dtype=np.bool_) & (rng.random((d, d)) < 0.9)) | required
    penalties = np.where(required, 0.0, 0.05)
    start, guess = np.argsort(rank), rng.normal(size=(d, d)) * (rng.random((d, d)) < 0.1)
    tolerance, least = 1e-9, 1e-10 * float(np.trace(moments)) / d + 0.5 * worth
    problem = columns.Problem(
        moments, np.ones(d), penalties.T.copy(), allowed.T.copy(), required.T.copy()
    )
    state = column_orders.new_ordered(start, guess.T.copy())
    room = columns.new_room(d)
    column_orders.settle(problem, state, 0, d, tolerance, room)
    native = OrderedLassos(
        moments, scale=np.ones(d), penalties=penalties, allowed=allowed, required=required,
        tolerance=tolerance,
    )  # fmt: skip
    native.start(start, guess)
    while not native.step(0.0 if seed % 3 else 0.01):
        pass
    np.testing.assert_allclose(native.values(), state.value, atol=1e-9)
    for _ in range(3):
        turns = rng.permutation(d)
        fell = sum(
            column_orders.improve(problem, state, mover, tolerance, least, worth, room)
            for mover in turns
        )
        native.sweep(turns, least=least, worth=worth)
        while not native.step(0.0 if seed % 3 else 0.01):
            pass
        assert native.fell == pytest.approx(fell, abs=1e-3)
        np.testing.assert_array_equal(native.order(), state.order)
        # The original sometimes stops before zero weights have had their turn.
        same = np.abs(native.values() - state.value) < 1e-9
        assert (same | (native.values() < state.value)).all()
        assert same.mean() > 0.95
        np.testing.assert_allclose(native.weights()[:, same], state.incoming.T[:, same], atol=1e-6)
