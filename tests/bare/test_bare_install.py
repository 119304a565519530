"""What must work with the core dependencies alone: no pandas, no plots, no engine.

The whole of it also runs in an environment that holds nothing but the wheel and its core.
"""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import MissingExtraError
from isthmus.graphs import DAG
from isthmus.plots import plot_graph
from isthmus.tables import as_source


def test_graphs() -> None:
    dag = DAG(["rain", "sprinkler", "wet"], [("rain", "wet"), ("sprinkler", "wet")])
    assert dag.parents("wet") == ("rain", "sprinkler")
    assert dag.d_separated("rain", "sprinkler")
    assert not dag.d_separated("rain", "sprinkler", given=["wet"])
    assert dag.cpdag().to_dag() == dag


def test_statistics_of_plain_arrays() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=200)
    moments = as_source({"x": x, "y": 2 * x + rng.normal(size=200)}).moments()
    assert moments.n == 200
    assert moments.correlation()[0, 1] > 0.8


def test_learn_from_numbers() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(2, 500))
    c = a - b + 0.5 * rng.normal(size=500)
    solution = ist.learn({"a": a, "b": b, "c": c})
    assert set(solution.cpdag.directed) == {("a", "c"), ("b", "c")}


def test_learn_from_categories() -> None:
    rng = np.random.default_rng(3)
    rain, sprinkler = rng.random((2, 1000)) < 0.4
    wet = np.where(rain | sprinkler, rng.random(1000) < 0.9, rng.random(1000) < 0.1)
    solution = ist.learn({"rain": rain, "sprinkler": sprinkler, "wet": wet})
    assert set(solution.cpdag.directed) == {("rain", "wet"), ("sprinkler", "wet")}


@pytest.mark.skipif(find_spec("matplotlib") is not None, reason="the extra is installed")
def test_missing_extra_is_named() -> None:
    with pytest.raises(MissingExtraError, match=r"isthmus\[plots\]"):
        plot_graph(DAG(["a"]))


def test_sample_from_numbers() -> None:
    x = np.random.default_rng(0).normal(size=(100, 3))
    x[:, 1] += x[:, 0]
    posterior = ist.sample({"a": x[:, 0], "b": x[:, 1], "c": x[:, 2]}, draws=10)
    probabilities = posterior.edge_probabilities()
    assert probabilities[0, 1] + probabilities[1, 0] > 0.99
