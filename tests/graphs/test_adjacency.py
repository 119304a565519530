"""Graphs as matrices, against the graphs themselves."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus import simulate
from isthmus.graphs.names import above_threshold, order_of
from isthmus.kernels._native import reachable
from isthmus.kernels.continuous import acyclic_part


@pytest.mark.parametrize("seed", range(5))
def test_closure_and_order_are_those_of_the_graph(seed: int) -> None:
    dag = simulate.erdos_renyi(12, 20, seed=seed)
    edges = dag.adjacency()
    order = order_of(edges)
    assert order is not None
    assert tuple(dag.nodes[i] for i in order) == dag.topological_order()
    closure = reachable(edges)
    for i, node in enumerate(dag.nodes):
        assert {dag.nodes[j] for j in np.flatnonzero(closure[i])} == set(dag.descendants(node))


def test_long_paths_are_followed_to_their_end() -> None:
    chain = np.eye(100, k=1, dtype=np.bool_)
    assert reachable(chain).sum() == 99 * 100 // 2
    assert order_of(chain) == list(range(100))


def test_a_cycle_has_no_order_and_reaches_itself() -> None:
    cycle = np.roll(np.eye(4, dtype=np.bool_), 1, axis=1)
    assert order_of(cycle) is None
    assert reachable(cycle).all()


def test_two_ways_to_cut_a_cycle() -> None:
    weights = np.array([[0.0, 0.9, 0.0], [0.0, 0.0, 0.8], [0.5, 0.4, 0.0]])
    none = np.zeros((3, 3), dtype=np.bool_)
    # 0.4 and 0.5 close cycles. Raising the threshold drops both; so does taking the heaviest first.
    expected = weights > 0.5
    np.testing.assert_array_equal(above_threshold(weights, 0.3), expected)
    np.testing.assert_array_equal(acyclic_part(weights, none, 0.3), expected)
    weights[0, 2] = 0.45  # below an edge that closes a cycle, but harmless
    np.testing.assert_array_equal(above_threshold(weights, 0.3), expected)
    expected[0, 2] = True
    np.testing.assert_array_equal(acyclic_part(weights, none, 0.3), expected)
    assert above_threshold(np.ones((2, 2)), 0.5).sum() == 0
