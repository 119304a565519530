"""Arguments of the wrong type are refused with a sentence, never with a raw error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus import metrics
from isthmus.errors import GraphError
from isthmus.graphs import UndirectedGraph

DAG: Any = ist.DAG
Knowledge: Any = ist.Knowledge
AB = ["a", "b"]
dag: Any = ist.DAG(AB, [("a", "b")])
cpdag: Any = dag.cpdag()

CASES: dict[str, Callable[[], object]] = {
    "nodes number": lambda: DAG(5),
    "nodes none": lambda: DAG(None),
    "nodes text": lambda: DAG("ab"),
    "nodes lists": lambda: DAG([["a"]]),
    "nodes numbers": lambda: DAG([1, 2]),
    "edges number": lambda: DAG(AB, 5),
    "edges none": lambda: DAG(AB, None),
    "edges text": lambda: DAG(AB, "ab"),
    "edges mapping": lambda: DAG(AB, {"a": "b"}),
    "edges numbers": lambda: DAG(AB, [1, 2]),
    "edges triple": lambda: DAG(AB, [("a", "b", 1)]),
    "edges lists": lambda: DAG(AB, [(["a"], "b")]),
    "parents none": lambda: DAG.from_parents(AB, None),
    "parents numbers": lambda: DAG.from_parents(AB, [1, 2]),
    "parents names": lambda: DAG.from_parents(AB, [["b"], []]),
    "parents fraction": lambda: DAG.from_parents(AB, [[1.5], []]),
    "matrix text": lambda: DAG.from_adjacency(AB, [["x", "y"], ["", ""]]),
    "matrix ragged": lambda: DAG.from_adjacency(AB, [[0, 1], [0]]),
    "matrix none": lambda: DAG.from_adjacency(AB, None),
    "matrix objects": lambda: DAG.from_adjacency(AB, [[None, None], [None, None]]),
    "matrix nodes": lambda: DAG.from_adjacency(5, [[0]]),
    "masks text": lambda: DAG.from_masks(AB, ["x", 0]),
    "masks negative": lambda: DAG.from_masks(AB, [-1, 0]),
    "masks large": lambda: DAG.from_masks(AB, [16, 0]),
    "parents of number": lambda: dag.parents(5),
    "parents of list": lambda: dag.parents(["a"]),
    "has_edge none": lambda: dag.has_edge("a", None),
    "separated number": lambda: dag.d_separated(5, "b"),
    "separated none": lambda: dag.d_separated("a", None),
    "reorder number": lambda: dag.reorder(5),
    "reorder lists": lambda: dag.reorder([["a"], "b"]),
    "equivalent number": lambda: dag.equivalent(5),
    "equivalent class": lambda: dag.equivalent(cpdag),
    "cpdag text": lambda: dag.cpdag("x"),
    "cpdag mapping": lambda: dag.cpdag({"required": []}),
    "CPDAG number": lambda: ist.CPDAG(5),  # type: ignore[arg-type]
    "PDAG number": lambda: ist.PDAG(AB, 5),  # type: ignore[arg-type]
    "PDAG none": lambda: ist.PDAG(AB, [], None),  # type: ignore[arg-type]
    "class reorder": lambda: cpdag.reorder(None),
    "undirected none": lambda: UndirectedGraph(None),  # type: ignore[arg-type]
    "undirected number": lambda: UndirectedGraph(AB, 3),  # type: ignore[arg-type]
    "required number": lambda: Knowledge(required=5),
    "required none": lambda: Knowledge(required=None),
    "required text": lambda: Knowledge(required="ab"),
    "required texts": lambda: Knowledge(required=["ab"]),
    "required mapping": lambda: Knowledge(required={"a": "b"}),
    "required numbers": lambda: Knowledge(required=[(1, 2)]),
    "forbidden number": lambda: Knowledge(forbidden=7),
    "tiers number": lambda: Knowledge(tiers=5),
    "tiers text": lambda: Knowledge(tiers="ab"),
    "tiers texts": lambda: Knowledge(tiers=["ab"]),
    "tiers numbers": lambda: Knowledge(tiers=[1, 2]),
    "tiers mapping": lambda: Knowledge(tiers={"a": 0}),
    "roots number": lambda: Knowledge(roots=5),
    "roots numbers": lambda: Knowledge(roots=[1]),
    "roots lists": lambda: Knowledge(roots=[["a"]]),
    "bind number": lambda: Knowledge().bind(5),
    "allows text": lambda: Knowledge().allows("x"),
    "allows class": lambda: Knowledge().allows(cpdag),
    "apply dag": lambda: Knowledge().apply(dag, dag),
    "apply class": lambda: Knowledge().apply(cpdag, cpdag),
    "permits lists": lambda: Knowledge().permits(["a"], 5),
}


@pytest.mark.parametrize("case", CASES)
def test_wrong_types_are_refused_with_a_sentence(case: str) -> None:
    with pytest.raises(GraphError, match=r".{20,}"):
        CASES[case]()


@pytest.mark.parametrize(
    "name",
    ["shd", "shd_cpdag", "edge_metrics", "parent_aid", "ancestor_aid", "oset_aid", "sid"],
)
@pytest.mark.parametrize(
    "other",
    [None, "x", [("a", "b")], np.eye(2), 5, object()],
    ids=lambda value: type(value).__name__,
)
def test_metrics_refuse_what_is_no_graph(name: str, other: Any) -> None:
    metric = getattr(metrics, name)
    for pair in ((dag, other), (other, dag), (other, other)):
        with pytest.raises(GraphError, match=r".{20,}"):
            metric(*pair)


def test_a_later_tier_can_reach_an_earlier_one_only_through_nodes_in_no_tier() -> None:
    knowledge = ist.Knowledge(tiers=[["early"], ["late"]])
    around = ist.DAG(["early", "free", "late"], [("late", "free"), ("free", "early")])
    assert knowledge.allows(around)
    assert "path through them may still lead" in " ".join((ist.Knowledge.__doc__ or "").split())
    complete = ist.Knowledge(tiers=[["early"], ["free"], ["late"]])
    assert not complete.allows(around)
