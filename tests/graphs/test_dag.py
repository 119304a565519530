from __future__ import annotations

import copy
import itertools
import time
from importlib.util import find_spec
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.graphs.slow import dags, separated

from isthmus.errors import GraphError
from isthmus.graphs import DAG
from isthmus.graphs import names as bits
from isthmus.testing import enumerate_dags

pytestmark = pytest.mark.skipif(find_spec("networkx") is None, reason="networkx is not installed")


def test_counts_of_labelled_dags() -> None:
    for size, count in enumerate([1, 1, 3, 25, 543]):
        found = list(enumerate_dags("abcd"[:size]))
        assert len(found) == len(set(found)) == count


def test_five_nodes() -> None:
    assert sum(1 for _ in enumerate_dags("abcde")) == 29281


def test_basics() -> None:
    dag = DAG(["c", "a", "b"], [("a", "b"), ("b", "c"), ("a", "c"), ("a", "b")])
    assert dag.nodes == ("c", "a", "b")
    assert dag.edges == (("a", "c"), ("a", "b"), ("b", "c"))
    assert dag.parents("c") == ("a", "b")
    assert dag.children("a") == ("c", "b")
    assert dag.ancestors("c") == ("a", "b")
    assert dag.descendants("b") == ("c",)
    assert dag.has_edge("a", "b")
    assert not dag.has_edge("b", "a")
    assert dag.topological_order() == ("a", "b", "c")
    assert dag.parent_indices() == ((1, 2), (), (1,))
    assert dag.index("b") == 2
    assert dag.adjacency().tolist() == [[False] * 3, [True, False, True], [True, False, False]]
    assert repr(dag) == "DAG(3 nodes, 3 edges: a → c, a → b, b → c)"
    assert repr(DAG([])) == "DAG(0 nodes, 0 edges)"
    chain = [f"x{i}" for i in range(1000)]
    text = repr(DAG(chain, list(itertools.pairwise(chain))))
    assert text.startswith("DAG(1000 nodes, 999 edges: x0 → x1, x1 → x2, ")
    assert text.endswith(" more)")
    assert len(text) < 500
    assert repr(DAG(["a" * 1000, "b"], [("a" * 1000, "b")])) == "DAG(2 nodes, 1 edge)"


def test_equality_ignores_the_order_of_nodes() -> None:
    one = DAG(["a", "b", "c"], [("a", "b")])
    two = DAG(["c", "b", "a"], [("a", "b")])
    assert one == two
    assert hash(one) == hash(two)
    assert one != DAG(["a", "b", "c"], [("b", "a")])
    assert one != DAG(["a", "b"], [("a", "b")])
    assert one != "a -> b"
    assert two.reorder(["a", "b", "c"]).nodes == one.nodes
    with pytest.raises(GraphError, match="same 3 nodes"):
        one.reorder(["a", "b", "x"])


def test_immutable_and_copyable() -> None:
    dag = DAG(["a", "b"], [("a", "b")])
    with pytest.raises(AttributeError, match="immutable"):
        dag._nodes = ()
    assert copy.deepcopy(dag) == dag


def test_unicode_names() -> None:
    dag = DAG(["größe", "体重", "🦋 wing"], [("größe", "体重"), ("体重", "🦋 wing")])
    assert dag.ancestors("🦋 wing") == ("größe", "体重")
    assert dag.cpdag().undirected == (("größe", "体重"), ("体重", "🦋 wing"))


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        (["a", "a"], [], "unique.*'a'"),
        (["a", 1], [], "strings"),
        ("ab", [], "collection of names"),
        (["a"], [("a", "a")], "itself"),
        (["alpha", "b"], [("alpa", "b")], "Did you mean 'alpha'"),
        (["a", "b"], ["ab"], "pair"),
        (["a", "b"], [("a", "b", "c")], "pair"),
    ],
)
def test_refusals(nodes: list[str], edges: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        DAG(nodes, edges)


def test_the_error_names_a_cycle() -> None:
    edges = [("x", "a"), ("a", "b"), ("b", "c"), ("c", "a"), ("c", "y")]
    with pytest.raises(GraphError) as caught:
        DAG(["x", "a", "b", "c", "y"], edges)
    named = str(caught.value).split(": ")[1].split(".")[0].split(" → ")
    assert named[0] == named[-1]
    assert all(step in edges for step in pairwise(named))
    assert set(named) == {"a", "b", "c"}


@given(
    st.integers(2, 8).flatmap(
        lambda d: st.lists(
            st.tuples(st.integers(0, d - 1), st.integers(0, d - 1)).filter(lambda e: e[0] != e[1]),
            max_size=20,
        ).map(lambda e: (d, e))
    )
)
def test_cycles_as_networkx_sees_them(drawn: tuple[int, list[tuple[int, int]]]) -> None:
    nx = pytest.importorskip("networkx")
    size, edges = drawn
    graph = nx.DiGraph()
    graph.add_nodes_from(range(size))
    graph.add_edges_from(edges)
    names = [str(i) for i in range(size)]
    pairs = [(str(a), str(b)) for a, b in edges]
    if nx.is_directed_acyclic_graph(graph):
        dag = DAG(names, pairs)
        order = {name: i for i, name in enumerate(dag.topological_order())}
        assert all(order[a] < order[b] for a, b in dag.edges)
        for node in range(size):
            assert {int(n) for n in dag.ancestors(str(node))} == nx.ancestors(graph, node)
            assert {int(n) for n in dag.descendants(str(node))} == nx.descendants(graph, node)
        moral = nx.moral_graph(graph)
        assert {frozenset(e) for e in dag.moral().edges} == {
            frozenset(map(str, e)) for e in moral.edges
        }
    else:
        with pytest.raises(GraphError, match="cycle") as caught:
            DAG(names, pairs)
        named = str(caught.value).split(": ")[1].split(".")[0].split(" → ")
        assert all(step in pairs for step in pairwise(named))


@given(dags())
def test_three_ways_in(dag: DAG) -> None:
    assert DAG.from_parents(dag.nodes, dag.parent_indices()) == dag
    assert DAG.from_adjacency(dag.nodes, dag.adjacency()) == dag
    assert DAG.from_adjacency(dag.nodes, dag.adjacency() * -0.5) == dag
    assert DAG.from_masks(dag.nodes, dag.parent_masks) == dag


def test_from_parents_refuses() -> None:
    with pytest.raises(GraphError, match="given for 1"):
        DAG.from_parents(["a", "b"], [()])
    with pytest.raises(GraphError, match="index 2"):
        DAG.from_parents(["a", "b"], [(), (2,)])
    with pytest.raises(GraphError, match="index -1"):
        DAG.from_parents(["a", "b"], [(), (-1,)])
    with pytest.raises(GraphError, match="own parent"):
        DAG.from_parents(["a", "b"], [(0,), ()])
    with pytest.raises(GraphError, match=r"a → b → a|b → a → b"):
        DAG.from_parents(["a", "b"], [np.array([1]), np.array([0])])
    assert DAG.from_parents(["a", "b"], [(), (0, 0)]).edges == (("a", "b"),)
    with pytest.raises(GraphError, match="shape"):
        DAG.from_adjacency(["a", "b"], np.zeros((2, 3)))
    with pytest.raises(GraphError, match="NaN"):
        DAG.from_adjacency(["a", "b"], [[0.0, float("nan")], [0.0, 0.0]])


def test_d_separation_by_all_trails_and_by_networkx() -> None:
    """Check every pair and every conditioning set of all DAGs over four nodes."""
    nx = pytest.importorskip("networkx")
    for dag in enumerate_dags("abcd"):
        graph = nx.DiGraph(dag.edges)
        graph.add_nodes_from(dag.nodes)
        for x, y in combinations(dag.nodes, 2):
            rest = [n for n in dag.nodes if n not in (x, y)]
            for size in range(3):
                for known in combinations(rest, size):
                    answer = dag.d_separated(x, y, known)
                    assert answer == separated(dag, x, y, known)
                    assert answer == dag.d_separated([y], [x], list(known))
                    assert answer == nx.is_d_separator(graph, {x}, {y}, set(known))


@given(dags(), st.data())
def test_d_separation_of_sets(dag: DAG, data: st.DataObject) -> None:
    nx = pytest.importorskip("networkx")
    marks = data.draw(st.lists(st.integers(0, 3), min_size=len(dag.nodes), max_size=len(dag.nodes)))
    x, y, known = ({n for n, m in zip(dag.nodes, marks, strict=True) if m == k} for k in (1, 2, 3))
    graph = nx.DiGraph(dag.edges)
    graph.add_nodes_from(dag.nodes)
    assert dag.d_separated(x, y, known) == all(separated(dag, a, b, known) for a in x for b in y)
    assert dag.d_separated(x, y, known) == nx.is_d_separator(graph, x, y, known)


def test_d_separation_refuses_overlap() -> None:
    dag = DAG(["a", "b"])
    with pytest.raises(GraphError, match="'a'"):
        dag.d_separated("a", ["a", "b"])
    with pytest.raises(GraphError, match="no node 'q'"):
        dag.d_separated("a", "b", "q")


@pytest.mark.timing
def test_ten_thousand_nodes() -> None:
    """Building, ordering and the CPDAG together stay within seconds at 10^4 nodes."""
    size, rng = 10_000, np.random.default_rng(0)
    order = rng.permutation(size)
    parents: list[list[int]] = [[] for _ in range(size)]
    for a, b in rng.integers(0, size, (40_000, 2)):
        if a != b:
            low, high = min(a, b), max(a, b)
            parents[order[high]].append(int(order[low]))
    names = [f"v{i}" for i in range(size)]
    begin = time.perf_counter()
    dag = DAG.from_parents(names, parents)
    pattern = dag.cpdag()
    member = pattern.to_dag()
    seconds = time.perf_counter() - begin
    assert member.cpdag() == pattern
    assert len(dag.edges) == len(pattern.directed) + len(pattern.undirected)
    assert seconds < 10  # about one second on an idle core


def test_lists_of_members_give_the_same_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """With many nodes, bitsets are made when they are used; here from four nodes on."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        matrix = np.triu(rng.random((9, 9)) < 0.3, 1)
        names = [f"v{i}" for i in range(9)]
        small = DAG.from_adjacency(names, matrix)
        pattern = small.cpdag()
        with monkeypatch.context() as patch:
            patch.setattr(bits, "_MANY_NODES", 3)
            large = DAG.from_adjacency(names, matrix)
            assert isinstance(large.parent_masks, bits.MaskRows)
            assert isinstance(large.cpdag().neighbour_masks, bits.MaskRows)
            assert large.edges == small.edges
            assert tuple(large.parent_masks) == small.parent_masks
            assert large.ancestors("v8") == small.ancestors("v8")
            assert large.cpdag().directed == pattern.directed
            assert large.cpdag().undirected == pattern.undirected
            assert large.cpdag().to_dag().cpdag() == large.cpdag()
            assert large.skeleton().edges == small.skeleton().edges


def test_a_table_given_for_a_name_is_refused_in_words() -> None:
    with pytest.raises(GraphError, match=r"a dict was given.*predict\(table, target\)"):
        DAG(["a"]).index({"a": [1.0]})  # type: ignore[arg-type]
