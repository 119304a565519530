"""The network of one node: derivatives by differences, and the limit of a straight line."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.arrays import Floats, completed
from isthmus.neural import perceptron


def problem(seed: int = 0, n: int = 60, parents: int = 2, hidden: int = 3):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, parents))
    y = np.sin(2 * x[:, 0]) + 0.3 * rng.normal(size=n)
    return rng.normal(size=perceptron.size_of_nodes(parents, hidden)), x, y, hidden


def derivatives(
    parameters: Floats, x: Floats, y: Floats, hidden: int
) -> tuple[Floats, Floats, Floats]:
    return completed(perceptron._derivatives(parameters, x, y, hidden))


def test_derivatives_are_those_of_differences() -> None:
    parameters, x, y, hidden = problem()
    _, slope, hessian = derivatives(parameters, x, y, hidden)

    def value(at: np.ndarray) -> float:
        r = perceptron.predict(at, x, hidden) - y
        return 0.5 * float(r @ r) / len(r)

    step = 1e-5
    for k in range(len(parameters)):
        move = step * np.eye(len(parameters))[k]
        change = (value(parameters + move) - value(parameters - move)) / (2 * step)
        assert slope[k] == pytest.approx(change, abs=1e-8)
        up = derivatives(parameters + move, x, y, hidden)[1]
        down = derivatives(parameters - move, x, y, hidden)[1]
        np.testing.assert_allclose(hessian[k], (up - down) / (2 * step), atol=1e-7)


def test_rows_in_parts_give_the_same_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = derivatives(*problem())
    monkeypatch.setattr(perceptron, "_ROWS", 7)
    for a, b in zip(whole, derivatives(*problem()), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)


def test_a_fit_is_stationary_and_explains_a_curve() -> None:
    start, x, y, hidden = problem(n=400)
    fit = completed(perceptron.fit(start, x, y, hidden, 1e-3))
    assert fit.residual < 1e-6
    assert fit.variance < 0.3 * y.var()
    assert 1.0 < fit.freedom < len(start)
    assert fit.contributions[0] > 5 * fit.contributions[1]


def test_without_parents_the_mean_is_predicted() -> None:
    _, x, y, hidden = problem()
    fit = completed(perceptron.fit(np.zeros(2 * hidden + 1), x[:, :0], y, hidden, 0.01))
    assert fit.variance == pytest.approx(y.var())
    assert fit.freedom == 0.0
