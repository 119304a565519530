"""Comparison with a reference graph, and communities."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.errors import GraphError
from isthmus.graphs import CPDAG, DAG
from isthmus.metrics import shd
from isthmus.report import compare
from isthmus.report.rendering import communities


def dags(nodes: int = 5) -> st.SearchStrategy[DAG]:
    names = [f"v{i}" for i in range(nodes)]
    pairs = [(names[i], names[j]) for j in range(nodes) for i in range(j)]
    return st.builds(
        lambda order, edges: DAG(names, [(order[int(a[1])], order[int(b[1])]) for a, b in edges]),
        st.permutations(names),
        st.lists(st.sampled_from(pairs), unique=True),
    )


@given(dags(), dags())
def test_the_number_of_differences_is_the_structural_hamming_distance(a: DAG, b: DAG) -> None:
    assert compare(a, b).distance == shd(a, b)
    assert compare(a.cpdag(), b).distance == shd(a.cpdag(), b.cpdag())


def test_states() -> None:
    names = list("abcde")
    graph = DAG(names, [("a", "b"), ("b", "c"), ("c", "d")])
    reference = DAG(names, [("a", "b"), ("c", "b"), ("d", "e")])
    comparison = compare(graph, reference)
    assert comparison.states == {
        ("a", "b"): "same",
        ("b", "c"): "reversed",
        ("c", "d"): "added",
        ("d", "e"): "missing",
    }
    assert compare(graph, CPDAG(names, [], [("a", "b")])).states["a", "b"] == "undecided"
    with pytest.raises(GraphError, match="a str was given"):
        compare(graph, "x")  # type: ignore[arg-type]


def test_communities_are_the_cliques_of_a_ring_of_cliques() -> None:
    size, count = 6, 8
    edges = [
        (c * size + i, c * size + j) for c in range(count) for j in range(size) for i in range(j)
    ]
    edges += [(c * size, ((c + 1) % count) * size + 1) for c in range(count)]
    found = communities(size * count + 3, edges)
    groups = [set(found[c * size : (c + 1) * size]) for c in range(count)]
    assert all(len(group) == 1 for group in groups)
    assert len(set.union(*groups)) == count
    assert len(set(found[size * count :])) == 1  # nodes without edges are together
    assert found == communities(size * count + 3, edges)


def test_communities_of_nothing() -> None:
    assert communities(0, []) == []
    assert communities(3, []) == [0, 0, 0]
