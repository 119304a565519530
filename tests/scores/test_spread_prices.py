"""Ratios of robust to usual variances: against rows, integrals, and tables of constant spread."""

from __future__ import annotations

from math import erf, sqrt
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import isthmus as ist
from isthmus import simulate
from isthmus.scores.unequal_spread import spread_ratios
from isthmus.statistics import Moments
from isthmus.tables.groups import within_groups

Floats = NDArray[np.float64]
_DENSITY = np.linspace(-6.0, 6.0, 4001)
_WEIGHTS = np.exp(-0.5 * _DENSITY**2) / np.exp(-0.5 * _DENSITY**2).sum()


def wide(table: Any) -> Moments:
    return ist.WithFeatures(table, ist.Chebyshev(6, 3.0)).moments()


def expected_ratio(first: Floats, second: Floats, shares: Floats) -> float:
    """Return E[v w] / (E[v] E[w]) of two variances at levels of a third variable."""
    return float((first * second) @ shares / ((first @ shares) * (second @ shares)))


@pytest.mark.parametrize("cut", [0.0, 2.0])
def test_levels_that_depend_on_a_number_have_the_ratio_of_the_integral(cut: float) -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=40_000)
    table: dict[str, Any] = {"z": z}
    table |= {k: np.where(1.2 * z + rng.normal(size=40_000) > cut, "y", "n") for k in ("a", "b")}
    share = np.array([0.5 * (1.0 + erf((1.2 * u - cut) / sqrt(2.0))) for u in _DENSITY])
    variance = share * (1.0 - share)
    expected = expected_ratio(variance, variance, _WEIGHTS)
    ratios = spread_ratios(wide(table))
    assert ratios[1, 2] == ratios[2, 1] == pytest.approx(expected, rel=0.05)
    assert expected == pytest.approx({0.0: 1.30, 2.0: 2.58}[cut], abs=0.01)
    assert ratios[0, 1:].max() < 1.01
    assert ratios.diagonal().tolist() == [1.0, 1.0, 1.0]


def test_numbers_within_levels_have_the_ratio_of_the_rows() -> None:
    rng = np.random.default_rng(1)
    group = rng.choice(["a", "b", "c"], 5000, p=[0.5, 0.3, 0.2])
    spread = np.select([group == "a", group == "b"], [0.2, 0.5], 1.0)
    x, y = (spread * rng.normal(size=5000) for _ in range(2))
    ratios = spread_ratios(wide({"group": group, "x": x, "y": y}))
    parts = [group == level for level in "abc"]
    shares = np.array([part.mean() for part in parts])
    clipped = [np.clip(v, v.mean() - 3 * v.std(), v.mean() + 3 * v.std()) for v in (x, y)]
    of_x, of_y = (np.array([v[part].var() for part in parts]) for v in clipped)
    assert ratios[1, 2] == pytest.approx(expected_ratio(of_x, of_y, shares), rel=0.02)
    assert ratios[1, 2] > 1.8


def test_a_step_of_three_levels_and_counts_have_ratios_above_one() -> None:
    rng = np.random.default_rng(2)
    z = rng.normal(size=20_000)
    counts = {k: rng.poisson(np.exp(2 + 0.5 * z)) for k in ("a", "b")}
    # A Poisson variable has its mean as variance, here before values are clipped.
    mean = np.exp(2 + 0.5 * _DENSITY)
    ratio = spread_ratios(wide({"z": z, **counts}))[1, 2]
    assert 1.1 < ratio < expected_ratio(mean, mean, _WEIGHTS)
    e = rng.normal(size=(2, 20_000))
    levels = [np.array(list("abc"))[np.digitize(1.5 * z + row, [-1, 1])] for row in e]
    assert 1.1 < spread_ratios(wide({"z": z, "a": levels[0], "b": levels[1]}))[1, 2] < 1.3


@pytest.mark.parametrize("rows", [200, 2000])
def test_constant_spread_has_ratios_of_one(rows: int) -> None:
    largest = []
    for seed in range(10):
        dag = simulate.erdos_renyi(15, 30, seed=seed)
        ratios = spread_ratios(wide(simulate.linear(dag, rows, seed=seed).data))
        largest.append(ratios.max())
        assert np.quantile(ratios, 0.9) < 1.05
    assert np.median(largest) < 1.2


def test_within_groups_of_equal_means_ratios_are_the_same() -> None:
    rng = np.random.default_rng(3)
    z = rng.normal(size=9000)
    table: dict[str, Any] = {"z": z, "site": rng.choice(list("stu"), 9000)}
    table |= {k: np.where(1.2 * z + rng.normal(size=9000) > 2, "y", "n") for k in ("a", "b")}
    table["c"] = z + (0.3 + 0.3 * abs(z)) * rng.normal(size=9000)
    source = within_groups(table, "site")
    within = spread_ratios(ist.WithFeatures(source, ist.Chebyshev(6, 3.0)).moments())
    del table["site"]
    assert within == pytest.approx(spread_ratios(wide(table)), rel=0.03)
