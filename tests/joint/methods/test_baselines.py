"""Graphs of sites that learned alone, put together."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.errors import ArgumentError, GraphError
from isthmus.graphs import DAG
from isthmus.joint import average, vote


def test_more_than_half_must_have_an_edge() -> None:
    nodes = ("a", "b", "c")
    graphs = [
        DAG(nodes, [("a", "b"), ("b", "c")]),
        DAG(nodes, [("a", "b")]),
        DAG(nodes, [("b", "c"), ("a", "c")]),
        DAG(nodes, [("a", "b")]),
    ]
    assert set(vote(graphs).edges) == {("a", "b")}
    assert set(vote(graphs, 0.3).edges) == {("a", "b"), ("b", "c")}
    assert set(vote(graphs, 0.0).edges) == {("a", "b"), ("b", "c"), ("a", "c")}


def test_the_fewest_votes_lose_a_cycle() -> None:
    nodes = ("a", "b")
    graphs = [DAG(nodes, [("a", "b")])] * 2 + [DAG(nodes, [("b", "a")])]
    assert vote(graphs, 0.1).edges == (("a", "b"),)


def test_weights_are_averaged_with_their_signs() -> None:
    one = np.array([[0.0, 1.0, 0.9], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    two = np.array([[0.0, 0.2, -0.9], [0.0, 0.0, 0.0], [0.0, 0.5, 0.0]])
    assert average(list("abc"), [one, two]).edges == (("a", "b"),)
    assert set(average(list("abc"), [one, two], 0.2).edges) == {("a", "b"), ("c", "b")}
    back = np.array([[0.0, 0.5, 0.0], [0.7, 0.0, 0.0], [0.0, 0.0, 0.0]])
    assert average(list("abc"), [back]).edges == (("b", "a"),)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(GraphError, match="same nodes"):
        vote([DAG(("a", "b"), []), DAG(("a", "c"), [])])
    with pytest.raises(GraphError, match="at least one"):
        vote([])
    with pytest.raises(ArgumentError, match="share"):
        vote([DAG(("a", "b"), [])], 1.0)
    with pytest.raises(ArgumentError, match="shape"):
        average(list("abc"), [np.zeros((2, 2))])
