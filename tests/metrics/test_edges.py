from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.errors import GraphError
from isthmus.graphs import CPDAG, DAG, PDAG
from isthmus.metrics import edge_metrics, shd
from isthmus.testing import enumerate_dags

FOUR = list(enumerate_dags("abcd"))


def by_matrices(truth: DAG, estimate: DAG | CPDAG) -> tuple[float, float, float, int]:
    """Count over flat positions of matrices, with -1 for an undirected edge."""
    true = truth.adjacency()
    guess = estimate.adjacency().astype(int)
    if isinstance(estimate, CPDAG):
        both = (guess == 1) & (guess.T == 1)
        guess[both & np.tri(4, k=-1, dtype=bool)] = -1
        guess[both & np.tri(4, k=-1, dtype=bool).T] = 0
    either = true | true.T
    good = ((guess == 1) & true).sum() + ((guess == -1) & either).sum()
    turned = ((guess == 1) & ~true & true.T).sum()
    wrong = ((guess != 0) & ~either).sum()
    predicted = (guess != 0).sum()
    lower = np.tri(4, k=-1, dtype=bool)
    shadow = (guess != 0) | (guess != 0).T
    differs = ((shadow != either) & lower).sum() + turned
    positives = true.sum()
    return (
        good / max(positives, 1),
        (turned + wrong) / max(predicted, 1),
        (turned + wrong) / max(6 - positives, 1),
        int(differs),
    )


@given(st.sampled_from(FOUR), st.sampled_from(FOUR), st.permutations("abcd"), st.booleans())
def test_by_matrices(truth: DAG, guess: DAG, order: list[str], whole_class: bool) -> None:
    estimate = guess.cpdag() if whole_class else guess
    found = edge_metrics(truth, estimate.reorder(order))
    assert (found.tpr, found.fdr, found.fpr, found.shd) == pytest.approx(
        by_matrices(truth, estimate)
    )
    if isinstance(estimate, DAG):
        assert found.shd == shd(truth, estimate)


def test_by_hand() -> None:
    nodes = ["a", "b", "c", "d"]
    truth = DAG(nodes, [("a", "b"), ("b", "c"), ("c", "d")])
    guess = DAG(nodes, [("a", "b"), ("c", "b"), ("a", "d")])
    found = edge_metrics(truth, guess)
    assert found.tpr == pytest.approx(1 / 3)
    assert found.fdr == pytest.approx(2 / 3)
    assert found.fpr == pytest.approx(2 / 3)
    assert found.shd == 3
    assert found.edges == 3
    assert found.precision == found.recall == found.f1 == pytest.approx(1 / 3)
    assert found.skeleton_precision == found.skeleton_f1 == pytest.approx(2 / 3)


def test_undirected_edges() -> None:
    nodes = ["a", "b", "c", "d"]
    truth = DAG(nodes, [("a", "b"), ("b", "c")])
    found = edge_metrics(truth, PDAG(nodes, [("b", "c")], [("a", "b"), ("c", "d")]))
    assert found.tpr == 1
    assert found.fdr == pytest.approx(1 / 3)
    assert found.shd == 1
    assert found.precision == 1
    assert found.recall == 0.5
    assert found.skeleton_recall == 1


def test_nothing_to_find_and_nothing_claimed() -> None:
    nodes = ["a", "b"]
    empty, full = DAG(nodes), DAG(nodes, [("a", "b")])
    both = edge_metrics(empty, empty)
    assert (both.precision, both.recall, both.f1, both.fdr, both.shd) == (1, 1, 1, 0, 0)
    none = edge_metrics(full, empty)
    assert (none.precision, none.recall, none.f1, none.tpr, none.shd) == (1, 0, 0, 0, 1)
    invented = edge_metrics(empty, full)
    assert (invented.precision, invented.recall, invented.f1) == (0, 1, 0)


def test_refusals() -> None:
    dag = DAG(["a", "b"], [("a", "b")])
    with pytest.raises(GraphError, match="true DAG"):
        edge_metrics(dag.cpdag(), dag)  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="same nodes"):
        edge_metrics(dag, DAG(["a", "z"]))
    with pytest.raises(GraphError, match="must be a DAG"):
        edge_metrics(dag, "a -> b")  # type: ignore[arg-type]
