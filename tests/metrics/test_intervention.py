from __future__ import annotations

import sys

import pytest

from isthmus.errors import GraphError, MissingExtraError
from isthmus.graphs import DAG
from isthmus.metrics import ancestor_aid, oset_aid, parent_aid, sid
from isthmus.testing import enumerate_dags

NODES = ["a", "b", "c"]
CHAIN = DAG(NODES, [("a", "b"), ("b", "c")])


def test_missing_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gadjid", None)
    with pytest.raises(MissingExtraError, match=r"isthmus\[metrics\]"):
        sid(CHAIN, CHAIN)


def slow_sid(truth: DAG, estimate: DAG) -> int:
    """Count pairs (x, y) whose parents in the estimate are no valid adjustment in the truth."""
    wrong = 0
    for x in truth.nodes:
        for y in truth.nodes:
            if x == y:
                continue
            chosen = set(estimate.parents(x))
            if y in chosen:
                wrong += y in truth.descendants(x)
                continue
            wrong += not valid(truth, x, y, chosen)
    return wrong


def valid(truth: DAG, x: str, y: str, chosen: set[str]) -> bool:
    """Check the adjustment criterion: block all but the causal paths, and no node beyond them."""
    between = {n for n in truth.descendants(x) if n == y or y in truth.descendants(n)}
    beyond = between | {d for n in between for d in truth.descendants(n)}
    if chosen & beyond:
        return False
    cut = [(a, b) for a, b in truth.edges if not (a == x and b in between)]
    return DAG(truth.nodes, cut).d_separated(x, y, chosen)


def test_sid_by_definition() -> None:
    pytest.importorskip("gadjid")
    graphs = list(enumerate_dags("abcd"))
    for truth in graphs[::23]:
        for estimate in graphs[::17]:
            found = sid(truth, estimate)
            assert found.mistakes == slow_sid(truth, estimate)
            assert found.fraction == pytest.approx(found.mistakes / 12)


def test_names_are_aligned_and_classes_taken() -> None:
    pytest.importorskip("gadjid")
    turned = DAG(["c", "b", "a"], [("a", "b"), ("b", "c")])
    for distance in (parent_aid, ancestor_aid, oset_aid, sid):
        assert distance(CHAIN, turned).mistakes == 0
    reverse = DAG(NODES, [("c", "b"), ("b", "a")])
    assert sid(CHAIN, reverse).mistakes > 0
    for distance in (parent_aid, ancestor_aid, oset_aid):
        assert distance(CHAIN.cpdag(), reverse.cpdag()).mistakes == 0
        assert distance(CHAIN, reverse).mistakes > 0
        # the class cannot tell effects that the DAG can
        assert distance(CHAIN, CHAIN.cpdag()).mistakes > 0
    assert sid(DAG(["a"]), DAG(["a"])).mistakes == 0


def test_refusals() -> None:
    with pytest.raises(GraphError, match="parent_aid"):
        sid(CHAIN, CHAIN.cpdag())  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="same nodes"):
        parent_aid(CHAIN, DAG(["a", "b"]))
    with pytest.raises(GraphError, match="takes DAGs and CPDAGs"):
        parent_aid(CHAIN, CHAIN.skeleton())  # type: ignore[arg-type]
