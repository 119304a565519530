"""Tests of independence: by hand, and calibrated under independence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import isthmus as ist
from isthmus.errors import ArgumentError
from isthmus.objectives import IndependenceTest
from isthmus.types import Floats


def moments(table: dict[str, Any]) -> ist.Moments:
    summary = ist.summarise(table)
    assert isinstance(summary, ist.Moments)
    return summary


def of_numbers(table: dict[str, Floats]) -> IndependenceTest:
    return ist.FisherZ().bind(moments(table))


def of_codes(codes: np.ndarray, levels: list[int]) -> IndependenceTest:
    names = [f"v{i}" for i in range(len(levels))]
    schema = ist.Schema.discrete(dict(zip(names, (range(k) for k in levels), strict=True)))
    return ist.GSquared().bind(ist.Counts.from_codes(schema, codes.T))


def test_fisher_z_by_regression() -> None:
    rng = np.random.default_rng(1)
    z = rng.normal(size=(80, 2))
    x, y = z @ [1.0, -1.0] + rng.normal(size=80), z @ [0.5, 0.5] + rng.normal(size=80)
    test = of_numbers({"x": x, "y": y, "z0": z[:, 0], "z1": z[:, 1]})
    design = np.column_stack([np.ones(80), z])
    rest = [v - design @ np.linalg.lstsq(design, v, rcond=None)[0] for v in (x, y)]
    r = np.corrcoef(*rest)[0, 1]
    expected = 2 * stats.norm.sf(abs(np.arctanh(r)) * np.sqrt(80 - 2 - 3))
    assert test.p_values(0, [2, 3], [1])[0] == pytest.approx(expected, rel=1e-9)
    assert test.p_values(1, [2, 3], [0])[0] == pytest.approx(expected, rel=1e-9)


def test_g_squared_by_strata() -> None:
    rng = np.random.default_rng(2)
    codes = rng.integers(0, [3, 2, 4], size=(60, 3))
    codes[codes[:, 2] == 1, 0] = np.minimum(codes[codes[:, 2] == 1, 0], 1)  # a level is missing
    codes[codes[:, 2] == 2, 1] = 0  # one variable does not vary: no information
    test = of_codes(codes, [3, 2, 4])
    g, freedom = 0.0, 0
    for stratum in range(4):
        table = np.zeros((3, 2))
        np.add.at(table, tuple(codes[codes[:, 2] == stratum, :2].T), 1)
        table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
        if min(table.shape) > 1:
            result = stats.chi2_contingency(table, correction=False, lambda_="log-likelihood")
            g, freedom = g + result.statistic, freedom + result.dof
    assert freedom == 5
    expected = stats.chi2.sf(g, freedom)
    assert test.p_values(0, [2], [1])[0] == pytest.approx(expected, rel=1e-9)
    assert test.p_values(1, [2], [0])[0] == pytest.approx(expected, rel=1e-9)


def test_a_constant_is_independent_of_everything() -> None:
    codes = np.column_stack([np.zeros(50, int), np.arange(50) % 2, np.arange(50) % 2])
    test = of_codes(codes, [2, 2, 2])
    assert test.p_values(1, [], [0, 2])[0] == 1.0
    assert test.p_values(1, [], [0, 2])[1] < 1e-9
    assert test.p_values(1, [2], [0])[0] == 1.0


def test_mixed_by_wilks_lambda() -> None:
    rng = np.random.default_rng(3)
    n = 200
    group, z = rng.integers(0, 3, n), rng.normal(size=n)
    height = 0.3 * group + z + rng.normal(size=n)
    table = {"group": [f"g{k}" for k in group], "height": height, "z": z}
    test = ist.MixedLikelihoodRatio().bind(moments(table))
    columns = np.column_stack([group == 1, group == 2, height]).astype(float)
    design = np.column_stack([np.ones(n), z])
    rest = columns - design @ np.linalg.lstsq(design, columns, rcond=None)[0]
    c = rest.T @ rest
    wilks = np.linalg.det(c) / (np.linalg.det(c[:2, :2]) * c[2, 2])
    expected = stats.chi2.sf(-(n - 1 - 1 - 0.5 * (2 + 1 + 1)) * np.log(wilks), 2)
    assert test.p_values(0, [2], [1])[0] == pytest.approx(expected, rel=1e-6)
    assert test.p_values(1, [2], [0])[0] == pytest.approx(expected, rel=1e-6)


def draws(kind: str, seed: int, n: int) -> float:
    """Return the p-value of x and y, which are independent given z."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    x, y = z + rng.normal(size=n), -z + rng.normal(size=n)
    if kind == "numbers":
        return float(of_numbers({"x": x, "y": y, "z": z}).p_values(0, [2], [1])[0])
    if kind == "codes":
        stratum = rng.integers(0, 3, n)
        u, v = rng.random(n), rng.random(n)
        codes = [1 * (u > 0.2 + 0.2 * stratum) + (u > 0.8), (v > 0.3 + 0.1 * stratum).astype(int)]
        test = of_codes(np.column_stack([*codes, stratum]), [3, 2, 3])
        return float(test.p_values(0, [2], [1])[0])
    table = {"x": x, "y": rng.choice(["a", "b", "c"], n), "z": z}
    return float(ist.MixedLikelihoodRatio().bind(moments(table)).p_values(0, [2], [1])[0])


@pytest.mark.parametrize(("kind", "n"), [("numbers", 30), ("codes", 400), ("mixed", 40)])
def test_p_values_are_uniform_under_independence(kind: str, n: int) -> None:
    p_values = [draws(kind, seed, n) for seed in range(400)]
    assert stats.kstest(p_values, "uniform").pvalue > 0.01
    assert np.mean(np.array(p_values) < 0.05) == pytest.approx(0.05, abs=0.025)


def test_degrees_of_freedom_of_sparse_tables_are_calibrated() -> None:
    """Few rows for many cells: the nominal 36 degrees of freedom would hardly ever reject."""
    p_values = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        stratum = rng.integers(0, 9, 150)
        x = np.where(rng.random(150) < 0.5, stratum % 3, (stratum + 1) % 3)
        y = np.where(rng.random(150) < 0.5, stratum % 3, (stratum + 2) % 3)
        test = of_codes(np.column_stack([x, y, stratum]), [3, 3, 9])
        p_values.append(test.p_values(0, [2], [1])[0])
    assert 0.02 < np.mean(np.array(p_values) < 0.05) < 0.12


def test_options_are_checked() -> None:
    with pytest.raises(ArgumentError, match="score must be a Score"):
        ist.FisherZ(score=1)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="above 0 and below 1"):
        ist.PC(alpha=1.0)
