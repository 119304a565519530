from __future__ import annotations

import numpy as np
import pytest

from isthmus.errors import GraphError
from isthmus.graphs import DAG
from isthmus.graphs.knowledge import Lag, lagged_names, temporal_tiers
from isthmus.results import DynamicEdge, DynamicNetwork

NETWORK = DynamicNetwork(
    ("a", "b"),
    2,
    {DynamicEdge("a", "b", 0): 0.5, DynamicEdge("a", "a", 1): 0.9, DynamicEdge("b", "a", 2): -1.0},
)


def test_parts() -> None:
    assert NETWORK.instantaneous == DAG(["a", "b"], [("a", "b")])
    assert NETWORK.lagged == (("a", "a", 1), ("b", "a", 2))
    expected = np.zeros((3, 2, 2))
    expected[0, 0, 1], expected[1, 0, 0], expected[2, 1, 0] = 0.5, 0.9, -1.0
    np.testing.assert_array_equal(NETWORK.matrices(), expected)
    assert repr(NETWORK) == "DynamicNetwork(nodes=2, lags=2, instantaneous=1, lagged=2)"


def test_unrolled_and_folded_again() -> None:
    dag = NETWORK.unrolled()
    assert set(dag.edges) == {("a", "b"), ("a@1", "a"), ("b@2", "a")}
    weights = {("a", "b"): 0.5, ("a@1", "a"): 0.9, ("b@2", "a"): -1.0}
    assert DynamicNetwork.from_dag(dag, NETWORK.lag_of, weights) == NETWORK
    # What happens between earlier steps is the same story again.
    more = DAG(dag.nodes, [*dag.edges, ("a@1", "b@1"), ("a@2", "a@1")])
    assert DynamicNetwork.from_dag(more, NETWORK.lag_of, weights) == NETWORK


def test_names_of_earlier_steps_never_clash_with_names_of_variables() -> None:
    assert lagged_names(["x"], 2) == {"x": Lag("x", 0), "x@1": Lag("x", 1), "x@2": Lag("x", 2)}
    assert lagged_names(["x", "x@1"], 1) == {
        "x": Lag("x", 0),
        "x@1": Lag("x@1", 0),
        "x@@1": Lag("x", 1),
        "x@1@1": Lag("x@1", 1),
    }
    with pytest.raises(GraphError, match="0 or more"):
        lagged_names(["x"], -1)


def test_tiers_are_the_time_steps_earliest_first() -> None:
    assert temporal_tiers(lagged_names(["x", "y"], 1)) == (("x@1", "y@1"), ("x", "y"))
    assert temporal_tiers(lagged_names(["x", "y@3"], 0)) == ()


def test_refusals() -> None:
    with pytest.raises(GraphError, match="cycle"):
        DynamicNetwork(
            ("a", "b"), 1, {DynamicEdge("a", "b", 0): 1.0, DynamicEdge("b", "a", 0): 1.0}
        )
    with pytest.raises(GraphError, match="lag"):
        DynamicNetwork(("a",), 1, {DynamicEdge("a", "a", 2): 1.0})
    with pytest.raises(GraphError, match="not among"):
        DynamicNetwork(("a",), 1, {DynamicEdge("a", "z", 1): 1.0})
    with pytest.raises(GraphError, match="back in time"):
        DynamicNetwork.from_dag(DAG(["a", "a@1"], [("a", "a@1")]), lagged_names(["a"], 1))
    with pytest.raises(GraphError, match="does not have the nodes"):
        DynamicNetwork.from_dag(DAG(["a", "a@1"], []), lagged_names(["a"], 0))
