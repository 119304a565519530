"""Moments within groups: sums about the mean of each group."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import DataError, SchemaError
from isthmus.statistics import Moments, Schema
from isthmus.statistics.within import moments_within, sampled_rows, wide_columns

RNG = np.random.default_rng(0)
SIZES = (1, 2, 2, 3, 7, 40)
GROUPS = RNG.permutation(np.repeat(np.arange(len(SIZES)), SIZES))
ROWS = len(GROUPS)
SCHEMA = Schema(
    (
        *Schema.continuous(["x", "y"]).variables,
        *Schema.discrete({"c": ("u", "v", "w")}).variables,
    )
)
COLUMNS = [
    RNG.normal(size=ROWS) + 5.0 * GROUPS,
    RNG.normal(size=ROWS) - 1e6 * GROUPS,
    RNG.integers(0, 3, ROWS),
]


def by_hand(wide: np.ndarray) -> np.ndarray:
    scatter = np.zeros((len(wide), len(wide)))
    for group in np.unique(GROUPS):
        own = wide[:, group == GROUPS]
        own = own - own.mean(axis=1, keepdims=True)
        scatter += own @ own.T
    return scatter


def test_products_are_those_about_the_means_of_groups() -> None:
    moments = moments_within(SCHEMA, COLUMNS, GROUPS)
    wide = wide_columns(SCHEMA, COLUMNS)
    np.testing.assert_allclose(moments.scatter(), by_hand(wide), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(moments.mean(), wide.mean(axis=1), rtol=1e-12)
    assert (moments.n, moments.groups) == (ROWS - len(SIZES) + 1, len(SIZES))
    assert moments.number_of_rows == ROWS


def test_basis_functions_are_functions_of_the_values() -> None:
    schema = Schema.continuous(["x", "y"])
    pooled = Moments.from_columns(schema, COLUMNS[:2])
    wide = ist.Expansion.standardised(ist.Chebyshev(3, 3.0), pooled).widen(schema)
    moments = moments_within(wide, COLUMNS[:2], GROUPS)
    expected = by_hand(wide_columns(wide, COLUMNS[:2]))
    np.testing.assert_allclose(moments.scatter(), expected, rtol=1e-9, atol=1e-9)


def test_order_of_rows_and_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = moments_within(SCHEMA, COLUMNS, GROUPS)
    monkeypatch.setattr("isthmus.statistics.within._BLOCK", 12)
    order = RNG.permutation(ROWS)
    parts = moments_within(SCHEMA, [x[order] for x in COLUMNS], GROUPS[order])
    np.testing.assert_allclose(parts.scatter(), whole.scatter(), rtol=1e-6, atol=1e-6)


def test_constants_within_groups_are_exactly_constant() -> None:
    columns = [COLUMNS[0], 0.1 + 1e9 * GROUPS, np.where(GROUPS % 2, 1, 0)]
    moments = moments_within(SCHEMA, columns, GROUPS)
    assert moments.constants() == ("y", "c")
    assert not moments.scatter()[1:].any()


def test_groups_of_one_row_carry_nothing() -> None:
    kept = np.isin(GROUPS, np.flatnonzero(np.array(SIZES) > 1))
    numbers = np.unique(GROUPS[kept], return_inverse=True)[1]
    without = moments_within(SCHEMA, [x[kept] for x in COLUMNS], numbers)
    moments = moments_within(SCHEMA, COLUMNS, GROUPS)
    assert moments.n == without.n
    np.testing.assert_allclose(moments.scatter(), without.scatter(), rtol=1e-9, atol=1e-12)
    with pytest.raises(DataError, match="one row each"):
        moments_within(SCHEMA, COLUMNS, np.arange(ROWS))


def test_sums_of_two_tables(tmp_path: Path) -> None:
    first, second = GROUPS < 4, GROUPS >= 4
    parts = [
        moments_within(
            SCHEMA, [x[own] for x in COLUMNS], np.unique(GROUPS[own], return_inverse=True)[1]
        )
        for own in (first, second)
    ]
    whole, added = moments_within(SCHEMA, COLUMNS, GROUPS), parts[0] + parts[1]
    assert (added.n, added.groups) == (whole.n, whole.groups)
    np.testing.assert_allclose(added.scatter(), whole.scatter(), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(added.mean(), whole.mean(), rtol=1e-12)
    with pytest.raises(SchemaError, match="groups"):
        _ = whole + Moments.from_columns(SCHEMA, COLUMNS)
    whole.save(tmp_path / "moments.npz")
    assert Moments.load(tmp_path / "moments.npz") == whole
    assert whole.select(["c", "x"]).groups == len(SIZES)


def test_duplicates_up_to_names_of_levels() -> None:
    levels = {"a": (0, 1, 2), "b": (0, 1, 2), "c": (0, 1, 2)}
    codes = COLUMNS[2]
    columns = [codes, (codes + 1) % 3, RNG.integers(0, 3, ROWS)]
    assert moments_within(Schema.discrete(levels), columns, GROUPS).duplicates() == (("a", "b"),)


def test_rows_of_a_bootstrap_have_the_scatter_as_their_mean() -> None:
    moments = moments_within(SCHEMA, COLUMNS, GROUPS)
    rows, shares = sampled_rows(SCHEMA, COLUMNS, GROUPS)
    expected = (moments.n - 1) * (rows * shares[:, None]).T @ rows
    np.testing.assert_allclose(expected, moments.scatter(), rtol=1e-9, atol=1e-9)


def test_scores_are_those_of_fewer_rows_with_the_same_scatter() -> None:
    """The products of r rows in K groups are Wishart as those of r - K + 1 rows are."""
    dag = ist.DAG(["x", "y"], [("x", "y")])
    numbers = moments_within(Schema.continuous(["x", "y"]), COLUMNS[:2], GROUPS)
    s, degrees = numbers.scatter(), ROWS - len(SIZES)
    slope = s[0, 1] / s[0, 0]
    error = np.sqrt((s[1, 1] - slope * s[0, 1]) / (degrees - 1) / s[0, 0])
    effect = ist.effect(numbers, dag, "x", "y")
    assert effect.value == pytest.approx(slope)
    assert effect.standard_error == pytest.approx(error)
    n = degrees + 1
    residual = s[1, 1] - slope * s[0, 1]
    likelihood = -0.5 * n * (2 * np.log(2 * np.pi) + 2 + np.log(s[0, 0] / n * residual / n))
    assert ist.score(numbers, dag, ist.GaussianBIC()) == pytest.approx(
        likelihood - 0.5 * np.log(n) * 5
    )
