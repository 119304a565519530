"""Ensembles: every number against a loop over DAG objects."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.errors import ArgumentError, DataError, GraphError
from isthmus.graphs import DAG
from isthmus.results import Ensemble, edge, in_markov_blanket, path
from isthmus.testing import enumerate_dags

NAMES = ("ä", "b", "c", "d")
DAGS = tuple(enumerate_dags(NAMES))
WEIGHTS = np.random.default_rng(3).gamma(0.3, size=len(DAGS))
ENSEMBLE = Ensemble.from_dags(DAGS, WEIGHTS.tolist())


def slow(of: object) -> float:
    assert callable(of)
    return float(sum(w * of(g) for g, w in zip(DAGS, WEIGHTS, strict=True)) / WEIGHTS.sum())


def blanket(dag: DAG, of: str) -> set[str]:
    children = dag.children(of)
    return {*dag.parents(of), *children, *(p for c in children for p in dag.parents(c))} - {of}


def test_all_features_equal_those_of_the_graphs() -> None:
    edges, paths, blankets = (
        ENSEMBLE.edge_probabilities(),
        ENSEMBLE.path_probabilities(),
        ENSEMBLE.markov_blanket_probabilities(),
    )
    for i, a in enumerate(NAMES):
        for j, b in enumerate(NAMES):
            expected = slow(lambda g, a=a, b=b: g.has_edge(a, b))
            assert edges[i, j] == pytest.approx(expected, abs=1e-12)
            assert ENSEMBLE.probability(edge(a, b)) == pytest.approx(expected, abs=1e-12)
            expected = slow(lambda g, a=a, b=b: b in g.descendants(a))
            assert paths[i, j] == pytest.approx(expected, abs=1e-12)
            assert ENSEMBLE.probability(path(a, b)) == pytest.approx(expected, abs=1e-12)
            expected = slow(lambda g, a=a, b=b: a in blanket(g, b))
            assert blankets[i, j] == pytest.approx(expected, abs=1e-12)
            assert ENSEMBLE.probability(in_markov_blanket(a, of=b)) == pytest.approx(
                expected, abs=1e-12
            )


def test_any_function_of_a_graph_is_a_feature() -> None:
    assert ENSEMBLE.probability(lambda g: len(g.edges)) == pytest.approx(
        slow(lambda g: len(g.edges))
    )


def test_equivalence_classes_add_up() -> None:
    classes = ENSEMBLE.equivalence_classes()
    assert len(classes) == 185  # the number of equivalence classes of four nodes
    probabilities = [p for _, p in classes]
    assert probabilities == sorted(probabilities, reverse=True)
    assert sum(probabilities) == pytest.approx(1)
    first, probability = classes[0]
    assert probability == pytest.approx(slow(lambda g: g.cpdag() == first))
    compelled = ENSEMBLE.compelled_probabilities()
    assert compelled[0, 1] == pytest.approx(slow(lambda g: (NAMES[0], "b") in g.cpdag().directed))


def test_equal_graphs_are_joined() -> None:
    a, b = DAG(["x", "y"], [("x", "y")]), DAG(["y", "x"], [("x", "y")])
    ensemble = Ensemble.from_dags([a, b, DAG(["x", "y"])])
    assert len(ensemble) == 2
    assert ensemble.edge_probabilities()[0, 1] == pytest.approx(2 / 3)
    assert ensemble.dags[0] == a


def test_most_probable_and_median_graph() -> None:
    heaviest = int(np.argmax(WEIGHTS))
    assert ENSEMBLE.most_probable() == DAGS[heaviest]
    scores = np.arange(len(DAGS), dtype=float)
    scored = Ensemble(NAMES, ENSEMBLE.parents, ENSEMBLE.weights, scores)
    assert scored.most_probable() == ENSEMBLE.dags[-1]
    median = ENSEMBLE.median_graph()
    assert set(median.edges) == {
        (a, b)
        for i, a in enumerate(NAMES)
        for j, b in enumerate(NAMES)
        if ENSEMBLE.edge_probabilities()[i, j] > 0.5
    }


def test_a_median_graph_has_no_cycle() -> None:
    chains = [[("a", "b"), ("b", "c")], [("b", "c"), ("c", "a")], [("c", "a"), ("a", "b")]]
    ensemble = Ensemble.from_dags([DAG(list("abc"), chain) for chain in chains])
    assert set(ensemble.median_graph().edges) < {("a", "b"), ("b", "c"), ("c", "a")}
    assert len(ensemble.median_graph().edges) == 2
    assert ensemble.median_graph(0.9).edges == ()


@pytest.mark.parametrize("d", [1, 63, 64, 65, 130])
def test_any_number_of_nodes(d: int) -> None:
    names = [f"v{i}" for i in range(d)]
    rng = np.random.default_rng(d)
    dags = [
        DAG.from_adjacency(names, np.triu(rng.random((d, d)) < 2 / d, 1)[:, order][order])
        for order in [rng.permutation(d) for _ in range(5)]
    ]
    ensemble = Ensemble.from_dags(dags)
    assert set(ensemble.dags) == set(dags)
    np.testing.assert_allclose(
        ensemble.edge_probabilities(), np.mean([g.adjacency() for g in dags], axis=0), atol=1e-12
    )
    reached = [[names[j] in g.descendants(names[0]) for j in range(d)] for g in dags]
    np.testing.assert_allclose(
        ensemble.path_probabilities()[0], np.mean(reached, axis=0), atol=1e-12
    )


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(GraphError, match="no node 'q'"):
        ENSEMBLE.probability(edge("b", "q"))
    with pytest.raises(ArgumentError, match="a function of a DAG"):
        ENSEMBLE.probability("b")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="one graph at least"):
        Ensemble.from_dags([])
    with pytest.raises(ArgumentError, match="2 weights"):
        Ensemble.from_dags(DAGS[:1], [1.0, 2.0])
    with pytest.raises(DataError, match="some must be positive"):
        Ensemble.from_dags(DAGS[:1], [0.0])
    with pytest.raises(ArgumentError, match="threshold"):
        ENSEMBLE.median_graph(2.0)
