"""Lassos along orders against coordinate descent and brute force, and how they stop."""

from __future__ import annotations

import _thread
import threading
import time
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.kernels.moments import Floats, random_moments

from isthmus.kernels.continuous import OrderedLassos


def lasso(moments: Floats, child: int, parents: list[int], penalty: float) -> tuple[float, Floats]:
    """Minimise by coordinate descent, slowly."""
    w = np.zeros(len(moments))
    for _ in range(500):
        for i in parents:
            if moments[i, i] > 0.0:
                slope = moments[i, child] - moments[i] @ w + moments[i, i] * w[i]
                w[i] = np.sign(slope) * max(abs(slope) - penalty, 0.0) / moments[i, i]
    value = 0.5 * w @ moments @ w - moments[child] @ w + penalty * np.abs(w).sum()
    return float(value), w


def lassos(moments: Floats, penalty: float = 0.05, **changed: Any) -> OrderedLassos:
    d = len(moments)
    arguments: dict[str, Any] = {
        "scale": np.ones(d), "penalties": np.full((d, d), penalty),
        "allowed": ~np.eye(d, dtype=np.bool_), "required": np.zeros((d, d), np.bool_),
        "tolerance": 1e-10,
    }  # fmt: skip
    return OrderedLassos(moments, **(arguments | changed))


def finish(native: OrderedLassos, seconds: float = 0.01) -> None:
    while not native.step(seconds):
        pass


def settled(moments: Floats, order: NDArray[np.int64], **changed: Any) -> OrderedLassos:
    native = lassos(moments, **changed)
    native.start(order, np.zeros_like(moments))
    finish(native)
    return native


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("n", [4, 6, 100])
def test_columns_are_at_their_minimum(n: int, seed: int) -> None:
    """Also with fewer rows than variables, a constant and a copy of a variable."""
    d, rng = 8, np.random.default_rng(seed)
    moments = random_moments(d, n, seed)
    moments[0] = moments[:, 0] = 0.0
    moments[1], moments[:, 1] = moments[2], moments[:, 2]
    moments[1, 1] = moments[1, 2] = moments[2, 1] = moments[2, 2]
    order = rng.permutation(d)
    native = lassos(moments)
    native.start(order, rng.normal(size=(d, d)))
    finish(native)
    for place, child in enumerate(order.tolist()):
        value, _ = lasso(moments, child, order[:place].tolist(), 0.05)
        # Coordinate descent is slow where variables nearly depend on each other.
        assert native.values()[child] < value + 1e-8
    weights = native.weights()
    for child in range(d):
        w = weights[:, child]
        value = 0.5 * w @ moments @ w - moments[child] @ w + 0.05 * np.abs(w).sum()
        assert native.values()[child] == pytest.approx(value, abs=1e-8)
    rank = np.argsort(order)
    assert (weights[rank[:, None] >= rank[None, :]] == 0.0).all()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
def test_a_variable_moves_to_its_best_place(seed: int) -> None:
    d, rng = 6, np.random.default_rng(seed)
    moments = random_moments(d, 100, seed)
    order = rng.permutation(d)
    native = settled(moments, order)
    before = native.values().sum()
    mover = int(rng.integers(d))
    native.sweep(np.array([mover]), least=1e-9, worth=0.0)
    finish(native)
    others = [int(v) for v in order if v != mover]
    totals = []
    for place in range(d):
        candidate = [*others[:place], mover, *others[place:]]
        totals.append(sum(lasso(moments, v, candidate[:p], 0.05)[0]
                          for p, v in enumerate(candidate)))  # fmt: skip
    assert native.values().sum() == pytest.approx(min(totals), abs=1e-7)
    assert native.fell == pytest.approx(before - native.values().sum(), abs=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_moves_end_in_a_local_minimum_and_respect_what_is_required(seed: int) -> None:
    d, rng = 5, np.random.default_rng(seed)
    moments = random_moments(d, 60, seed)
    required = np.zeros((d, d), np.bool_)
    required[3, 1] = required[1, 0] = True
    native = settled(moments, np.array([3, 1, 0, 2, 4]), required=required)
    while True:
        native.sweep(rng.permutation(d), least=1e-9, worth=0.0)
        finish(native)
        if native.fell == 0.0:
            break
    order = native.order().tolist()
    assert order.index(3) < order.index(1) < order.index(0)
    total = native.values().sum()
    for mover in range(d):
        others = [v for v in order if v != mover]
        for place in range(d):
            p = [*others[:place], mover, *others[place:]]
            if p.index(3) < p.index(1) < p.index(0):
                other = sum(lasso(moments, v, p[:k], 0.05)[0] for k, v in enumerate(p))
                assert total <= other + 1e-7


def test_neighbours_of_a_variable_that_moved_are_stirred() -> None:
    moments = np.array([[1.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    native = settled(moments, np.array([1, 0, 2]))
    native.sweep(np.array([0, 2]), least=1e-9, worth=0.0)
    finish(native)
    assert native.fell > 0.0
    np.testing.assert_array_equal(native.stirred(), [1])


@pytest.mark.parametrize("seed", range(4))
def test_what_a_sweep_reports_is_exact_although_losses_are_estimated(seed: int) -> None:
    d, worth = 40, 0.05
    native = settled(random_moments(d, 300, seed), np.random.default_rng(seed).permutation(d))
    before = native.values().sum()
    native.sweep(np.arange(d), least=0.5 * worth, worth=worth)
    finish(native)
    assert native.fell > worth
    assert native.fell == pytest.approx(before - native.values().sum(), abs=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("worth", [0.0, 0.02])
def test_slices_do_not_change_the_result(worth: float) -> None:
    d, results = 60, []
    moments = random_moments(d, 50, 1, edges_per_node=4.0)
    for seconds in (0.0, 3600.0):
        rng = np.random.default_rng(0)
        native = lassos(moments, 0.01)
        native.start(rng.permutation(d), np.zeros((d, d)))
        finish(native, seconds)
        for _ in range(2):
            native.sweep(rng.permutation(d), least=1e-9 + 0.5 * worth, worth=worth)
            finish(native, seconds)
        results.append((native.weights(), native.order(), native.values(), native.fell))
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.long
@pytest.mark.timing
def test_a_step_is_short_and_weights_have_no_cycle_at_any_time() -> None:
    d, rng = 300, np.random.default_rng(0)
    native = lassos(random_moments(d, 2 * d, 0), 1e-3)
    native.start(rng.permutation(d), np.zeros((d, d)))
    longest, steps = 0.0, 0
    swept = False
    while steps < 200:
        if native.settled == d and not swept:
            swept = True
            native.sweep(rng.permutation(d), least=1e-9, worth=0.0)
        begin = time.thread_time()
        native.step(0.01)
        longest = max(longest, time.thread_time() - begin)
        steps += 1
        if native.settled == d and steps % 10 == 0:
            rank = np.argsort(native.order())
            assert (native.weights()[rank[:, None] >= rank[None, :]] == 0.0).all()
    assert longest < 0.03


def test_ctrl_c_interrupts_a_step_and_the_sweep_goes_on() -> None:
    d, rng = 100, np.random.default_rng(0)
    moments = random_moments(d, 2 * d, 0)
    turns = rng.permutation(d)
    results = []
    for interrupted in (True, False):
        native = settled(moments, np.arange(d), penalty=5e-3)
        native.sweep(turns, least=1e-9, worth=0.0)
        if interrupted:
            threading.Timer(0.05, _thread.interrupt_main).start()
            with pytest.raises(KeyboardInterrupt):
                native.step(60.0)
            assert native.moved < d
        finish(native)
        results.append(native.weights())
    np.testing.assert_array_equal(results[0], results[1])


def test_odd_input_is_refused() -> None:
    moments, zeros = np.eye(3), np.zeros((3, 3))
    for wrong in ({"scale": np.ones(2)}, {"scale": np.zeros(3)}, {"scale": np.full(3, np.nan)},
                  {"penalties": np.ones((2, 3))}, {"penalties": np.ones((2, 2))},
                  {"allowed": np.ones((2, 2), np.bool_)},
                  {"required": np.zeros((3, 2), np.bool_)}):  # fmt: skip
        with pytest.raises((ValueError, TypeError)):
            lassos(moments, **wrong)
    native = lassos(moments)
    for order in ([0, 1], [0, 1, 1], [0, 1, 3], [0, 1, -1], [0.0, 1.0, 2.0]):
        with pytest.raises((ValueError, TypeError)):
            native.start(np.array(order), zeros)
    with pytest.raises(ValueError, match="weights"):
        native.start(np.arange(3), np.zeros((2, 2)))
    with pytest.raises(RuntimeError, match="solved"):
        native.sweep(np.arange(3), least=0.0, worth=0.0)
    native.start(np.arange(3), zeros)
    with pytest.raises(RuntimeError, match="solved"):
        native.sweep(np.arange(3), least=0.0, worth=0.0)
    finish(native)
    with pytest.raises(ValueError, match="does not exist"):
        native.sweep(np.array([3]), least=0.0, worth=0.0)
    required = np.zeros((3, 3), np.bool_)
    required[2, 0] = True
    with pytest.raises(ValueError, match="required"):
        lassos(moments, required=required).start(np.arange(3), zeros)


def test_nothing_and_one_variable_are_enough() -> None:
    empty = lassos(np.zeros((0, 0)))
    empty.start(np.empty(0, np.int64), np.zeros((0, 0)))
    assert empty.step()
    assert empty.weights().shape == (0, 0)
    one = settled(np.ones((1, 1)), np.zeros(1, np.int64))
    one.sweep(np.zeros(1, np.int64), least=0.0, worth=0.0)
    assert one.step()
    assert one.weights().tolist() == [[0.0]]


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300, -1.0])
def test_senseless_moments_end(value: float) -> None:
    moments = np.eye(4)
    moments[1, 2] = moments[2, 1] = value
    native = settled(moments, np.arange(4))
    native.sweep(np.arange(4)[::-1], least=1e-9, worth=0.0)
    finish(native)
