from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.errors import GraphError
from isthmus.graphs import CPDAG, DAG, PDAG
from isthmus.metrics import shd, shd_cpdag
from isthmus.testing import enumerate_dags

FOUR = list(enumerate_dags("abcd"))


def mark(graph: DAG | CPDAG | PDAG, a: str, b: str) -> str:
    matrix = graph.adjacency()
    i, j = graph.index(a), graph.index(b)
    return f"{int(matrix[i, j])}{int(matrix[j, i])}"


def slow_shd(a: DAG | CPDAG | PDAG, b: DAG | CPDAG | PDAG) -> int:
    return sum(mark(a, x, y) != mark(b, x, y) for x, y in combinations(a.nodes, 2))


@given(st.sampled_from(FOUR), st.sampled_from(FOUR), st.permutations("abcd"))
def test_pair_by_pair(one: DAG, two: DAG, order: list[str]) -> None:
    assert shd(one, two.reorder(order)) == slow_shd(one, two)
    assert shd_cpdag(one, two.reorder(order)) == slow_shd(one.cpdag(), two.cpdag())
    assert shd(one.cpdag(), two.reorder(order).cpdag()) == shd_cpdag(one, two)
    assert shd(one, two) == shd(two, one)
    assert (shd_cpdag(one, two) == 0) == one.equivalent(two)


def test_a_reversal_counts_one() -> None:
    nodes = ["a", "b", "c"]
    chain = DAG(nodes, [("a", "b"), ("b", "c")])
    assert shd(chain, DAG(nodes, [("b", "a"), ("b", "c")])) == 1
    assert shd_cpdag(chain, DAG(nodes, [("b", "a"), ("b", "c")])) == 0
    assert shd_cpdag(chain, DAG(nodes, [("a", "b"), ("c", "b")])) == 2
    assert shd(chain, DAG(nodes)) == 2
    loose = PDAG(nodes, [("a", "b")], [("b", "c")])
    assert shd(loose, PDAG(nodes, [("a", "b"), ("b", "c")])) == 1


def test_mixed_types_and_other_nodes_are_refused() -> None:
    dag = DAG(["a", "b"], [("a", "b")])
    with pytest.raises(GraphError, match="shd_cpdag"):
        shd(dag, dag.cpdag())
    with pytest.raises(GraphError, match=r"'b';.*'c'"):
        shd(dag, DAG(["a", "c"]))
    with pytest.raises(GraphError, match="PDAG"):
        shd_cpdag(dag, PDAG(["a", "b"]))  # type: ignore[arg-type]
    assert shd_cpdag(dag, dag.cpdag()) == 0
