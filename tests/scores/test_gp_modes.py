"""Gaussian-process scores must find modes at short length scales, or say what they miss."""

import numpy as np
import pytest
from tests.notes import noted

import isthmus as ist

EMPTY, EDGE = ist.DAG(["x", "y"]), ist.DAG(["x", "y"], [("x", "y")])


def wave(frequency: int, n: int = 100) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(frequency)
    x = rng.normal(size=n)
    return {"x": x, "y": np.sin(frequency * x) + 0.1 * rng.normal(size=n)}


def quadrature(table: dict[str, np.ndarray], *, parent: bool) -> float:
    """Log marginal likelihood of y by a grid over the length scale and the noise."""
    from scipy.special import logsumexp

    x, y = ((v - v.mean()) / v.std() for v in table.values())
    noises, scales = np.linspace(-5, 4, 120), np.linspace(-4, 6, 60) if parent else np.zeros(1)
    squares = (x[:, None] - x[None]) ** 2
    values = []
    for t in scales:
        kernel = np.exp(-0.5 * squares * np.exp(-2 * t)) if parent else np.zeros_like(squares)
        roots, vectors = np.linalg.eigh(kernel + 1.0)
        each = np.maximum(roots[:, None] + np.exp(2 * noises) + 1e-10, 1e-12)
        fit = np.log(2 * np.pi * each) + (vectors.T @ y)[:, None] ** 2 / each
        prior = 2 * np.log(2) - 2 * t - 2 * np.exp(-t) if parent else 0.0
        values.append(-0.5 * fit.sum(axis=0) + prior - noises - np.exp(-noises))
    width = scales[1] - scales[0] if parent else 1.0
    return float(logsumexp(values) + np.log(width * (noises[1] - noises[0])))


def gain(table: dict[str, np.ndarray], score: ist.GP | ist.ExactGP) -> float:
    return ist.score(table, EDGE, score) - ist.score(table, EMPTY, score)


@pytest.mark.parametrize("frequency", [4, 8, 15])
def test_fast_effects_are_found(frequency: int) -> None:
    table = wave(frequency)
    expected = quadrature(table, parent=True) - quadrature(table, parent=False)
    assert expected > 80
    for integral in (ist.GPIntegral.LAPLACE, ist.GPIntegral.IMPORTANCE):
        score = ist.ExactGP(integral=integral, integration_draws=200)
        assert gain(table, score) == pytest.approx(expected, abs=1.0)


def test_what_the_basis_cannot_resolve_is_said() -> None:
    table = wave(8)
    assert gain(table, ist.GP()) > 80
    with noted("vary faster than the basis"):
        solution = ist.learn(table, score=ist.GP())
    assert solution.dag.edges == (("x", "y"),)


def test_noise_has_no_fast_effect() -> None:
    rng = np.random.default_rng(3)
    table = {"x": rng.normal(size=100), "y": rng.normal(size=100)}
    for score in (ist.GP(), ist.ExactGP()):
        assert gain(table, score) < 0
