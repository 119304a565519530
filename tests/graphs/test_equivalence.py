from __future__ import annotations

import itertools
import os
from collections import defaultdict
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.graphs.slow import dags, essential, signature

from isthmus.errors import GraphError
from isthmus.graphs import CPDAG, DAG, PDAG, Knowledge, UndirectedGraph
from isthmus.testing import enumerate_dags

FOUR = list(enumerate_dags("abcd"))

BY_SKELETON: dict[UndirectedGraph, list[DAG]] = defaultdict(list)
for _dag in FOUR:
    BY_SKELETON[_dag.skeleton()].append(_dag)


def classes(graphs: list[DAG]) -> list[list[DAG]]:
    groups = defaultdict(list)
    for dag in graphs:
        groups[signature(dag)].append(dag)
    return list(groups.values())


def test_every_class_of_four_nodes() -> None:
    found = classes(FOUR)
    assert len(found) == 185
    for members in found:
        directed, undirected = essential(members)
        patterns = {dag.cpdag() for dag in members}
        assert len(patterns) == 1
        pattern = patterns.pop()
        assert set(pattern.directed) == directed
        assert {frozenset(edge) for edge in pattern.undirected} == undirected
        listed = list(pattern.members())
        assert len(listed) == len(members)
        assert set(listed) == set(members)
        assert pattern.to_dag() in members
        assert CPDAG(pattern.nodes, pattern.directed, pattern.undirected) == pattern


@pytest.mark.long
@pytest.mark.skipif("ISTHMUS_LONG" not in os.environ, reason="those of four nodes are tested")
def test_every_class_of_five_nodes_by_its_size() -> None:
    """There are 8782 classes; the sizes of the listed ones add up to all 29281 DAGs."""
    patterns = {dag.cpdag() for dag in enumerate_dags("abcde")}
    assert len(patterns) == 8782
    assert sum(1 for pattern in patterns for _ in pattern.members()) == 29281


def test_equivalent_agrees_with_skeleton_and_colliders() -> None:
    for one, two in combinations(FOUR[::7], 2):
        assert one.equivalent(two) == (signature(one) == signature(two))
    assert not DAG(["a"]).equivalent(DAG(["b"]))
    assert DAG(["a", "b"], [("a", "b")]).equivalent(DAG(["b", "a"], [("b", "a")]))


@given(dags())
def test_v_structures_and_skeleton(dag: DAG) -> None:
    skeleton, colliders = signature(dag)
    assert {frozenset(edge) for edge in dag.skeleton().edges} == skeleton
    assert {(frozenset((a, b)), c) for a, c, b in dag.v_structures()} == colliders
    assert len(dag.v_structures()) == len(colliders)
    pattern = dag.cpdag()
    assert pattern.skeleton() == dag.skeleton()
    assert pattern.to_dag().equivalent(dag)
    assert dag in set(pattern.members())


@given(dags(6), st.data())
def test_cpdag_does_not_depend_on_the_order_of_nodes(dag: DAG, data: st.DataObject) -> None:
    other = dag.reorder(data.draw(st.permutations(dag.nodes)))
    assert other.cpdag() == dag.cpdag()
    assert hash(other.cpdag()) == hash(dag.cpdag())
    assert dag.cpdag().reorder(other.nodes) == dag.cpdag()


def brute_extensions(graph: PDAG) -> set[DAG]:
    """Return the DAGs with these arrows, this skeleton and no other v-structure."""
    own = DAG(graph.nodes, graph.directed)
    skeleton = graph.skeleton()
    before = {v for v in own.v_structures() if not skeleton.has_edge(v[0], v[2])}
    return {
        dag
        for dag in BY_SKELETON[skeleton]
        if set(graph.directed) <= set(dag.edges) and set(dag.v_structures()) == before
    }


def all_pdags(step: int) -> list[PDAG]:
    """Return every ``step``-th graph that comes from a DAG by dropping some arrow heads."""
    found = set()
    for dag in FOUR[::step]:
        for size in range(len(dag.edges) + 1):
            for kept in combinations(dag.edges, size):
                loose = [edge for edge in dag.edges if edge not in kept]
                found.add(PDAG(dag.nodes, kept, loose))
    return sorted(found, key=lambda g: (g.directed, g.undirected))


def test_pdags_against_brute_force() -> None:
    none = 0
    for graph in all_pdags(step=3):
        members = brute_extensions(graph)
        if not members:
            none += 1
            with pytest.raises(GraphError, match="no consistent extension"):
                graph.to_dag()
            with pytest.raises(GraphError, match="no consistent extension"):
                next(graph.members())
            continue
        assert graph.to_dag() in members
        listed = list(graph.members())
        assert len(listed) == len(members)
        assert set(listed) == members
        directed, undirected = essential(list(members))
        closed = graph.meek()
        assert set(closed.directed) == directed
        assert {frozenset(edge) for edge in closed.undirected} == undirected
    assert none > 20


def test_pdag_basics() -> None:
    graph = PDAG(["a", "b", "c"], [("a", "b")], [("c", "b")])
    assert graph.directed == (("a", "b"),)
    assert graph.undirected == (("b", "c"),)
    assert graph.parents("b") == ("a",)
    assert graph.neighbours("b") == ("c",)
    assert graph.meek() == PDAG(["a", "b", "c"], [("a", "b"), ("b", "c")])
    assert graph.adjacency().sum() == 3
    assert graph == PDAG(["c", "b", "a"], [("a", "b")], [("b", "c")])
    assert hash(graph) == hash(PDAG(["c", "b", "a"], [("a", "b")], [("b", "c")]))
    assert repr(graph) == "PDAG(3 nodes, 1 directed edge, 1 undirected edge: a → b, b — c)"
    assert repr(graph.skeleton()) == "UndirectedGraph(3 nodes, 2 edges: a — b, b — c)"
    with pytest.raises(AttributeError):
        graph._nodes = ()


def test_a_class_prints_its_directions() -> None:
    collider = DAG(list("abcd"), [("a", "b"), ("c", "b"), ("c", "d")]).cpdag()
    assert repr(collider) == (
        "CPDAG(4 nodes, 2 directed edges, 1 undirected edge: a → b, c → b, c — d)"
    )
    nodes = [f"x{i}" for i in range(40)]
    pairs = list(itertools.combinations(nodes, 2))
    text = repr(DAG(nodes, pairs).cpdag())
    assert text.startswith("CPDAG(40 nodes, 0 directed edges, 780 undirected edges: x0 — x1, ")
    assert len(text) < 500
    shown = text.count("—")
    assert text.endswith(f" and {780 - shown} more)")


def test_a_pdag_is_no_cpdag() -> None:
    assert PDAG(["a"]) != CPDAG(["a"])
    with pytest.raises(GraphError, match="do not form a CPDAG"):
        CPDAG(["a", "b"], [("a", "b")])
    square = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
    with pytest.raises(GraphError, match="do not form a CPDAG"):
        CPDAG(["a", "b", "c", "d"], [], square)
    with pytest.raises(GraphError, match="cycle"):
        PDAG(["a", "b", "c"], [("a", "b"), ("b", "c"), ("c", "a")])
    with pytest.raises(GraphError, match="as directed and as"):
        PDAG(["a", "b"], [("a", "b")], [("b", "a")])
    with pytest.raises(GraphError, match="itself"):
        PDAG(["a", "b"], [], [("b", "b")])


def test_random_members_are_members_and_all_of_them_are_drawn() -> None:
    rng = np.random.default_rng(0)
    for pattern in (
        DAG(tuple("abcd"), [("a", "b"), ("b", "c"), ("c", "d"), ("b", "d")]).cpdag(),
        DAG(tuple("abcd"), [("a", "c"), ("b", "c"), ("c", "d")]).cpdag(),
        PDAG(tuple("abc"), [("a", "b")], [("b", "c")]),
    ):
        assert {pattern.random_dag(rng) for _ in range(200)} == set(pattern.members())
    knowledge = Knowledge(forbidden=[("b", "a")])
    restricted = DAG(tuple("abc"), [("a", "b"), ("b", "c")]).cpdag(knowledge)
    assert {restricted.random_dag(rng) for _ in range(50)} == set(restricted.members())
    with pytest.raises(GraphError, match="no consistent extension"):
        PDAG(tuple("abcd"), [], [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]).random_dag(rng)


def test_preferred_members_have_what_is_possible() -> None:
    for pattern in (
        DAG(tuple("abcd"), [("a", "b"), ("b", "c"), ("c", "d"), ("b", "d")]).cpdag(),
        PDAG(tuple("abc"), [("a", "b")], [("b", "c")]),
    ):
        members = set(pattern.members())
        assert {pattern.preferred_dag(member.edges) for member in members} == members
        for edge in {edge for member in members for edge in member.edges}:
            found = pattern.preferred_dag([edge, edge[::-1]])  # the first one wins
            assert edge in found.edges
            assert found in members
    fork = DAG(tuple("abc"), [("b", "a"), ("b", "c")]).cpdag()
    assert fork.preferred_dag([("a", "b"), ("c", "b")]).edges == (("a", "b"), ("b", "c"))
