"""The prior of a mixed fit does not swamp slopes and variances within configurations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.fitting import discrete
from isthmus.fitting.discrete import regress_within
from isthmus.networks import ConditionalGaussian, MixedNetwork
from isthmus.verbs.fit import fit

DAG = ist.DAG(["g", "d", "y"], [("g", "d"), ("g", "y"), ("d", "y")])


def conditional(data: dict[str, Any], dag: ist.DAG) -> ConditionalGaussian:
    network = fit(data, dag)
    assert isinstance(network, MixedNetwork)
    own = network.conditionals[dag.nodes[-1]]
    assert isinstance(own, ConditionalGaussian)
    return own


@pytest.mark.parametrize(("apart", "sd", "n"), [(10, 1.0, 400), (100, 1.0, 400), (1000, 0.1, 4000)])
def test_variances_of_groups_that_are_far_apart(apart: float, sd: float, n: int) -> None:
    rng = np.random.default_rng(0)
    g = np.repeat(["a", "b"], n // 2)
    x = np.where(g == "a", 0.0, apart) + sd * rng.normal(size=n)
    own = conditional({"g": g, "x": x}, ist.DAG(["g", "x"], [("g", "x")]))
    for i, level in enumerate("ab"):
        assert own.variances[i] == pytest.approx(x[g == level].var(), rel=1e-9)
        assert own.intercepts[i] == pytest.approx(x[g == level].mean(), abs=1e-9 * apart)


def test_slopes_within_groups() -> None:
    rng = np.random.default_rng(0)
    g = np.repeat(["a", "b"], 200)
    d = np.where(g == "a", 0, 50) + rng.normal(size=400)
    y = np.where(g == "a", d, 250 - d) + 0.3 * rng.normal(size=400)
    own = conditional({"g": g, "d": d, "y": y}, DAG)
    np.testing.assert_allclose(own.coefficients[:, 0], [1, -1], atol=0.06)
    np.testing.assert_allclose(np.sqrt(own.variances), 0.3, rtol=0.2)


def test_groups_of_very_different_spread() -> None:
    rng = np.random.default_rng(0)
    g = np.repeat(["a", "b"], 100)
    d = np.where(g == "a", 1e-3, 1e6) * rng.normal(size=200)
    y = np.where(g == "a", 5.0, -2.0) * d + np.where(g == "a", 1e-4, 1e5) * rng.normal(size=200)
    own = conditional({"g": g, "d": d, "y": y}, DAG)
    np.testing.assert_allclose(own.coefficients[:, 0], [5, -2], atol=0.05)
    np.testing.assert_allclose(np.sqrt(own.variances), [1e-4, 1e5], rtol=0.2)


def small_configurations() -> dict[str, Any]:
    """Groups of 0, 1, 2, 3 and 200 rows, with three regressors."""
    rng = np.random.default_rng(1)
    code = np.repeat([1, 2, 3, 4, 5], [1, 2, 3, 200, 200])
    x = 1e3 * code[:, None] + rng.normal(size=(len(code), 3))
    y = x @ [1.0, -2.0, 0.5] + 1e4 * code + 0.1 * rng.normal(size=len(code))
    return {"place": code, "x": x, "y": y}


def test_small_configurations_have_proper_distributions() -> None:
    data = small_configurations()
    x, y, place = data["x"], data["y"], data["place"]
    own = regress_within([*x.T, y], place, 7, 1.0)
    assert own.counts.tolist() == [0, 1, 2, 3, 200, 200, 0]
    assert np.isfinite(own.intercepts).all()
    assert (own.variances > 0).all()
    # Slopes that few rows leave open are the common ones, and residuals have the common spread.
    np.testing.assert_allclose(own.coefficients, [[1.0, -2.0, 0.5]] * 7, atol=0.1)
    np.testing.assert_allclose(np.sqrt(own.variances[1:6]), 0.1, rtol=0.5)
    # Where nothing was seen, the level is as uncertain as those of the groups that were.
    rest = y - x @ own.coefficients[0]
    assert own.variances[0] == pytest.approx(rest.var(), rel=1e-6)
    fitted = own.intercepts[place] + (x * own.coefficients[place]).sum(axis=1)
    few = (place >= 1) & (place <= 3)
    assert np.abs(y - fitted)[few].max() < 1.0


@pytest.mark.parametrize("pseudo_count", [1e-12, 0.1, 1.0, 5.0])
def test_a_single_row_gets_the_common_slopes_and_variance(pseudo_count: float) -> None:
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=41), 3 * rng.normal(size=41)
    place = np.r_[np.repeat([0, 1], 20), 2]
    own = regress_within([z, y], place, 4, pseudo_count)
    away = [x - np.array([x[place == g].mean() for g in range(3)])[place] for x in (z, y)]
    slope = away[0] @ away[1] / (away[0] @ away[0])
    assert own.coefficients[2, 0] == pytest.approx(slope)
    common = np.square(away[1] - slope * away[0]).sum() / (41 - 3)
    assert own.variances[2] == pytest.approx(common)
    # Without rows it is as in all of them, here without differences between the groups.
    assert own.variances[2] > 0.9 * own.variances[3]


@pytest.mark.long
@pytest.mark.parametrize("rows", [1, 2, 3, 5])
def test_few_rows_do_not_shrink_the_variance(rows: int) -> None:
    found = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        x, e = rng.normal(size=(2, 200 + rows))
        place = np.r_[np.repeat([0, 1], 100), np.full(rows, 2)]
        found.append(regress_within([x, x + e], place, 3, 1.0).variances[2])
    assert np.mean(found) == pytest.approx(1.0, abs=4 * np.std(found) / math.sqrt(150) + 0.02)
    assert np.mean(found) > 0.85


def test_maximum_likelihood_stays_what_it_is() -> None:
    data = small_configurations()
    x, y, place = data["x"], data["y"], data["place"]
    own = regress_within([*x.T, y], place, 6, 0.0)
    assert own.variances[1:4].tolist() == [0.0, 0.0, 0.0]
    part = place == 4
    design = np.column_stack([x[part] - x[part].mean(axis=0), np.ones(part.sum())])
    expected = np.linalg.lstsq(design, y[part] - y[part].mean(), rcond=None)[0][:3]
    np.testing.assert_allclose(own.coefficients[4], expected, rtol=1e-8)


@pytest.mark.parametrize("kind", ["constant", "line", "parent", "single rows", "two rows"])
def test_degenerate_configurations(kind: str) -> None:
    rng = np.random.default_rng(2)
    n = 2 if kind == "two rows" else 60
    place = np.arange(n) if kind == "single rows" else np.arange(n) % 2
    x, y = rng.normal(size=n), rng.normal(size=n)
    if kind == "constant":
        y[place == 0] = 0.1
    elif kind == "line":
        y[place == 0] = 3.0 * x[place == 0]
    elif kind == "parent":
        x[place == 0] = 0.1
    own = regress_within([x, y], place, max(n, 2), 1.0)
    assert (own.variances > 0).all()
    assert np.isfinite(own.coefficients).all()
    if kind == "constant":
        assert own.coefficients[0, 0] == 0.0
        assert own.intercepts[0] == 0.1
        assert math.sqrt(own.variances[0]) < 0.3
    if kind == "line":
        assert own.coefficients[0, 0] == pytest.approx(3.0, rel=1e-9)
    if kind == "parent":
        assert own.coefficients[0, 0] == pytest.approx(own.coefficients[1, 0])


def new_rows(monkeypatch: pytest.MonkeyPatch, enough: int, rows: int, spread: float) -> float:
    """The average log-density of new rows, for groups with one regressor."""
    monkeypatch.setattr(discrete, "_ENOUGH", enough)
    logs = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        slope, level = 1 + rng.normal(size=30), 5 * rng.normal(size=30)
        sd = np.exp(spread * rng.normal(size=30))
        old, new = np.repeat(np.arange(30), rows), np.repeat(np.arange(30), 50)
        x, z = rng.normal(size=len(old)), rng.normal(size=len(new))
        y = level[old] + slope[old] * x + sd[old] * rng.normal(size=len(old))
        truth = level[new] + slope[new] * z + sd[new] * rng.normal(size=len(new))
        own = regress_within([x, y], old, 30, 1.0)
        residual = truth - own.intercepts[new] - own.coefficients[new, 0] * z
        variance = own.variances[new]
        density = -0.5 * (np.log(2 * np.pi * variance) + residual**2 / variance)
        logs.append(float((density + np.log(sd[new])).mean()))
    return float(np.mean(logs))


def test_the_rows_that_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = discrete._ENOUGH
    # Below the limit, a regression of one's own is worse, also if spreads differ as e^N(0, 1).
    for spread in (0.0, 1.0):
        few = chosen + 1
        shrunk = new_rows(monkeypatch, chosen, few, spread)
        assert shrunk > new_rows(monkeypatch, 1, few, spread) + 0.2
    # Somewhat above it, little is left to gain, and much to lose if spreads differ more.
    own = new_rows(monkeypatch, chosen, chosen + 6, 0.0)
    assert own > new_rows(monkeypatch, 100, chosen + 6, 0.0) - 0.2
    assert own > new_rows(monkeypatch, 100, chosen + 6, 3.0) + 1.0
