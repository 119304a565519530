"""Answers outside the data, and rows within it."""

import warnings
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import DataWarning
from isthmus.io.json_text import from_json, to_json
from isthmus.networks.rounding import rounded_network
from isthmus.networks.support import Support

N = 1000


def table(mixed: bool) -> dict[str, Any]:
    rng = np.random.default_rng(2)
    x = rng.uniform(0, 1, N)
    data = {"x": x, "y": 2 * x + 0.1 * rng.normal(size=N), "hours": rng.poisson(3.0, N)}
    return data | ({"z": np.where(x < 0.5, "lo", "hi")} if mixed else {})


def fitted(mixed: bool) -> Any:
    data = table(mixed)
    edges = [("x", "y"), *([("z", "x"), ("z", "y")] if mixed else [])]
    return ist.fit(data, ist.DAG(list(data), edges))


@pytest.mark.parametrize("mixed", [False, True])
def test_answers_and_predictions_outside_the_data_say_so(mixed: bool) -> None:
    network = fitted(mixed)
    for given in ({"evidence": {"x": 50.0}}, {"do": {"x": 50.0}}):
        note = network.query("y", **given).note
        assert "x = 50" in note
        assert "0 to 1" in note
    assert network.query("y", evidence={"x": 0.7}).note == ""
    copy: Any = from_json(to_json(network))
    assert "x = 50" in copy.query("y", evidence={"x": 50.0}).note
    with pytest.warns(DataWarning, match="1 row of 2, first in row 1, x"):
        network.predict({"x": [0.5, 50.0]}, "y")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        network.predict({"x": [0.5, 1.05, np.nan]}, "y")


def test_combinations_that_never_occur_together() -> None:
    network = fitted(mixed=True)
    note = network.query("y", evidence={"z": "lo", "x": 0.9}).note
    assert "x = 0.9 with z = lo (data: 0 to 0.5)" in note
    assert network.query("y", evidence={"z": "hi", "x": 0.9}).note == ""
    with pytest.warns(DataWarning, match="1 row of 2"):
        network.predict({"x": [0.9, 0.9], "z": ["lo", "hi"]}, "y")


@pytest.mark.parametrize("mixed", [False, True])
def test_rows_stay_in_range_and_type(mixed: bool) -> None:
    network, data = fitted(mixed), table(mixed)
    rows = network.sample(5000, seed=1)
    assert rows["hours"].dtype.kind == "i"
    assert rows["hours"].min() == 0
    assert rows["hours"].max() <= data["hours"].max() + 1
    assert rows["x"].min() >= 0
    assert rows["x"].max() <= 1
    free = network.sample(5000, seed=1, bounded=False)
    assert free["hours"].min() < 0
    assert free["hours"].dtype.kind == "f"


def test_ends_are_no_values_of_single_rows() -> None:
    own = Support.of(np.array([0.123, 0.4, 7.777]), {})
    assert (own.low, own.high) == pytest.approx((0.1, 7.8))
    assert Support.of(np.array([3.0, 3.0]), {}).high == 3.0


def test_published_networks_have_no_ranges_and_no_covariances() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=N)
    zeros = np.where(rng.random(N) < 0.5, 0.0, np.exp(rng.normal(size=N)))
    data: dict[str, Any] = {"x": x, "y": x**2 + rng.normal(size=N), "w": zeros, "g": x > 0}
    mixed = ist.fit(data, ist.DAG(list(data), [("x", "y"), ("g", "w")]))
    lines = ist.fit({"x": x, "z": rng.normal(size=N)}, ist.DAG(["x", "z"], []))
    for network in (mixed, lines):
        text = to_json(rounded_network(network))
        assert "supports" not in text
        assert "covariances" not in text
        assert str(float(x.min())) not in text
        assert '"counts": [' not in text
