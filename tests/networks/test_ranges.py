"""Evidence that a number lies in a range: against truncated normal distributions and draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import truncnorm

import isthmus as ist
from isthmus.errors import ArgumentError, DataError
from isthmus.networks import GaussianNetwork

CHAIN = GaussianNetwork(
    ist.DAG(["a", "b", "c"], [("a", "b"), ("b", "c")]),
    {"a": 1.0, "b": 0.5, "c": -1.0},
    {"a": {}, "b": {"a": 0.8}, "c": {"b": -0.6}},
    {"a": 4.0, "b": 1.0, "c": 0.25},
)


@pytest.mark.parametrize("ends", [(1.5, 2.5), (None, 0.0), (9.0, None), (-30.0, -25.0)])
def test_one_range_is_a_truncated_normal(ends: tuple[float | None, float | None]) -> None:
    answer = CHAIN.query(["a", "b"], evidence={"a": slice(*ends)})
    low, high = (fill if e is None else e for e, fill in zip(ends, (-np.inf, np.inf), strict=True))
    theirs = truncnorm((low - 1.0) / 2.0, (high - 1.0) / 2.0, loc=1.0, scale=2.0)
    mean, variance = theirs.stats("mv")
    expected = [mean, 0.5 + 0.8 * mean]
    np.testing.assert_allclose(answer.mean, expected, rtol=1e-7)
    covariance = [[variance, 0.8 * variance], [0.8 * variance, 1.0 + 0.64 * variance]]
    np.testing.assert_allclose(answer.covariance, covariance, rtol=1e-5)
    np.testing.assert_allclose(answer.quantile(0.3)[0], theirs.ppf(0.3), atol=0.02)


def test_several_ranges_with_values_are_those_of_draws() -> None:
    given = {"a": slice(0.0, 2.0), "c": slice(None, -1.5)}
    answer = CHAIN.query("b", evidence=given)
    rows = CHAIN.sample(2_000_000, seed=1)
    kept = rows["b"][(rows["a"] > 0) & (rows["a"] < 2) & (rows["c"] < -1.5)]
    assert abs(answer.mean[0] - kept.mean()) < 5 * kept.std() / np.sqrt(len(kept)) + 0.01
    assert answer.deviation[0] == pytest.approx(kept.std(), rel=0.02)
    # A narrow range is a value, and a value among ranges is exact.
    narrow = CHAIN.query("b", evidence={"a": slice(1.0, 1.0 + 1e-9), "c": -2.0})
    exact = CHAIN.query("b", evidence={"a": 1.0, "c": -2.0})
    np.testing.assert_allclose(narrow.mean, exact.mean, atol=1e-8)
    np.testing.assert_allclose(narrow.covariance, exact.covariance, atol=1e-8)
    tail = CHAIN.query("b", evidence={"a": slice(13.0, None), "c": slice(-9.0, -8.0)})
    assert np.isfinite(tail.mean).all()


def test_a_range_of_everything_says_nothing() -> None:
    plain = CHAIN.query("c")
    answer = CHAIN.query("c", evidence={"b": slice(None, None)})
    np.testing.assert_allclose(answer.mean, plain.mean, atol=1e-9)
    np.testing.assert_allclose(answer.covariance, plain.covariance, rtol=1e-9)


def test_an_intervention_hides_what_its_target_tells() -> None:
    answer: Any = CHAIN.query("a", evidence={"c": slice(0.0, None)}, do={"b": 1.0})
    np.testing.assert_allclose(answer.mean, [1.0], atol=1e-9)


def fitted(n: int = 4000) -> tuple[Any, pd.DataFrame]:
    rng = np.random.default_rng(3)
    age = rng.normal(50.0, 10.0, n)
    ill = np.where(rng.random(n) < 1 / (1 + np.exp(5 - 0.1 * age)), "yes", "no")
    cost = 10.0 * (ill == "yes") + 0.1 * age + rng.normal(size=n)
    table = pd.DataFrame({"age": age, "ill": ill, "cost": cost})
    graph = ist.DAG(["age", "ill", "cost"], [("age", "ill"), ("age", "cost"), ("ill", "cost")])
    return ist.fit(table, graph), table


def test_mixed_networks_answer_as_their_rows_do() -> None:
    network, table = fitted()
    kept = table[(table["age"] > 60) & (table["cost"] < 12)]
    given = {"age": slice(60, None), "cost": slice(None, 12)}
    answer = network.query("ill", evidence=given)
    assert answer["yes"] == pytest.approx((kept["ill"] == "yes").mean(), abs=0.06)
    rows = network.sample(200_000, seed=1)
    same = (rows["age"] > 60) & (rows["cost"] < 12)
    assert answer["yes"] == pytest.approx((rows["ill"][same] == "yes").mean(), abs=0.01)
    ages = network.query("age", evidence={"ill": "yes", "age": slice(60, 70)})
    assert 60 < ages.mean[0] < 70


def test_dates_and_sampling_errors() -> None:
    rng = np.random.default_rng(4)
    day = np.datetime64("2024-01-01") + np.arange(400).astype("m8[D]")
    value = 0.01 * np.arange(400) + rng.normal(size=400)
    table = pd.DataFrame({"day": day, "value": value})
    network: Any = ist.fit(
        table, ist.DAG(["day", "value"], [("day", "value")]), kinds={"day": "days"}
    )
    ends = slice(np.datetime64("2024-06-01"), np.datetime64("2024-06-30"))
    answer = network.query("value", evidence={"day": ends})
    middle = network.query("value", evidence={"day": np.datetime64("2024-06-15")})
    assert answer.mean[0] == pytest.approx(middle.mean[0], abs=0.02)
    assert answer.sampling_error is not None


def test_refusals() -> None:
    for wrong in (slice(2, 1), slice(1, 1), slice(0, 1, 2), slice("a", 2), slice(np.nan, 1)):
        with pytest.raises((ArgumentError, DataError)):
            CHAIN.query("b", evidence={"a": wrong})
    network, _ = fitted(300)
    with pytest.raises(ist.errors.IsthmusError):
        network.query("age", evidence={"ill": slice(0, 1)})
    levels = ist.learn(ist.datasets.asia(rows=200, seed=1)).fit()
    with pytest.raises(ist.errors.IsthmusError):
        levels.query("lung", evidence={"smoke": slice(0, 1)})
