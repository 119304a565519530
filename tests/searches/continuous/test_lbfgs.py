from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from isthmus.arrays import Work, completed
from isthmus.searches.notears import LBFGS

Floats = NDArray[np.float64]


def rosenbrock(x: Floats) -> Work[tuple[float, Floats]]:
    from scipy.optimize import rosen, rosen_der

    value = float(rosen(x))
    yield
    return value, np.asarray(rosen_der(x))


def begun(solver: LBFGS) -> LBFGS:
    completed(solver.begin())
    return solver


def test_reaches_the_minimum_of_rosenbrock() -> None:
    solver = begun(LBFGS(rosenbrock, np.full(10, -1.2)))
    values = [solver.value]
    for _ in range(300):
        if completed(solver.iterate()) == 0.0:
            break
        values.append(solver.value)
    assert solver.x == pytest.approx(np.ones(10), abs=1e-7)
    assert values == sorted(values, reverse=True)


def test_a_border_of_the_domain_is_not_crossed() -> None:
    def barrier(x: Floats) -> Work[tuple[float, Floats]]:
        yield
        if (x >= 1.0).any():
            return np.inf, np.full_like(x, np.nan)
        return float(-10.0 * x.sum() - np.log1p(-x).sum()), -10.0 + 1.0 / (1.0 - x)

    solver = begun(LBFGS(barrier, np.zeros(3)))
    while completed(solver.iterate()) > 0.0:
        assert (solver.x < 1.0).all()
    assert solver.x == pytest.approx(0.9, abs=1e-6)


def test_at_a_minimum_nothing_falls() -> None:
    def square(x: Floats) -> Work[tuple[float, Floats]]:
        yield
        return float(x @ x), 2 * x

    solver = begun(LBFGS(square, np.zeros(4)))
    assert completed(solver.iterate()) == 0.0


def test_an_iteration_that_is_not_finished_changes_nothing() -> None:
    solver = begun(LBFGS(rosenbrock, np.full(10, -1.2)))
    for _ in range(20):
        x, value = solver.x.copy(), solver.value
        work = solver.iterate()
        pieces = 0
        while True:
            np.testing.assert_array_equal(solver.x, x)
            assert solver.value == value
            if next(work, True):
                break
            pieces += 1
        assert pieces >= 1
        assert solver.value < value
