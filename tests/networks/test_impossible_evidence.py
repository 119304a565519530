"""Evidence of probability zero is refused by every question in the same way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import DataError
from isthmus.networks import DiscreteNetwork, MixedNetwork
from isthmus.verbs.fit import fit


def test_discrete_predictions_refuse_impossible_rows() -> None:
    dag = ist.DAG(["a", "b", "c"], [("a", "b"), ("b", "c"), ("a", "c")])
    rows = {"a": ["x", "x", "y", "y"], "b": ["x", "x", "y", "y"], "c": ["x", "x", "y", "y"]}
    network = fit(rows, dag, pseudo_count=0)
    assert isinstance(network, DiscreteNetwork)
    given = {"b": ["x", "x"], "c": ["x", "y"]}  # the second row does not occur
    for ask in (network.predict, network.predict_probabilities):
        with pytest.raises(DataError, match=r"in 1 row of 2.* row 1"):
            ask(given, "a")
    possible = {"b": ["x", "y"], "c": ["x", "y"]}
    np.testing.assert_array_equal(network.predict(possible, "a"), ["x", "y"])


def test_mixed_predictions_refuse_impossible_rows() -> None:
    rng = np.random.default_rng(0)
    a = np.repeat(["x", "y"], 20)
    rows = {"a": a, "b": a, "c": a, "v": rng.normal(size=40)}
    dag = ist.DAG(["a", "b", "c", "v"], [("a", "b"), ("a", "c"), ("a", "v")])
    network = fit(rows, dag, pseudo_count=0)
    assert isinstance(network, MixedNetwork)
    given: dict[str, list[Any]] = {"b": ["x"], "c": ["y"], "v": [0.0]}
    for ask in (network.predict, network.predict_probabilities):
        with pytest.raises(DataError, match="probability zero"):
            ask(given, "a")


def test_evidence_that_tells_nothing_is_impossible_all_the_same() -> None:
    """What is not connected with the targets is left out, unless it can be impossible."""
    dag = ist.DAG(["a", "b", "c", "x"], [("b", "c")])
    levels = dict.fromkeys("abcx", ("n", "y"))
    tables = {v: np.array([0.5, 0.5]) for v in "abx"} | {"c": np.array([[0.2, 0.8], [1.0, 0.0]])}
    network = DiscreteNetwork(dag, levels, tables)
    expected = pytest.approx(np.array([0.5, 0.5]))
    uncertain: dict[str, Any] = {"b": {"n": 0.0, "y": 1.0}}
    possible: list[dict[str, Any]] = [{"b": "n", "c": "y"}, {"c": "y"}, {"x": "y"}, uncertain]
    for evidence in possible:
        assert np.asarray(network.query("a", evidence=evidence)) == expected
    impossible: list[dict[str, Any]] = [{"b": "y", "c": "y"}, uncertain | {"c": "y"}]
    for evidence in impossible:
        with pytest.raises(DataError):
            network.query("a", evidence=evidence)
