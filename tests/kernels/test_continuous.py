"""The continuous solvers against slow, independent versions, and with odd input."""

from __future__ import annotations

import _thread
import threading
import time
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from tests.kernels.moments import Floats, random_moments

from isthmus.kernels._native import GroupDescent, reachable, regression
from isthmus.kernels.continuous import (
    BarrierSweeps,
    ShrinkingRegression,
    acyclic_part,
    ascending,
    order_along,
)


def sweep_to_end(native: BarrierSweeps, seconds: float = 0.01) -> None:
    while not native.step(seconds):
        pass


def column_objective(
    w: Floats, moments: Floats, child: int, penalties: Floats, curb: Floats, t: float
) -> float:
    left = 1.0 - float(curb @ (w * w))
    if left <= 0.0:
        return np.inf
    smooth = 0.5 * w @ moments @ w - moments[child] @ w - t * np.log(left)
    return float(smooth + penalties @ np.abs(w))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("n", [4, 200])
def test_a_column_is_at_its_minimum(seed: int, n: int) -> None:
    """The optimality conditions hold, and SciPy finds nothing lower, also with too few rows."""
    from scipy.optimize import minimize

    d, t, rng = 8, 0.3, np.random.default_rng(seed)
    moments, penalties = random_moments(d, n, seed), rng.uniform(0.05, 0.3, (d, d))
    opened = ~np.eye(d, dtype=np.bool_)
    native = BarrierSweeps(moments, allowed=opened)
    arguments: Any = {"scale": np.ones(d), "penalties": penalties, "barrier": t, "tolerance": 1e-10}
    native.begin(rng.permutation(d), **arguments)
    sweep_to_end(native)
    child = int(rng.integers(d))
    before = native.weights()
    native.begin(np.array([child]), **arguments)
    sweep_to_end(native)
    after = native.weights()
    assert (np.delete(after, child, axis=1) == np.delete(before, child, axis=1)).all()
    inverse = np.linalg.inv(np.eye(d) - before**2)
    curb = np.maximum(inverse[child] / inverse[child, child], 0.0)
    w = after[:, child]
    left = 1.0 - float(curb @ (w * w))
    slope = moments @ w - moments[child] + 2.0 * t * curb * w / left
    wrong = np.where(
        w != 0.0, np.abs(slope + penalties[:, child] * np.sign(w)),
        np.maximum(np.abs(slope) - penalties[:, child], 0.0),
    )  # fmt: skip
    assert np.delete(wrong, child).max() < 1e-7
    here = column_objective(w, moments, child, penalties[:, child], curb, t)
    for _ in range(3):
        start = 0.1 * rng.normal(size=d)
        start[child] = 0.0
        free = np.flatnonzero(opened[:, child])

        def value(x: Floats, free: Any = free) -> float:
            full = np.zeros(d)
            full[free] = x
            return column_objective(full, moments, child, penalties[:, child], curb, t)

        other = minimize(value, start[free], method="Nelder-Mead", options={"maxiter": 2000})
        assert here <= other.fun + 1e-9


def test_the_kept_inverse_stays_exact_and_can_be_replaced() -> None:
    d, rng = 25, np.random.default_rng(0)
    moments = random_moments(d, 300, 1)
    native = BarrierSweeps(moments, allowed=~np.eye(d, dtype=np.bool_))
    for _ in range(5):
        native.begin(
            rng.permutation(d), scale=np.ones(d), penalties=np.full((d, d), 0.1), barrier=1.0,
            tolerance=1e-8,
        )  # fmt: skip
        sweep_to_end(native)
        assert native.inverse_error() < 1e-10
    weights = native.weights()
    assert max(abs(np.linalg.eigvals(weights**2))) < 1.0
    inverse = np.asarray(np.linalg.inv(np.eye(d) - weights**2), np.float64)
    native.set_inverse(2.0 * inverse)
    assert native.inverse_error() == pytest.approx(1.0)
    native.set_inverse(inverse)
    assert native.inverse_error() < 1e-12


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
def test_slices_do_not_change_the_weights(seed: int) -> None:
    d, results = 80, []
    moments = random_moments(d, 60, seed, edges_per_node=4.0)
    for seconds in (0.0, 3600.0):
        rng = np.random.default_rng(seed)
        native = BarrierSweeps(moments, allowed=~np.eye(d, dtype=np.bool_))
        for stage in range(3):
            native.begin(
                rng.permutation(d), scale=np.ones(d), penalties=np.full((d, d), 0.01),
                barrier=0.1 * 4.0**stage, tolerance=1e-8,
            )  # fmt: skip
            sweep_to_end(native, seconds)
        results.append(native.weights())
    np.testing.assert_array_equal(results[0], results[1])


def dense(d: int) -> BarrierSweeps:
    """Make a problem of which a single column has hundreds of weights."""
    native = BarrierSweeps(random_moments(d, 2 * d, 0), allowed=~np.eye(d, dtype=np.bool_))
    native.begin(
        np.arange(d), scale=np.ones(d), penalties=np.full((d, d), 1e-3), barrier=0.1, tolerance=1e-9
    )
    return native


@pytest.mark.long
@pytest.mark.timing
def test_a_step_is_short() -> None:
    native = dense(600)
    longest = 0.0
    for _ in range(200):
        begin = time.thread_time()
        native.step(0.01)
        longest = max(longest, time.thread_time() - begin)
    assert longest < 0.03


def test_ctrl_c_interrupts_a_step_and_the_sweep_goes_on() -> None:
    native = dense(400)
    timer = threading.Timer(0.1, _thread.interrupt_main)
    timer.start()
    begin = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        native.step(60.0)
    assert time.perf_counter() - begin < 5.0
    before = native.done
    while native.done == before:
        native.step(0.1)


@pytest.mark.parametrize("seed", range(10))
def test_regressions_agree_with_least_squares(seed: int) -> None:
    d, rng = 12, np.random.default_rng(seed)
    moments = random_moments(d, 100, seed)
    child, *parents = rng.permutation(d)[: int(rng.integers(1, d))].tolist()
    share, weights = regression(moments, child, np.array(parents, np.int64), 1e-10)
    inside = moments[np.ix_(parents, parents)]
    expected = np.linalg.solve(inside, moments[parents, child])
    np.testing.assert_allclose(weights, expected, rtol=1e-8)
    left = moments[child, child] - moments[child, parents] @ expected
    assert share == pytest.approx(left / moments[child, child], rel=1e-8)


def test_a_determined_parent_has_no_weight() -> None:
    moments = random_moments(4, 50, 0)
    moments[3], moments[:, 3] = moments[2], moments[:, 2]
    moments[3, 3] = moments[2, 2]
    _, weights = regression(moments, 0, np.array([1, 2, 3]), 1e-10)
    assert weights[2] == 0.0
    assert weights[1] != 0.0
    assert regression(np.zeros((2, 2)), 0, np.array([1]), 1e-10)[0] == 1.0
    assert regression(np.ones((1, 1)), 0, np.empty(0, np.int64), 1e-10)[0] == 1.0


@pytest.mark.parametrize("seed", range(12))
def test_removals_agree_with_regressions_of_their_own(seed: int) -> None:
    """Also where parents depend on each other, or the child does not vary."""
    d, rng = 30, np.random.default_rng(seed)
    moments = random_moments(d, 20 if seed % 3 == 0 else 100, seed)
    child, *parents = rng.permutation(d)[: int(rng.integers(1, d))].tolist()
    if seed % 5 == 4:
        moments[child] = moments[:, child] = 0.0
    parents = sorted(parents)
    removals = rng.permutation(parents)[: int(rng.integers(0, len(parents) + 1))].tolist()
    native = ShrinkingRegression(
        moments, child, np.array(parents, np.int64), np.array(removals, np.int64), 1e-10
    )
    while not native.step(0.0 if seed % 2 else 0.01):
        pass
    weights = native.weights()
    assert len(weights) == len(native.shares()) == len(removals) + 1
    left = list(parents)
    for stage in range(len(removals) + 1):
        share, expected = regression(moments, child, np.array(left, np.int64), 1e-10)
        assert native.shares()[stage] == pytest.approx(share, rel=1e-9)
        np.testing.assert_allclose(weights[stage], expected, rtol=1e-7, atol=1e-10)
        if stage < len(removals):
            left.remove(removals[stage])


@pytest.mark.timing
def test_a_step_of_many_removals_is_short() -> None:
    d = 600
    moments = random_moments(d, 2 * d, 0)
    native = ShrinkingRegression(moments, 0, np.arange(1, d), np.arange(1, d), 1e-10)
    longest = 0.0
    for _ in range(30):
        begin = time.thread_time()
        if native.step(0.01):
            break
        longest = max(longest, time.thread_time() - begin)
    assert longest < 0.03


def test_only_parents_are_removed_once() -> None:
    for parents, removals in (([1, 1], []), ([1], [2]), ([1, 2], [1, 1]), ([3], []), ([1], [-1])):
        with pytest.raises(ValueError, match=r"parent|variable"):
            ShrinkingRegression(
                np.eye(3), 0, np.array(parents, np.int64), np.array(removals, np.int64), 1e-10
            )


@pytest.mark.parametrize("d", [0, 1, 2, 9, 64, 65, 130])
@pytest.mark.parametrize("density", [0.0, 0.5, 2.0])
def test_paths_are_found(d: int, density: float) -> None:
    """Also in graphs with cycles."""
    rng = np.random.default_rng(d)
    edges = rng.random((d, d)) < density / max(d, 1)
    reach = edges.copy()
    for k in range(d):
        reach |= np.outer(reach[:, k], reach[k])
    np.testing.assert_array_equal(reachable(edges), reach)


@pytest.mark.parametrize("digits", [0, 17])
def test_equal_values_keep_their_order(digits: int) -> None:
    values = np.round(np.random.default_rng(0).normal(size=1000), digits)
    np.testing.assert_array_equal(ascending(values), np.argsort(values, kind="stable"))
    np.testing.assert_array_equal(ascending(np.array([0.0, -0.0, 0.0])), [0, 1, 2])
    assert len(ascending(np.empty(0))) == 0


@pytest.mark.parametrize("seed", range(10))
def test_orders_follow_the_strongest_edges(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 40))
    weights = np.round(rng.normal(size=(d, d)), 1) * (rng.random((d, d)) < 0.3)
    required = np.triu(rng.random((d, d)) < 1.0 / d, 1)
    reach = reachable(required)
    sources, targets = np.nonzero(weights)
    for i, j in sorted(zip(sources, targets, strict=True), key=lambda e: -abs(weights[e[0], e[1]])):
        if i != j and not reach[j, i]:
            reach |= np.outer(reach[:, i] | (np.arange(d) == i), reach[j] | (np.arange(d) == j))
    expected = np.argsort(reach.sum(axis=0), kind="stable")
    np.testing.assert_array_equal(order_along(weights, required), expected)
    rank = np.argsort(order_along(weights, required))
    assert (rank[np.nonzero(required)[0]] < rank[np.nonzero(required)[1]]).all()


@pytest.mark.parametrize("seed", range(10))
def test_the_heaviest_acyclic_part_is_taken(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(0, 30))
    weights = np.round(np.abs(rng.normal(size=(d, d))), 1)
    required = np.triu(rng.random((d, d)) < 1.0 / max(d, 1), 1)
    expected, reach = required.copy(), reachable(required) | np.eye(d, dtype=np.bool_)
    cells = [(i, j) for i in range(d) for j in range(d) if weights[i, j] > 0.5]
    for i, j in sorted(cells, key=lambda e: -weights[e]):
        if not required[i, j] and not reach[j, i]:
            expected[i, j] = True
            reach |= np.outer(reach[:, i], reach[j])
    chosen = acyclic_part(np.asarray(weights, np.float64), required, 0.5)
    np.testing.assert_array_equal(chosen, expected)


def test_graphs_that_make_no_sense_are_refused() -> None:
    with pytest.raises((ValueError, TypeError)):
        reachable(np.zeros((2, 3), np.bool_))
    with pytest.raises((ValueError, TypeError)):
        order_along(np.ones((3, 3)), np.zeros((2, 2), np.bool_))


@pytest.mark.parametrize("seed", range(10))
def test_group_lassos_satisfy_the_optimality_conditions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    starts = np.array([0, 3, 4, 4, 8, 12], np.int64)
    features = random_moments(12, 100, seed)
    spans = list(pairwise(starts))
    steeps = np.array([np.linalg.norm(features[a:b, a:b], 2) if b > a else 0.0 for a, b in spans])
    cross, penalties = rng.normal(size=12), rng.uniform(0.1, 1.0, 5)
    descent = GroupDescent(features, starts=starts, steeps=steeps)
    descent.begin(
        np.zeros(12), cross=cross, penalties=penalties, causes=np.arange(4), tolerance=1e-10,
        limit=100_000,
    )  # fmt: skip
    while not descent.step():
        pass
    c = descent.coefficients()
    slope = features @ c - cross
    for group, (a, b) in enumerate(spans[:4]):
        size = np.linalg.norm(c[a:b])
        if size > 0.0:
            np.testing.assert_allclose(slope[a:b], -penalties[group] * c[a:b] / size, atol=1e-7)
        else:
            assert np.linalg.norm(slope[a:b]) <= penalties[group] + 1e-9
    assert (c[8:] == 0.0).all()


@pytest.mark.parametrize("limit", [0, 1, 7, 500])
def test_group_lassos_in_slices_are_those_at_once(limit: int) -> None:
    rng = np.random.default_rng(limit)
    starts = np.concatenate([[0], np.cumsum(rng.integers(0, 5, 20))]).astype(np.int64)
    p = int(starts[-1])
    features = random_moments(p, 30, limit)
    steeps = np.array([np.linalg.norm(features[a:b, a:b], 2) if b > a else 0.0
                       for a, b in pairwise(starts)])  # fmt: skip
    start, cross = rng.normal(size=p) * (rng.random(p) < 0.5), rng.normal(size=p)
    found = []
    for seconds in (0.0, 3600.0):
        descent = GroupDescent(features, starts=starts, steeps=steeps)
        descent.begin(
            start, cross=cross, penalties=np.full(20, 0.1), causes=np.arange(1, 20),
            tolerance=1e-7, limit=limit,
        )  # fmt: skip
        while not descent.step(seconds):
            pass
        assert descent.sweeps <= limit
        found.append(descent.coefficients())
    np.testing.assert_array_equal(found[0], found[1])
    kept = slice(starts[0], starts[1])  # the first group may not move
    np.testing.assert_array_equal(found[0][kept], start[kept])
    assert np.array_equal(found[0], start) == (limit == 0)


@pytest.mark.timing
def test_a_step_of_a_large_group_lasso_is_short() -> None:
    p, rng = 3000, np.random.default_rng(0)
    root = rng.normal(size=(p, 200)) / 10.0
    features = root @ root.T + 0.01 * np.eye(p)
    descent = GroupDescent(features, starts=np.arange(0, p + 1, 5), steeps=np.full(p // 5, 40.0))
    descent.begin(
        rng.normal(size=p), cross=rng.normal(size=p), penalties=np.full(p // 5, 1e-3),
        causes=np.arange(p // 5), tolerance=1e-9, limit=5000,
    )  # fmt: skip
    longest = 0.0
    for _ in range(30):
        begin = time.thread_time()
        assert not descent.step(0.01)
        longest = max(longest, time.thread_time() - begin)
    assert longest < 0.03


def test_nothing_is_left_to_do_without_variables() -> None:
    native = BarrierSweeps(np.zeros((0, 0)), allowed=np.zeros((0, 0), np.bool_))
    native.begin(
        np.empty(0, np.int64), scale=np.empty(0), penalties=np.zeros((0, 0)), barrier=1.0,
        tolerance=1e-9,
    )  # fmt: skip
    assert native.step()
    assert native.weights().shape == (0, 0)
    descent = GroupDescent(np.zeros((0, 0)), starts=np.zeros(1, np.int64), steeps=np.empty(0))
    descent.begin(
        np.empty(0), cross=np.empty(0), penalties=np.empty(0), causes=np.empty(0, np.int64),
        tolerance=1e-9, limit=3,
    )  # fmt: skip
    assert descent.step()
    assert descent.coefficients().shape == (0,)


def begun(**changed: Any) -> None:
    arguments: dict[str, Any] = {
        "turns": np.arange(3), "scale": np.ones(3), "penalties": np.ones((3, 3)), "barrier": 1.0,
        "tolerance": 1e-9,
    }  # fmt: skip
    native = BarrierSweeps(np.eye(3), allowed=~np.eye(3, dtype=np.bool_))
    native.begin(**(arguments | changed))
    assert native.step(60.0)


@pytest.mark.parametrize(
    "changed",
    [
        {"turns": np.array([3])},
        {"turns": np.array([-1])},
        {"turns": np.array([0.5])},
        {"scale": np.ones(2)},
        {"penalties": np.ones((3, 2))},
        {"penalties": np.ones((2, 2))},
        {"scale": np.ones((3, 1))},
    ],
)
def test_sweeps_refuse_odd_input(changed: dict[str, Any]) -> None:
    begun()
    with pytest.raises((ValueError, TypeError)):
        begun(**changed)


@pytest.mark.parametrize(
    "changed",
    [{}, {"turns": np.arange(3, dtype=np.int32)}, {"scale": np.ones(6)[::2]},
     {"penalties": np.ones((3, 3), np.float32)}, {"barrier": 0.0}, {"barrier": np.nan},
     {"tolerance": np.inf}, {"penalties": np.full((3, 3), np.nan)}, {"turns": np.zeros(5, int)}],
)  # fmt: skip
def test_sweeps_accept_or_survive(changed: dict[str, Any]) -> None:
    begun(**changed)


def test_constructors_refuse_odd_input() -> None:
    opened = ~np.eye(3, dtype=np.bool_)
    for wrong in (np.ones((3, 2)), np.ones(3), np.ones((2, 2))):
        with pytest.raises((ValueError, TypeError)):
            BarrierSweeps(wrong, allowed=opened)
    for radius in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="radius"):
            BarrierSweeps(np.eye(3), allowed=opened, radius=radius)
    for starts, groups in (([0, 3], 2), ([0, 4], 1), ([1, 3], 1), ([], 0), ([0, 3, 2, 3], 3),
                           ([-3, 3], 1), ([0, -3], 1)):  # fmt: skip
        steeps = np.ones(groups)
        with pytest.raises((ValueError, TypeError)):
            GroupDescent(np.eye(3), starts=np.array(starts, np.int64), steeps=steeps)
    with pytest.raises(TypeError):
        GroupDescent(np.eye(3, dtype=np.float32), starts=np.array([0, 3]), steeps=np.ones(1))
    for child, parents in ((3, [0]), (0, [3]), (0, [-1]), (-1, [0])):
        with pytest.raises((ValueError, TypeError)):
            regression(np.eye(3), child, np.array(parents), 1e-10)


def test_a_read_only_array_is_accepted() -> None:
    moments = np.eye(3)
    moments.flags.writeable = False
    assert regression(moments, 0, np.array([1]), 1e-10)[0] == 1.0
    GroupDescent(moments, starts=np.array([0, 3]), steeps=np.ones(1))


def test_a_sweep_cannot_begin_while_a_column_is_under_way() -> None:
    native = dense(300)
    native.step(0.001)
    assert native.done < 300
    with pytest.raises(RuntimeError, match="not finished"):
        native.begin(
            np.arange(300), scale=np.ones(300), penalties=np.ones((300, 300)), barrier=1.0,
            tolerance=1e-9,
        )  # fmt: skip
    with pytest.raises(RuntimeError, match="under way"):
        native.set_inverse(np.eye(300))
