"""The test of independent noise: against rows, calibration, power, and what it refuses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

import isthmus as ist
from isthmus.arrays import Floats
from isthmus.errors import MismatchError
from isthmus.objectives.smooth import NoiseTest


def bound(table: Mapping[str, Floats], test: ist.IndependentNoise | None = None) -> NoiseTest:
    test = ist.IndependentNoise() if test is None else test
    return test.bind(ist.WithFeatures(table, test.basis).moments())


def noise_of(x: Floats, parents: Floats) -> Floats:
    return x - np.linalg.lstsq(parents.T, x)[0] @ parents


def from_rows(x: Floats, parents: Floats) -> float:
    """Compute the test of x = b parents + noise from rows."""
    from scipy.stats import chi2

    z = (parents - parents.mean(axis=1, keepdims=True)) / parents.std(axis=1, keepdims=True)
    r = noise_of((x - x.mean()) / x.std(), z)
    variance = np.mean(r**2)
    squares, cubes = z**2 - 1.0, z**3 - np.mean(z**3, axis=1, keepdims=True)
    powers = np.concatenate([squares, cubes])
    curves = powers - np.linalg.lstsq(z.T, powers.T)[0].T @ z
    functions = np.concatenate([z, squares])
    conditions = np.concatenate([curves @ r, functions @ (r**2 - variance)]) / len(x)
    both = np.mean(r**3) * curves @ functions.T
    spread = np.block(
        [
            [variance * curves @ curves.T, both],
            [both.T, (np.mean(r**4) - variance**2) * functions @ functions.T],
        ]
    ) / len(x)
    statistic = len(x) * conditions @ np.linalg.solve(spread, conditions)
    return float(chi2.sf(statistic, 4 * len(z)))


def test_p_value_is_that_of_rows() -> None:
    rng = np.random.default_rng(1)
    y = rng.exponential(size=(3, 400))
    y[1] += y[0]
    x = 0.6 * y[0] - 0.3 * y[1] + rng.laplace(size=400)
    test = bound({"x": 5.0 - 300.0 * x, "a": 1e6 + 0.01 * y[0], "b": y[1], "c": -y[2]})
    assert test.fit(0, [1]).p_value == pytest.approx(from_rows(x, y[:1]), rel=1e-6)
    assert test.fit(0, [1, 2]).p_value == pytest.approx(from_rows(x, y[:2]), rel=1e-6)
    assert test.fit(0, [1, 2, 3]).p_value == pytest.approx(from_rows(x, y), rel=1e-6)
    everything = np.stack([x, y[1], y[2]])
    reverse = np.log(from_rows(y[0], everything))
    assert np.log(test.fit(1, [0, 2, 3]).p_value) == pytest.approx(reverse, rel=1e-6)
    assert test.fit(0, []).p_value == 1.0


def test_dependence_is_that_of_cosines_of_ranks() -> None:
    from scipy.stats import rankdata

    rng = np.random.default_rng(3)
    a, b, noise = rng.exponential(size=(3, 300))
    table = {"x": 1e3 + 2.0 * a - b + noise, "a": a, "b": 5.0 * b}
    test = bound(table)
    assert test.fit(0, [1, 2]).dependence == ()  # from sums there are no ranks
    found = test.with_rows([*table.values()]).fit(0, [1, 2])
    assert found[:3] == bound(table).fit(0, [1, 2])[:3]
    design = np.column_stack([np.ones(300), a, b])
    rest = table["x"] - design @ np.linalg.lstsq(design, table["x"])[0]

    def waves(v: Floats) -> Floats:
        ranks = (rankdata(v) - 0.5) / 300
        return np.array([np.sqrt(2.0) * np.cos(k * np.pi * ranks) for k in range(1, 7)])

    for parent, dependence in zip((a, b), found.dependence, strict=True):
        expected = 300 * np.sum(np.square(waves(parent) @ waves(rest).T / 300))
        assert dependence == pytest.approx(expected, rel=1e-6)
        assert 15.0 < dependence < 70.0  # chi-squared with 36 degrees of freedom
    assert test.fit(1, [0]).dependence[0] > 100.0


def test_noise_score_adds_the_entropy_of_the_noise() -> None:
    rng = np.random.default_rng(2)
    a, b, unrelated = rng.exponential(size=(3, 500))
    c = a - 2.0 * b + rng.uniform(size=500)
    test = bound({"a": 3.0 * a, "b": b, "c": c, "d": unrelated})
    plain, score = test.local_score(), test.noise_score()
    assert score is not None

    def gain(x: Floats, *parents: Floats) -> float:
        r = noise_of(x - x.mean(), np.stack([p - p.mean() for p in parents]))
        r = r / r.std()
        entropy = np.log1p(np.mean(r**3) ** 2 / 3.0 + (np.mean(r**4) - 3.0) ** 2 / 12.0) / 4.0
        return float(max(0.0, 500 * entropy - np.log(500)))

    assert gain(c, a, b) > 0.0
    for child, parents, expected in (
        (2, (0, 1), gain(c, a, b)),
        (0, (1, 2), gain(a, b, c)),
        (2, (0, 1, 3), gain(c, a, b)),  # the score would remove a parent that is not related
    ):
        added = score.local(child, parents) - plain.local(child, parents)
        assert added == pytest.approx(expected, rel=1e-6)


def test_without_products_there_is_no_test_of_variance() -> None:
    from scipy.stats import chi2

    rng = np.random.default_rng(3)
    y = rng.uniform(size=(3, 300))
    x = y[0] + y[1] + rng.uniform(size=300)
    table = {"x": x, "a": y[0], "b": y[1], "c": y[2]}
    every = ist.WithFeatures(table, ist.Products()).expansion
    some = ist.Expansion.from_dict(replace(every, pairs=(("a", "x"), ("c", "a"))).to_dict())
    test = ist.IndependentNoise().bind(ist.WithFeatures(table, some).moments())
    assert test.noise_score() is None
    assert test.fit(0, [1]).p_value == pytest.approx(from_rows(x, y[:1]), rel=1e-6)
    assert test.fit(3, [1]).p_value == pytest.approx(from_rows(y[2], y[:1]), rel=1e-6)
    line = np.column_stack([np.ones(300), y[0], y[1]])
    before, after = (
        np.linalg.lstsq(columns, x)[1].item()
        for columns in (line, np.column_stack([line, y[:2].T ** 2, y[:2].T ** 3]))
    )
    expected = chi2.sf(300 * (1 - after / before), 4)
    assert test.fit(0, [1, 2]).p_value == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("parents", "noise"), [(1, "laplace"), (1, "normal"), (2, "exponential")])
def test_p_values_are_uniform_in_the_causal_direction(parents: int, noise: str) -> None:
    from scipy.stats import kstest

    rng = np.random.default_rng(3)
    found = []
    for _ in range(100):
        columns = getattr(rng, noise)(size=(parents + 1, 1000))
        columns[0] += np.linspace(1.0, 2.0, parents) @ columns[1:]
        table = {str(i): column for i, column in enumerate(columns)}
        found.append(bound(table).fit(0, [*range(1, parents + 1)]).p_value)
    assert kstest(found, "uniform").pvalue > 0.005
    assert np.mean(np.array(found) < 0.01) <= 0.05


def test_equal_noise_and_a_slope_of_one_is_told_by_the_variance() -> None:
    """The regression of either variable on the other is a line there."""
    rng = np.random.default_rng(4)
    y, noise = rng.uniform(size=(2, 1000))
    test = bound({"x": y + noise, "y": y})
    assert test.fit(0, [1]).p_value > 0.01
    assert test.fit(1, [0]).p_value < 1e-6


def test_degenerate_columns_tell_nothing() -> None:
    rng = np.random.default_rng(5)
    x = rng.uniform(size=200)
    test = bound({"x": x, "copy": 2 * x, "constant": np.ones(200), "flag": np.sign(x - 0.3)})
    assert test.fit(0, [1]).p_value == test.fit(0, [2]).p_value == test.fit(2, [0]).p_value == 1.0
    assert 0 <= test.fit(0, [3]).p_value <= 1


def test_values_beyond_the_radius_are_not_tested() -> None:
    rng = np.random.default_rng(6)
    y = rng.uniform(size=2000)
    x = y + rng.uniform(size=2000)
    x[0] = 1e4
    test = bound({"x": x, "y": y})
    assert test.fit(1, [0]).p_value == 1.0
    (note,) = test.notes(ist.DAG(["x", "y"], [("y", "x")]))
    assert "['x']" in note
    assert not test.notes(ist.DAG(["x", "y"], []))


def test_moments_without_powers_are_refused() -> None:
    table = {"x": np.arange(9.0), "y": np.arange(9.0) ** 2}
    with pytest.raises(MismatchError, match="powers and products"):
        ist.IndependentNoise().bind(ist.Frame(table).moments())
    with pytest.raises(MismatchError, match="powers and products"):
        ist.IndependentNoise().bind(ist.WithFeatures(table, ist.Chebyshev(2)).moments())
