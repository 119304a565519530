"""Additive losses against finite differences and against loops over rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from isthmus.arrays import completed
from isthmus.objectives import AdditiveLoss, QuadraticAdditiveLoss, additive, smooth
from isthmus.objectives.additive import PartOfQuadraticLoss, pays
from isthmus.objectives.smooth import Bernoulli, GeneralisedLinearLoss, PoissonFamily

Floats = NDArray[np.float64]
NAMES = ("a", "b", "c", "d")


def make(kind: str, seed: int = 0, n: int = 60) -> tuple[AdditiveLoss, Floats, Floats]:
    """A loss, the features of its rows and the targets."""
    rng = np.random.default_rng(seed)
    if kind == "logistic":
        seen = (rng.random((n, 4)) < 0.4).astype(float)
        loss: AdditiveLoss = GeneralisedLinearLoss(NAMES, seen, seen, Bernoulli())
        return loss, np.column_stack([seen, np.ones(n)]), seen
    if kind == "poisson":
        seen = rng.poisson(2.0, size=(n, 4)).astype(float)
        causes = np.log1p(seen)
        loss = GeneralisedLinearLoss(NAMES, causes, seen, PoissonFamily())
        return loss, np.column_stack([causes, np.ones(n)]), seen
    features, seen = rng.normal(size=(n, 7)), rng.normal(size=(n, 4))
    owner = np.array([0, 0, 1, 2, 2, 3, 3])
    loss = QuadraticAdditiveLoss(
        NAMES,
        owner,
        features.T @ features / n,
        features.T @ seen / n,
        (seen**2).mean(axis=0),
        profiled=kind == "profiled",
    )
    return loss, features, seen


def slow(kind: str, features: Floats, seen: Floats, coefficients: Floats) -> float:
    total = 0.0
    n = len(seen)
    for j in range(seen.shape[1]):
        own = 0.0
        for r in range(n):
            eta = math.fsum(features[r] * coefficients[:, j])
            y = seen[r, j]
            if kind == "logistic":
                p = 1.0 / (1.0 + math.exp(-eta))
                own -= math.log(p if y == 1.0 else 1.0 - p)
            elif kind == "poisson":
                own += math.exp(eta) - y * eta
            else:
                own += 0.5 * (y - eta) ** 2
        own /= n
        total += 0.5 * math.log(2.0 * own) if kind == "profiled" else own
    return total


KINDS = ["squares", "profiled", "logistic", "poisson"]


@pytest.mark.parametrize("kind", KINDS)
def test_value_is_that_of_a_loop_over_rows(kind: str) -> None:
    loss, features, seen = make(kind)
    c = 0.3 * np.random.default_rng(1).normal(size=(features.shape[1], 4))
    assert loss.value_and_gradient(c)[0] == pytest.approx(slow(kind, features, seen, c), rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_gradient_is_that_of_finite_differences(kind: str) -> None:
    loss, features, seen = make(kind)
    c = 0.3 * np.random.default_rng(2).normal(size=(features.shape[1], 4))
    gradient = loss.value_and_gradient(c)[1]
    step = 1e-5
    for at in np.ndindex(*c.shape):
        up, down = c.copy(), c.copy()
        up[at] += step
        down[at] -= step
        change = slow(kind, features, seen, up) - slow(kind, features, seen, down)
        assert gradient[at] == pytest.approx(change / (2 * step), abs=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_columns_add_up_to_the_whole(kind: str) -> None:
    loss, features, _ = make(kind)
    rng = np.random.default_rng(3)
    c = 0.3 * rng.normal(size=(features.shape[1], 4))
    c[rng.random(c.shape) < 0.5] = 0.0
    value, gradient = loss.value_and_gradient(c)
    parts = [loss.column(j, np.flatnonzero(c[:, j]), c[c[:, j] != 0, j]) for j in range(4)]
    assert sum(p[0] for p in parts) == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(np.column_stack([p[1] for p in parts]), gradient, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_curvature_is_the_derivative_of_the_gradient(kind: str) -> None:
    loss, _, _ = make(kind)
    rows = np.array([0, 2, 3])
    c = 0.3 * np.random.default_rng(4).normal(size=3)
    found = loss.curvature(1, rows, c)
    step = 1e-6
    for k in range(3):
        up, down = c.copy(), c.copy()
        up[k] += step
        down[k] -= step
        change = loss.column(1, rows, up)[1][rows] - loss.column(1, rows, down)[1][rows]
        expected = change / (2 * step)
        if kind == "profiled":
            # Only the positive part is kept; the rest is the square of the gradient.
            slope = loss.column(1, rows, c)[1][rows]
            expected += 2.0 * slope * slope[k]
        np.testing.assert_allclose(found[k], expected, atol=1e-7)


def test_extreme_predictors_stay_finite_or_say_so() -> None:
    loss, features, _ = make("logistic")
    value, gradient = loss.value_and_gradient(np.full((features.shape[1], 4), 1e4))
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()
    loss, features, _ = make("poisson")
    assert loss.value_and_gradient(np.full((features.shape[1], 4), 1e4))[0] == np.inf


@pytest.mark.parametrize("kind", KINDS)
def test_an_evaluation_in_pieces_is_that_at_once(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loss, features, _ = make(kind)
    c = 0.3 * np.random.default_rng(5).normal(size=(features.shape[1], 4))
    value, gradient = loss.value_and_gradient(c)
    for module in (additive, smooth):
        monkeypatch.setattr(module, "PIECE", 1)
    work = loss.evaluation(c)
    for _ in range(4):
        assert next(work, None) is None
    in_pieces = completed(work)
    assert in_pieces[0] == pytest.approx(value, rel=1e-13)
    np.testing.assert_allclose(in_pieces[1], gradient, atol=1e-13)
    if kind == "poisson":
        assert completed(loss.evaluation(np.full(c.shape, 1e4)))[0] == np.inf


@pytest.mark.parametrize("kind", ["squares", "profiled"])
def test_part_of_the_coefficients_has_part_of_the_gradient(kind: str) -> None:
    loss, features, _ = make(kind)
    assert isinstance(loss, QuadraticAdditiveLoss)
    rng = np.random.default_rng(6)
    shape = features.shape[1], 4
    open_ = np.flatnonzero(rng.random(shape) < 0.4)
    parameters = 0.3 * rng.normal(size=len(open_))
    whole = np.zeros(shape)
    whole.flat[open_] = parameters
    value, gradient = loss.value_and_gradient(whole)
    part = PartOfQuadraticLoss(loss, open_)
    for _ in range(2):  # the first time it also copies what it needs
        found = completed(part.evaluation(parameters))
        assert found[0] == pytest.approx(value, rel=1e-13)
        np.testing.assert_allclose(found[1], gradient.flat[open_], atol=1e-13)


def test_part_of_the_coefficients_pays_where_it_is_small() -> None:
    rows, targets = 1200, 200
    owner = np.repeat(np.arange(targets), rows // targets)
    zeros = np.zeros((rows, rows))
    names = [f"x{i}" for i in range(targets)]
    loss = QuadraticAdditiveLoss(names, owner, zeros, zeros[:, :targets], np.ones(targets))
    assert pays(loss, np.arange(0, rows * targets, 20))
    assert not pays(loss, np.arange(rows * targets))
