from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from isthmus.numerics.lbfgs import LBFGS

Floats = NDArray[np.float64]


def rosenbrock(x: Floats) -> tuple[float, Floats]:
    from scipy.optimize import rosen, rosen_der

    return float(rosen(x)), np.asarray(rosen_der(x))


def test_reaches_the_minimum_of_rosenbrock() -> None:
    solver = LBFGS(rosenbrock, np.full(10, -1.2))
    values = [solver.value]
    for _ in range(300):
        if solver.iterate() == 0.0:
            break
        values.append(solver.value)
    assert solver.x == pytest.approx(np.ones(10), abs=1e-7)
    assert values == sorted(values, reverse=True)


def test_a_border_of_the_domain_is_not_crossed() -> None:
    def barrier(x: Floats) -> tuple[float, Floats]:
        if (x >= 1.0).any():
            return np.inf, np.full_like(x, np.nan)
        return float(-10.0 * x.sum() - np.log1p(-x).sum()), -10.0 + 1.0 / (1.0 - x)

    solver = LBFGS(barrier, np.zeros(3))
    while solver.iterate() > 0.0:
        assert (solver.x < 1.0).all()
    assert solver.x == pytest.approx(0.9, abs=1e-6)


def test_at_a_minimum_nothing_falls() -> None:
    solver = LBFGS(lambda x: (float(x @ x), 2 * x), np.zeros(4))
    assert solver.iterate() == 0.0
