"""Gaussian-process regressions: densities, derivatives and integrals against slow versions."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from numpy.polynomial.chebyshev import chebvander

from isthmus.arrays import completed
from isthmus.gp.bridge import importance
from isthmus.gp.density import (
    FLOOR,
    Density,
    Design,
    climb,
    design_from_moments,
    design_from_rows,
    find_modes,
)
from isthmus.gp.families import MomentRegressions, RowRegressions


def curves(n: int, p: int, seed: int = 0) -> tuple[Any, Any]:
    """A standardised child of standardised parents, with an interaction."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p))
    y = np.sin(2.0 * x[:, 0]) + 0.4 * rng.normal(size=n)
    if p > 1:
        y += 0.5 * x[:, 0] * x[:, 1]
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    return (y - y.mean()) / y.std(), x


def slow_kernel(x: Any, point: Any, *, interactions: bool = False) -> Any:
    p = x.shape[1]
    parts = [
        np.exp(-((x[:, j, None] - x[None, :, j]) ** 2) / (2.0 * np.exp(point[j]) ** 2))
        for j in range(p)
    ]
    if not interactions:
        return sum(parts)
    total = np.exp(point[p]) * sum(parts)
    for i in range(p):
        for j in range(i):
            total = total + np.exp(point[p + 1]) * parts[i] * parts[j]
    return total


def slow_joint(y: Any, kernel: Any, point: Any, p: int) -> float:
    """The definition: a normal density, inverse-gamma priors, and the Jacobian."""
    from scipy.stats import invgamma, multivariate_normal

    noise = np.exp(point[-1]) ** 2 + FLOOR
    covariance = kernel + np.ones((len(y), len(y))) + noise * np.eye(len(y))
    value = multivariate_normal.logpdf(y, np.zeros(len(y)), covariance)
    value += invgamma.logpdf(np.exp(point[:p]), 2.0, scale=2.0).sum() + point[:p].sum()
    value += invgamma.logpdf(np.exp(point[p:]), 1.0, scale=1.0).sum() + point[p:].sum()
    return float(value)


def wide(x: Any, terms: int, radius: float) -> Any:
    n, p = x.shape
    blocks = [chebvander(np.clip(x[:, j] / radius, -1.0, 1.0), terms)[:, 1:] for j in range(p)]
    return np.concatenate([np.ones((n, 1)), *blocks], axis=1)


def moment_design(y: Any, x: Any, terms: int, radius: float) -> Design:
    phi = wide(x, terms, radius)
    return design_from_moments(
        phi.T @ phi, phi.T @ y, float(y @ y), len(y), (terms,) * x.shape[1], radius
    )


@pytest.mark.parametrize("interactions", [False, True])
@pytest.mark.parametrize("p", [1, 2, 3])
def test_the_density_follows_its_definition(p: int, *, interactions: bool) -> None:
    y, x = curves(20, p)
    density = Density(design_from_rows(y, x, interactions=interactions))
    rng = np.random.default_rng(1)
    for _ in range(5):
        point = 0.5 * rng.normal(size=density.size)
        expected = slow_joint(y, slow_kernel(x, point, interactions=interactions), point, p)
        assert density.value(point) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("n", [1, 12])
def test_without_parents_there_are_only_mean_and_noise(n: int) -> None:
    y = np.random.default_rng(2).normal(size=n)
    density = Density(design_from_rows(y, np.empty((n, 0))))
    for s in (-1.0, 0.0, 0.7):
        expected = slow_joint(y, np.zeros((n, n)), np.array([s]), 0)
        assert density.value(np.array([s])) == pytest.approx(expected, abs=1e-9)


def test_moments_are_the_regression_on_the_polynomials_themselves() -> None:
    """Rotating the rows loses nothing: compare with the full covariance over all rows."""
    y, x = curves(40, 2)
    terms, radius = 12, 3.0
    density = Density(moment_design(y, x, terms, radius))
    rng = np.random.default_rng(3)
    m = terms + 1
    nodes = np.cos((np.arange(m) + 0.5) * np.pi / m)
    interpolate = np.linalg.inv(chebvander(nodes, terms))
    for _ in range(5):
        point = 0.5 * rng.normal(size=3)
        kernel = np.zeros((40, 40))
        for j in range(2):
            at_rows = chebvander(np.clip(x[:, j] / radius, -1.0, 1.0), terms) @ interpolate
            inner = slow_kernel(radius * nodes[:, None], point[j : j + 1])
            kernel += at_rows @ inner @ at_rows.T
        assert density.value(point) == pytest.approx(slow_joint(y, kernel, point, 2), abs=1e-7)


@pytest.mark.parametrize("make", ["rows", "interactions", "one parent", "moments", "none"])
def test_derivatives(make: str) -> None:
    y, x = curves(30, 3)
    designs = {
        "rows": lambda: design_from_rows(y, x),
        "interactions": lambda: design_from_rows(y, x, interactions=True),
        "one parent": lambda: design_from_rows(y, x[:, :1], interactions=True),
        "moments": lambda: moment_design(y, x, 10, 5.0),
        "none": lambda: design_from_rows(y, x[:, :0]),
    }
    density = Density(designs[make]())
    point = 0.3 * np.random.default_rng(4).normal(size=density.size)
    here = density.derivatives(point)
    assert here.value == pytest.approx(density.value(point), abs=1e-9)
    h = 1e-5
    for i, step in enumerate(h * np.eye(density.size)):
        slope = (density.value(point + step) - density.value(point - step)) / (2 * h)
        assert here.gradient[i] == pytest.approx(slope, abs=1e-6)
        before, after = density.derivatives(point - step), density.derivatives(point + step)
        bend = (after.gradient - before.gradient) / (2 * h)
        np.testing.assert_allclose(here.hessian[i], bend, atol=1e-5)


def quadrature(y: Any, x: Any, points: int, *, interactions: bool = False) -> float:
    """Integrate over a grid of all hyperparameters, in batches of covariances."""
    from scipy.special import logsumexp
    from scipy.stats import invgamma

    p = x.shape[1]
    scales = np.linspace(-3.0, 5.0, points)
    noises = np.linspace(-2.5, 1.5, points)
    grids = [scales] * p + ([scales] * min(p, 2) if interactions else []) + [noises]
    mesh = np.stack(np.meshgrid(*grids, indexing="ij"), axis=-1).reshape(-1, len(grids))
    squares = (x.T[:, :, None] - x.T[:, None, :]) ** 2
    values = []
    for batch in np.array_split(mesh, max(1, len(mesh) // 2000)):
        parts = np.exp(-0.5 * squares[None] / np.exp(2 * batch[:, :p])[:, :, None, None])
        kernel = parts.sum(axis=1)
        if interactions:
            kernel = np.exp(batch[:, p])[:, None, None] * kernel
        noise = np.exp(2 * batch[:, -1]) + FLOOR
        covariance = 1.0 + kernel + noise[:, None, None] * np.eye(len(y))
        _, determinant = np.linalg.slogdet(covariance)
        solution = np.linalg.solve(
            covariance, np.broadcast_to(y[:, None], (*noise.shape, *y.shape, 1))
        )
        log = -0.5 * (determinant + solution[..., 0] @ y + len(y) * np.log(2 * np.pi))
        log += (invgamma.logpdf(np.exp(batch[:, :p]), 2.0, scale=2.0) + batch[:, :p]).sum(axis=1)
        log += (invgamma.logpdf(np.exp(batch[:, p:]), 1.0, scale=1.0) + batch[:, p:]).sum(axis=1)
        values.append(log)
    volume = sum(float(np.log(g[1] - g[0])) for g in grids)
    return float(logsumexp(np.concatenate(values))) + volume


@pytest.mark.parametrize(
    ("p", "points", "interactions"), [(1, 161, False), (2, 33, False), (1, 33, True)]
)
def test_integrals_against_quadrature(p: int, points: int, *, interactions: bool) -> None:
    y, x = curves(25, p, seed=5)
    expected = quadrature(y, x, points, interactions=interactions)
    density = Density(design_from_rows(y, x, interactions=interactions))
    modes = find_modes(density)
    estimate = importance(density, modes, 2000, np.random.default_rng(6))
    assert estimate.error < 0.1
    assert abs(estimate.value - expected) < 2 * estimate.error
    # Laplace is low by a few tenths of a nat: the right tail of a length scale is heavy.
    assert -0.8 < modes[0].log_integral - expected < 0.1


def test_laplace_at_an_optimum_and_a_hessian_found_otherwise() -> None:
    from scipy.optimize import minimize

    y, x = curves(30, 2, seed=7)

    def negative(point: Any) -> float:
        return -slow_joint(y, slow_kernel(x, point), point, 2)

    starts = [np.array([a, b, -0.5]) for a in (-0.7, 1.0) for b in (-0.7, 1.0)]
    best = min((minimize(negative, s, method="BFGS") for s in starts), key=lambda r: r.fun)
    h = 1e-3
    eye = h * np.eye(3)
    hessian = np.array(
        [
            [
                (
                    negative(best.x + a + b)
                    - negative(best.x + a - b)
                    - negative(best.x - a + b)
                    + negative(best.x - a - b)
                )
                / (4 * h * h)
                for b in eye
            ]
            for a in eye
        ]
    )
    expected = -best.fun + 1.5 * np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(hessian)[1]
    found = find_modes(Density(design_from_rows(y, x)))[0].log_integral
    assert found == pytest.approx(expected, abs=1e-3)


def test_several_starts_find_the_highest_mode() -> None:
    """No random start of six leads higher, in data with several modes."""
    rng = np.random.default_rng(8)
    several = 0
    for seed in range(12):
        y, x = curves(40, 2, seed=seed)
        density = Density(design_from_rows(y, x))
        modes = find_modes(density)
        several += len(modes) > 1
        for _ in range(6):
            start = np.append(rng.uniform(np.log(0.15), np.log(8.0), 2), rng.uniform(-2.0, 0.2))
            other = completed(climb(density, start))
            assert other is not None
            assert other.value <= modes[0].value + 1e-6
    assert several, "the test needs a density with several modes"


@pytest.mark.parametrize("n", [60, 300])
def test_moments_agree_with_rows_and_refine_themselves(n: int) -> None:
    rng = np.random.default_rng(9)
    x = rng.normal(size=(n, 3))
    x[:, 1] = np.sin(5.0 * x[:, 0]) + 0.2 * rng.normal(size=n)  # needs a short length scale
    x[:, 2] += 0.5 * x[:, 0]
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    terms = 96
    phi = wide(x, terms, 5.0)
    moments = MomentRegressions(phi.T @ phi, phi.T @ x, (x**2).sum(axis=0), n, terms, 5.0)
    rows = RowRegressions(x)
    for child, parents in [(1, (0,)), (2, (0,)), (2, (0, 1)), (0, (1, 2)), (0, ())]:
        fast, exact = moments.fit(child, parents), rows.fit(child, parents)
        assert all(fast.resolved)
        assert fast.log_likelihood == pytest.approx(exact.log_likelihood, abs=2e-3)
    assert moments.fit(1, (0,)).terms > (32,)
    assert moments.fit(2, (0,)).terms == (32,)
    narrow = wide(x, 32, 5.0)
    coarse = MomentRegressions(narrow.T @ narrow, narrow.T @ x, (x**2).sum(axis=0), n, 32, 5.0).fit(
        1, (0,)
    )
    assert coarse.resolved == (False,)


def test_a_copy_of_the_child_has_a_finite_score() -> None:
    y, x = curves(50, 1)
    rows = RowRegressions(np.stack([y, y, x[:, 0]], axis=1))
    assert np.isfinite(rows.fit(0, (1,)).log_likelihood)
    assert rows.fit(0, (1,)).log_likelihood > rows.fit(0, (2,)).log_likelihood


def test_repeated_importance_sampling_spreads_as_it_says() -> None:
    y, x = curves(30, 2, seed=11)
    density = Density(design_from_rows(y, x))
    modes = find_modes(density)
    estimates = [importance(density, modes, 300, np.random.default_rng(s)) for s in range(20)]
    spread = np.std([e.value for e in estimates], ddof=1)
    assert spread < np.mean([e.error for e in estimates])
    assert all(50 < e.effective <= 300 for e in estimates)


@pytest.mark.slow
@pytest.mark.skipif("ISTHMUS_LONG" not in os.environ, reason="half a minute; set ISTHMUS_LONG")
@pytest.mark.parametrize(("p", "points"), [(1, 161), (2, 33)])
def test_bridge_sampling_against_quadrature(p: int, points: int) -> None:
    pytest.importorskip("blackjax")
    from isthmus.gp.bridge import bridge_work

    y, x = curves(25, p, seed=5)
    density = Density(design_from_rows(y, x))
    modes = find_modes(density)
    seeds = range(20)
    estimates = [
        completed(bridge_work(density, modes, np.random.default_rng(seed))) for seed in seeds
    ]
    values, errors = np.array([e[:2] for e in estimates]).T
    expected = quadrature(y, x, points)
    assert values.std(ddof=1) < errors.min()
    assert (np.abs(values - expected) < errors).mean() >= 0.8
    assert abs(values.mean() - expected) < errors.mean()
    sampled = importance(density, modes, 2000, np.random.default_rng(0))
    assert abs(values.mean() - sampled.value) < errors.mean() + sampled.error


def test_the_density_of_the_sampler_is_ours() -> None:
    pytest.importorskip("jax")
    from isthmus.gp.bridge import _log_joint, double_precision

    y, x = curves(20, 2)
    designs = [
        design_from_rows(y, x),
        design_from_rows(y, x, interactions=True),
        design_from_rows(y, x[:, :1], interactions=True),
        moment_design(y, x, 10, 5.0),
    ]
    for design in designs:
        point = 0.3 * np.random.default_rng(1).normal(size=design.size)
        mapped = design.maps[0] is not None
        data = (
            design.target,
            design.constant,
            design.squares,
            design.maps if mapped else (),
            design.rest,
            design.rest_squares,
        )
        with double_precision():
            value = float(_log_joint(data, point, interactions=design.interactions, mapped=mapped))
        assert value == pytest.approx(Density(design).value(point), abs=1e-8)
