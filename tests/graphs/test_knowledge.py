from __future__ import annotations

from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.graphs.slow import essential

from isthmus.errors import KnowledgeError
from isthmus.graphs import DAG, Knowledge
from isthmus.testing import enumerate_dags

NODES = ("a", "b", "c", "d")
FOUR = list(enumerate_dags(NODES))


def test_bind() -> None:
    known = Knowledge(
        required=[("a", "b")], forbidden=[("c", "b")], tiers=[["a"], ["b", "c"]], roots=["d"]
    )
    bound = known.bind(NODES)
    assert [(NODES[i], NODES[j]) for i, j in zip(*bound.required.nonzero(), strict=True)] == [
        ("a", "b")
    ]
    expected = {(n, n) for n in NODES} | {("c", "b"), ("b", "a"), ("c", "a")}
    expected |= {(n, "d") for n in NODES}
    found = {(NODES[i], NODES[j]) for i, j in zip(*bound.forbidden.nonzero(), strict=True)}
    assert found == expected
    with pytest.raises(ValueError, match="read-only"):
        bound.forbidden[0, 0] = False


def test_nothing_known() -> None:
    bound = Knowledge().bind(NODES)
    assert not bound.required.any()
    assert bound.forbidden.sum() == 4
    assert all(Knowledge().allows(dag) for dag in FOUR)


@st.composite
def pieces(draw: st.DrawFn) -> Knowledge:
    pairs = st.lists(st.sampled_from(list(permutations(NODES, 2))), max_size=2)
    ranks = draw(st.lists(st.integers(-1, 2), min_size=4, max_size=4))
    tiers = [[n for n, r in zip(NODES, ranks, strict=True) if r == k] for k in range(3)]
    roots = draw(st.lists(st.sampled_from(NODES), max_size=1))
    return Knowledge(draw(pairs), draw(pairs), tiers, roots)


@given(pieces())
def test_allows_is_what_bind_says(known: Knowledge) -> None:
    try:
        bound = known.bind(NODES)
    except KnowledgeError:
        assert not any(known.allows(dag) for dag in FOUR)
        return
    for dag in FOUR[::5]:
        edges = dag.adjacency()
        right = not (bound.required & ~edges).any() and not (bound.forbidden & edges).any()
        assert known.allows(dag) == right
    assert any(known.allows(dag) for dag in FOUR)
    for a, b in permutations(NODES, 2):
        i, j = NODES.index(a), NODES.index(b)
        assert known.permits(a, b) == (not bound.forbidden[i, j])


@given(pieces(), st.sampled_from(FOUR))
def test_class_under_knowledge(known: Knowledge, dag: DAG) -> None:
    """The maximally oriented graph is the union of the members that agree."""
    if not known.allows(dag):
        with pytest.raises(KnowledgeError, match="does not agree"):
            dag.cpdag(known)
        return
    members = [other for other in dag.cpdag().members() if known.allows(other)]
    directed, undirected = essential(members)
    graph = dag.cpdag(known)
    assert set(graph.directed) == directed
    assert {frozenset(edge) for edge in graph.undirected} == undirected
    assert set(graph.members()) == set(members)


def test_one_orientation_settles_every_class() -> None:
    """Each edge of each class, required one way, closes to the members with it."""
    for dag in FOUR[::4]:
        for edge in dag.edges:
            known = Knowledge(required=[edge])
            members = [other for other in dag.cpdag().members() if edge in other.edges]
            assert set(dag.cpdag(known).members()) == set(members)


@pytest.mark.parametrize(
    ("known", "message"),
    [
        (Knowledge(required=[("a", "z")]), "'z'"),
        (Knowledge(roots=["z"]), "'z'"),
        (Knowledge(tiers=[["z"]]), "'z'"),
        (Knowledge(required=[("a", "a")]), "itself"),
        (Knowledge(required=[("a", "b")], forbidden=[("a", "b")]), "both required and forbidden"),
        (Knowledge(required=[("a", "b")], roots=["b"]), "root"),
        (Knowledge(required=[("a", "b")], tiers=[["b"], ["a"]]), "later tier"),
        (Knowledge(tiers=[["b"], ["a", "b"]]), "one tier"),
        (Knowledge(required=[("a", "b"), ("b", "c"), ("c", "a")]), "cycle: .* → "),
    ],
)
def test_contradictions(known: Knowledge, message: str) -> None:
    with pytest.raises(KnowledgeError, match=message):
        known.bind(NODES)


def test_shapes() -> None:
    with pytest.raises(KnowledgeError, match="required"):
        Knowledge(required=["ab"])  # type: ignore[list-item]
    with pytest.raises(KnowledgeError, match="roots"):
        Knowledge(roots="ab")
    with pytest.raises(KnowledgeError, match="tier"):
        Knowledge(tiers=["ab"])
    assert Knowledge(roots=["a"]) == Knowledge(roots=("a",))
    assert hash(Knowledge(tiers=[["a"], ["b"]])) == hash(Knowledge(tiers=(("a",), ("b",))))
    assert len({frozenset(pair) for pair in combinations(NODES, 2)}) == 6
