"""Sampling errors of answers, against closed forms."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus import io
from isthmus.networks import DiscreteNetwork

CLOSE = 0.17
"""199 draws have a standard deviation with a relative error of 5%; this is more than three."""


def levels(*counts: int) -> Any:
    return np.repeat(["a", "b", "c"][: len(counts)], counts)


def test_the_share_of_one_variable_has_the_posterior_with_one_more_row() -> None:
    from scipy import stats

    network = ist.fit({"x": levels(6, 14)}, ist.DAG(["x"], []), pseudo_count=0)
    answer: Any = network.query("x")
    exact = stats.beta(6.5, 14.5)
    assert answer.sampling_error == pytest.approx(exact.std(), rel=CLOSE)
    low, high = answer.confidence_interval()
    # Quantiles of 199 draws at 2.5% are off by up to three standard errors of 1.1%.
    assert 0.002 < exact.cdf(low[0]) < 0.06
    assert 0.94 < exact.cdf(high[0]) < 0.998
    narrow = answer.confidence_interval(0.5)
    assert low[0] < narrow[0][0] < narrow[1][0] < high[0]


def chain(rng: np.random.Generator, n: int) -> dict[str, Any]:
    x = rng.random(n) < 0.4
    y = rng.random(n) < np.where(x, 0.8, 0.3)
    return {"x": np.where(x, "yes", "no"), "y": np.where(y, "yes", "no")}


def test_an_observation_propagates_by_the_delta_method() -> None:
    table = chain(np.random.default_rng(1), 2000)
    network: Any = ist.fit(table, ist.DAG(["x", "y"], [("x", "y")]))
    p, (q0, q1) = network.tables["x"][1], network.tables["y"][:, 1]
    n0, n1 = network.counts["x"]
    total = p * q1 + (1 - p) * q0
    slopes = np.array([q1 * q0, p * (1 - p) * q0, -p * (1 - p) * q1]) / total**2
    variances = p * (1 - p) / 2000, q1 * (1 - q1) / n1, q0 * (1 - q0) / n0
    error = np.sqrt(slopes**2 @ variances)
    answer = network.query("x", evidence={"y": "yes"})
    assert answer["yes"] == pytest.approx(p * q1 / total)
    assert answer.sampling_error[1] == pytest.approx(error, rel=CLOSE)
    assert "(sampling error" in str(answer)
    assert "graph taken as given" in str(answer)
    assert "simulation" not in str(answer)


def test_a_joint_answer_and_its_marginal_have_the_error_of_the_single_question() -> None:
    table = chain(np.random.default_rng(1), 300)
    network: Any = ist.fit(table, ist.DAG(["x", "y"], [("x", "y")]))
    joint, single = network.query(["x", "y"]), network.query("y")
    assert joint.sampling_error.shape == (2, 2)
    np.testing.assert_allclose(joint.marginal("y").sampling_error, single.sampling_error)
    again = pickle.loads(pickle.dumps(single))  # noqa: S301 - written here
    np.testing.assert_array_equal(again.sampling_error, single.sampling_error)


def test_a_range_has_the_union_of_the_intervals_of_its_answers() -> None:
    table = chain(np.random.default_rng(1), 300)
    network: Any = ist.learn(table).fit()
    answer = network.query("y", do={"x": "yes"})
    one, other = (each.confidence_interval() for each in answer.answers)
    low, high = answer.confidence_interval()
    np.testing.assert_array_equal(low, np.minimum(one[0], other[0]))
    np.testing.assert_array_equal(high, np.maximum(one[1], other[1]))
    assert (low < answer.lower).all()
    assert "with sampling error" in str(answer)
    # If x has no effect on y, the answer is the share of y, in the drawn networks as well.
    share = table["y"].tolist().count("yes") / 300
    errors = [each.sampling_error[1] for each in answer.answers]
    given_x = (table["y"][table["x"] == "yes"] == "yes").mean()
    expected = [np.sqrt(given_x * (1 - given_x) / (table["x"] == "yes").sum())]
    expected.append(np.sqrt(share * (1 - share) / 300))
    assert sorted(errors) == pytest.approx(sorted(expected), rel=CLOSE)


def test_a_linear_prediction_has_the_standard_error_of_the_regression_line() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(3, 2, 80)
    y = 1 + 0.5 * x + rng.normal(size=80)
    network: Any = ist.fit({"x": x, "y": y}, ist.DAG(["x", "y"], [("x", "y")]))
    answer = network.query("y", evidence={"x": 6.0})
    design, point = np.column_stack([np.ones(80), x]), np.array([1.0, 6.0])
    inverse = np.linalg.inv(design.T @ design)
    residuals = y - design @ inverse @ design.T @ y
    residuals /= 1 - np.einsum("ij,jk,ik->i", design, inverse, design)  # HC3
    covariance = inverse @ (design.T * residuals**2) @ design @ inverse
    error = np.sqrt(point @ covariance @ point * 78 / 76)  # the variance of t with 78 degrees
    assert answer.sampling_error[0] == pytest.approx(error, rel=CLOSE)
    assert "(sampling error of the mean" in str(answer)
    again = pickle.loads(pickle.dumps(answer))  # noqa: S301 - written here
    np.testing.assert_array_equal(again.sampling_error, answer.sampling_error)
    mean = network.query("y")
    assert mean.sampling_error[0] == pytest.approx(y.std() / np.sqrt(78), rel=CLOSE)
    loaded: Any = io.from_json(io.to_json(network))
    assert loaded.query("y").sampling_error[0] == mean.sampling_error[0]
    reversed_: Any = ist.learn({"x": x, "y": y}).fit().query("y", do={"x": 6.0})
    low, high = reversed_.confidence_interval()
    assert low[0] < reversed_.lower[0] < reversed_.upper[0] < high[0]


def test_normal_scores_have_an_error_of_the_median_in_units_of_the_column() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=400)
    table = {"x": x, "y": np.exp(x + rng.normal(size=400))}
    network: Any = ist.learn(table, transform=ist.NormalScores()).fit()
    answer = network.query("y")
    low, high = answer.confidence_interval()
    assert low[0] < answer.median[0] < high[0]
    # The median of a lognormal variable is estimated by that of its logarithm.
    expected = answer.median[0] * np.log(table["y"]).std() / 20
    assert answer.sampling_error[0] == pytest.approx(expected, rel=0.3)
    assert "(sampling error" in str(answer)


def test_the_mean_of_a_group_and_a_logistic_regression() -> None:
    rng = np.random.default_rng(4)
    group = rng.choice(["a", "b"], 600)
    x = np.where(group == "a", 0.0, 2.0) + rng.normal(size=600)
    y = np.where(rng.random(600) < 1 / (1 + np.exp(1 - x)), "yes", "no")
    dag = ist.DAG(["group", "x", "y"], [("group", "x"), ("x", "y")])
    network: Any = ist.fit({"group": group, "x": x, "y": y}, dag, pseudo_count=0)
    inside = x[group == "b"]
    answer = network.query("x", evidence={"group": "b"})
    assert answer.sampling_error[0] == pytest.approx(inside.std() / len(inside) ** 0.5, rel=CLOSE)

    features = np.stack([np.ones(600), x])
    p = network.predict_probabilities({"x": x}, "y")[:, 1]
    covariance = np.linalg.inv((features * p * (1 - p)) @ features.T)
    at = np.array([1.0, 1.5])
    sure = network.query("y", evidence={"x": 1.5})
    expected = sure["yes"] * sure["no"] * np.sqrt(at @ covariance @ at)
    assert sure.sampling_error[1] == pytest.approx(expected, rel=CLOSE)


def test_simulation_error_and_sampling_error_stand_beside_each_other() -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(size=400)
    y = np.where(rng.random(400) < 1 / (1 + np.exp(-x)), "yes", "no")
    network: Any = ist.fit({"x": x, "y": y}, ist.DAG(["x", "y"], [("x", "y")]))
    answer = network.query("y", simulations=20_000)
    share = (y == "yes").mean()
    # The regression on x tells nothing about the share that the rows themselves do not.
    assert answer.sampling_error[1] == pytest.approx(np.sqrt(share * (1 - share) / 400), rel=0.2)
    assert answer.error[1] == pytest.approx(np.sqrt(share * (1 - share) / 20_000), rel=0.1)
    low, high = answer.confidence_interval()
    assert low[1] < answer["yes"] < high[1]
    assert "(simulation error 0.0035, sampling error 0.02" in str(answer)
    assert list(ist.to_frame(answer, like={}))[2:] == ["simulation_error", "sampling_error"]


def test_missing_values_leave_the_rows_that_are_complete_for_a_node() -> None:
    rng = np.random.default_rng(6)
    group = rng.choice(["a", "b"], 200)
    x = np.where(group == "a", 0.0, 1.0) + rng.normal(size=200)
    absent = rng.random(200) < 0.5
    table = {"group": group, "x": np.where(absent, np.nan, x)}
    dag = ist.DAG(["group", "x"], [("group", "x")])
    network: Any = ist.fit(table, dag, missing=ist.ExpectationMaximisation())
    assert network.conditionals["group"].counts.sum() == 200
    counts = [((group == level) & ~absent).sum() for level in ("a", "b")]
    np.testing.assert_array_equal(network.conditionals["x"].counts, counts)
    answer = network.query("x", evidence={"group": "a"})
    expected = answer.deviation[0] / np.sqrt(counts[0])
    assert answer.sampling_error[0] == pytest.approx(expected, rel=CLOSE)


def test_parameters_that_were_not_estimated_have_no_sampling_error() -> None:
    network = DiscreteNetwork(ist.DAG(["x"], []), {"x": ("a", "b")}, {"x": np.array([0.2, 0.8])})
    answer = network.query("x")
    assert answer.sampling_error is None
    assert answer.confidence_interval() is None
    assert str(answer) == "x\na: 0.2000\nb: 0.8000"
