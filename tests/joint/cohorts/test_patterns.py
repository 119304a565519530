"""Rare patterns of missing values are merged until every pattern keeps the rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.joint import Policy
from isthmus.joint.cohorts import patterns
from isthmus.joint.cohorts.checks import broken_rules
from isthmus.joint.cohorts.patterns import hide_rare_patterns, pattern_candidates
from isthmus.types import Floats


def policy(**changes: Any) -> Policy:
    rules: dict[str, Any] = {
        "minimum_cohort": 10,
        "minimum_cell": 3,
        "minimum_organisations": 3,
        "variables": ("*",),
        "protocols": ("secure sums",),
        "requests": ("expectation",),
        "rounds_per_study": 10,
        "rounds_per_year": 10,
        "queries_per_year": 10,
        "stop_file": Path("/nonexistent/STOP"),
    }
    return Policy(**(rules | changes))


def names(values: Floats) -> tuple[str, ...]:
    return tuple(f"x{i}" for i in range(values.shape[1]))


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from([0.05, 0.3, 0.8]), st.booleans())
def test_every_pattern_keeps_the_rules(seed: int, share: float, several: bool) -> None:
    rng = np.random.default_rng(seed)
    values = rng.standard_t(2, size=(120, 4))
    values[rng.random(values.shape) < share] = np.nan
    persons = rng.integers(0, 60, 120) if several else None
    hidden = hide_rare_patterns(names(values), values, persons, policy(), {})
    for candidates in pattern_candidates(names(values), hidden, persons, {}):
        assert broken_rules(candidates, policy()) == []
    shown = ~np.isnan(hidden)
    np.testing.assert_array_equal(hidden[shown], values[shown])  # no value is new or changed


def test_frequent_patterns_stay_and_rare_ones_join_the_nearest() -> None:
    values = np.random.default_rng(0).normal(size=(203, 3))
    values[100:200, 2] = np.nan
    values[200:203, 1:] = np.nan
    hidden = hide_rare_patterns(names(values), values, None, policy(), {})
    np.testing.assert_array_equal(hidden[:200], values[:200])
    assert np.isnan(hidden[200:]).all()
    values[200:203, 1] = 0.5
    hidden = hide_rare_patterns(names(values), values, None, policy(), {})
    np.testing.assert_array_equal(hidden, values)
    values[200:203] = [[1.0, 2.0, 3.0]]
    values[:100, 0] = np.nan  # the three rows are the only complete ones, and lose least by x1
    hidden = hide_rare_patterns(names(values), values, None, policy(), {})
    assert np.isnan(hidden[200:]).sum(axis=1).tolist() == [1, 1, 1]


def test_many_patterns_are_merged_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(1000, 8))
    values[rng.random(values.shape) < 0.2] = np.nan
    slowly = hide_rare_patterns(names(values), values, None, policy(), {})
    monkeypatch.setattr(patterns, "FREQUENT", 20)
    hidden = hide_rare_patterns(names(values), values, None, policy(), {})
    for candidates in pattern_candidates(names(values), hidden, None, {}):
        assert broken_rules(candidates, policy()) == []
    shown = ~np.isnan(hidden)
    np.testing.assert_array_equal(hidden[shown], values[shown])
    assert 0.8 * (~np.isnan(slowly)).sum() < shown.sum() < (~np.isnan(values)).sum()


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.permutations(range(4)))
def test_the_order_of_columns_does_not_matter(seed: int, order: list[int]) -> None:
    """Two studies that hide other values of the same table would differ by few persons."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(150, 4))
    values[rng.random(values.shape) < 0.2] = np.nan
    hidden = hide_rare_patterns(names(values), values, None, policy(), {})
    moved = tuple(names(values)[i] for i in order)
    again = hide_rare_patterns(moved, values[:, order], None, policy(), {})
    np.testing.assert_array_equal(again, hidden[:, order])
