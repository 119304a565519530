"""PAGs: construction, and the rules against equivalence classes by enumeration."""

from __future__ import annotations

import pickle
from itertools import combinations

import numpy as np
import pytest
from tests.graphs.classes_with_hidden_causes import (
    class_by_changes,
    observed_first,
    pag_by_enumeration,
    signature,
)

import isthmus as ist
from isthmus import simulate
from isthmus.errors import GraphError
from isthmus.graphs.pag import Marks
from isthmus.testing import enumerate_dags


def test_edges_are_written_from_left_to_right() -> None:
    pag = ist.PAG([*"abcd"], [("b", "<--", "a"), ("c", "<-o", "b"), ("d", "o-o", "c")])
    assert pag.edges == (("a", "-->", "b"), ("b", "o->", "c"), ("c", "o-o", "d"))
    assert pag.matrix.tolist() == [[0, 2, 0, 0], [3, 0, 2, 0], [0, 1, 0, 1], [0, 0, 1, 0]]
    assert pag.of_kind("o->") == (("b", "c"),)
    assert pag.neighbours("c") == ("b", "d")
    assert pag.skeleton().edges == (("a", "b"), ("b", "c"), ("c", "d"))
    assert str(ist.PAG([*"ab"])) == "no edges"
    assert "a is a cause of b." in pag.explain()


def test_equality_does_not_depend_on_the_order_of_nodes() -> None:
    pag = ist.PAG([*"abc"], [("a", "<->", "b"), ("b", "o-o", "c"), ("c", "-->", "a")])
    other = pag.reorder([*"cba"])
    assert other.nodes == ("c", "b", "a")
    assert other == pag
    assert hash(other) == hash(pag)
    assert pag != ist.PAG([*"abc"], [("a", "<->", "b"), ("b", "o-o", "c"), ("c", "o->", "a")])
    assert pickle.loads(pickle.dumps(pag)) == pag  # noqa: S301 - our own
    assert ist.PAG.from_matrix([*"abc"], pag.matrix) == pag


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([("a", "---", "b")], "not an edge of a PAG"),
        ([("a", "o->", "a")], "to itself"),
        ([("a", "o->", "b"), ("b", "-->", "a")], "given twice"),
        ([("a", "b")], "is a triple"),
        ([("a", "o->", "z")], "no node 'z'"),
    ],
)
def test_wrong_edges_are_refused(edges: list[tuple[str, str, str]], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        ist.PAG([*"ab"], edges)


def test_wrong_matrices_are_refused() -> None:
    with pytest.raises(GraphError, match="3 rows and columns"):
        ist.PAG.from_matrix([*"abc"], np.zeros((2, 2)))
    with pytest.raises(GraphError, match="both 0 without an edge"):
        ist.PAG.from_matrix([*"ab"], [[0, 2], [0, 0]])


def test_instrument_and_its_two_variables() -> None:
    """By hand: z → x → y with a hidden cause of x and y leaves no pair separable but z, y."""
    dag = ist.DAG(["z", "x", "y", "u"], [("z", "x"), ("x", "y"), ("u", "x"), ("u", "y")])
    assert ist.PAG.from_dag(dag, ["u"]).edges == (
        ("z", "o-o", "x"),
        ("z", "o-o", "y"),
        ("x", "o-o", "y"),
    )


def test_y_structure_finds_a_cause() -> None:
    """By hand: two independent causes of x make the arrow from x to y certain."""
    dag = ist.DAG([*"abxy"], [("a", "x"), ("b", "x"), ("x", "y")])
    expected = [("a", "o->", "x"), ("b", "o->", "x"), ("x", "-->", "y")]
    assert ist.PAG.from_dag(dag) == ist.PAG([*"abxy"], expected)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_rules_against_enumeration(size: int) -> None:
    names, seen = list("abcd"[:size]), set()
    for dag in enumerate_dags(names):
        for hidden in (h for k in range(3) for h in combinations(names, k)):
            shown, parents = observed_first(dag, hidden)
            key = hidden, signature(parents, len(shown))
            if len(shown) > 1 and key not in seen:
                seen.add(key)
                assert ist.PAG.from_dag(dag, hidden) == pag_by_enumeration(shown, parents)
    assert len(seen) == {2: 2, 3: 17, 4: 241}[size]


@pytest.mark.parametrize("seed", range(12))
def test_rules_against_changes_of_single_marks(seed: int) -> None:
    dag = simulate.erdos_renyi(8, 9, seed=seed)
    hidden = dag.nodes[:2]
    shown, parents = observed_first(dag, hidden)
    matrix, complete = class_by_changes(parents, len(shown), 300)
    found = ist.PAG.from_dag(dag, hidden).reorder(shown).matrix
    known = np.ones_like(found, bool) if complete else found != 1
    assert (matrix[known] == found[known]).all()


def test_a_directed_path_makes_a_tail() -> None:
    """R8, by hand: a --> b --> c and a o-> c."""
    marks = Marks([0b110, 0b101, 0b011])
    for a, b in ((0, 1), (1, 2)):
        assert marks.put_arrow(a, b)
        assert marks.put_tail(b, a)
    assert marks.put_arrow(0, 2)
    assert not marks.put_tail(0, 2)  # it is not a circle any more
    marks.close({})
    pag = ist.PAG.from_marks(("a", "b", "c"), marks)
    assert pag.of_kind("-->") == (("a", "b"), ("a", "c"), ("b", "c"))
