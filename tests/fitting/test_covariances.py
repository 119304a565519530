"""Sampling errors of answers for noise of any variance."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.fitting.families import sandwich
from isthmus.io.json_text import from_json, to_json
from isthmus.networks import GaussianNetwork


def table(rows: int = 800) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    x = rng.exponential(size=rows)
    return {"x": x, "y": x + (0.2 + x) * rng.normal(size=rows)}


def test_the_sandwich_is_that_of_its_definition() -> None:
    data = table(40)
    x = np.column_stack([np.ones(40), data["x"]])
    weights = np.linalg.lstsq(x, data["y"], rcond=None)[0]
    error = data["y"] - x @ weights
    inverse = np.linalg.inv(x.T @ x)
    leverage = np.einsum("ij,jk,ik->i", x, inverse, x)
    middle = (x * ((error / (1 - leverage)) ** 2)[:, None]).T @ x
    np.testing.assert_allclose(sandwich(x[:, 1:], error), inverse @ middle @ inverse, rtol=1e-9)


@pytest.mark.parametrize("mixed", [False, True])
def test_answers_are_uncertain_where_noise_grows(mixed: bool) -> None:
    data = table()
    if mixed:
        data["g"] = np.where(np.arange(800) % 2, "a", "b")
    network: Any = ist.fit(data, ist.DAG(list(data), [("x", "y")]))
    answer = network.query("y", do={"x": 4.0})
    x = np.column_stack([np.ones(800), data["x"]])
    error = data["y"] - x @ np.linalg.lstsq(x, data["y"], rcond=None)[0]
    at = np.array([1.0, 4.0])
    expected = np.sqrt(at @ sandwich(x[:, 1:], error) @ at)
    assert answer.sampling_error[0] == pytest.approx(expected, rel=0.15)
    copy: Any = from_json(to_json(network))
    assert copy.query("y", do={"x": 4.0}).sampling_error[0] == answer.sampling_error[0]
    if isinstance(network, GaussianNetwork):
        turned: Any = network.reorder(["y", "x"]).query("y", do={"x": 4.0})
        assert turned.sampling_error[0] == pytest.approx(expected, rel=0.15)
        equal: Any = replace(network, covariances=None).query("y", do={"x": 4.0})
        assert equal.sampling_error[0] < 0.6 * expected
