"""Ensembles: every number against a loop over DAG objects."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from isthmus.errors import ArgumentError, DataError, FormatError, GraphError
from isthmus.graphs import DAG
from isthmus.results import Disclosure, Ensemble, Release, edge, in_markov_blanket, path
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


@pytest.mark.parametrize("value", ["many", None, [1.0], 1j])
def test_a_feature_gives_a_number(value: object) -> None:
    with pytest.raises(ArgumentError, match="Boolean or a number"):
        ENSEMBLE.probability(lambda _: value)  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("value", [np.True_, np.float32(1.0), 1, True])
def test_any_kind_of_number_will_do(value: float) -> None:
    assert ENSEMBLE.probability(lambda _: value) == pytest.approx(1.0)


@pytest.mark.parametrize("threshold", ["half", None, -0.1, 1.5, float("nan")])
def test_a_threshold_is_a_probability(threshold: object) -> None:
    with pytest.raises(ArgumentError, match="threshold"):
        ENSEMBLE.median_graph(threshold)  # type: ignore[arg-type]


def test_graphs_are_words() -> None:
    with pytest.raises(ArgumentError, match="64-bit words"):
        Ensemble(NAMES, np.zeros((1, 4, 1)), np.ones(1))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"log_scores .*\(1,\)"):
        Ensemble(NAMES, np.zeros((1, 4, 1), np.uint64), np.ones(1), np.zeros(2))


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


def test_adjacencies_and_directions_equal_those_of_the_graphs() -> None:
    either, direction = ENSEMBLE.adjacency_probabilities(), ENSEMBLE.direction_probabilities()
    for i, a in enumerate(NAMES):
        for j, b in enumerate(NAMES):
            forward = slow(lambda g, a=a, b=b: g.has_edge(a, b))
            backward = slow(lambda g, a=a, b=b: g.has_edge(b, a))
            assert either[i, j] == pytest.approx(forward + backward, abs=1e-12)
            share = forward / (forward + backward) if i != j else 0.0
            assert direction[i, j] == pytest.approx(share, abs=1e-12)
    assert not Ensemble.from_dags([DAG(NAMES)]).direction_probabilities().any()


@pytest.mark.parametrize("seed", range(20))
def test_threshold_minimises_the_distance_to_a_step_function(seed: int) -> None:
    rng = np.random.default_rng(seed)
    nodes = tuple("abcdef")
    chance = rng.beta(0.4, 0.6, size=(6, 6))
    dags = [
        DAG.from_adjacency(nodes, np.triu(rng.random((6, 6)) < chance, 1))
        for _ in range(21 + 2 * seed)
    ]
    ensemble = Ensemble.from_dags(dags)
    either = ensemble.adjacency_probabilities()[np.triu_indices(6, 1)]
    # By brute force: F(x) - t integrated on a grid, all t tried. An odd number of graphs has no
    # share of exactly one half, where two values of t would be equally good.
    grid = (np.arange(4000) + 0.5) / 4000
    cumulative = (either[None, :] <= grid[:, None] + 1e-12).mean(axis=1)
    tried = np.arange(len(either) + 1) / len(either)
    best = tried[np.argmin([np.abs(cumulative - t).mean() for t in tried])]
    significant = either > ensemble.threshold()
    assert (~significant).mean() == pytest.approx(best)
    averaged = ensemble.averaged_graph()
    assert averaged.skeleton().adjacency()[np.triu_indices(6, 1)].tolist() == significant.tolist()


def test_averaged_graph_keeps_every_edge_and_has_no_cycle() -> None:
    nodes = ("a", "b", "c")
    circle = [
        DAG(nodes, [("a", "b"), ("b", "c")]),
        DAG(nodes, [("b", "c"), ("c", "a")]),
        DAG(nodes, [("c", "a"), ("a", "b")]),
    ]
    ensemble = Ensemble.from_dags(circle, [5, 4, 4])
    assert len(ensemble.averaged_graph().edges) == 3
    assert ensemble.averaged_graph(0.65).edges == (("a", "b"), ("b", "c"))
    assert ensemble.averaged_graph(1.0).edges == ()
    with pytest.raises(ArgumentError, match="threshold"):
        ensemble.averaged_graph(1.5)
    assert "3 distinct graphs" in str(ensemble)


@pytest.mark.long
def test_plot() -> None:
    pytest.importorskip("matplotlib")
    ENSEMBLE.plot()


def test_files(tmp_path: Path) -> None:
    graphs = [DAG(["a", "b"], [("a", "b")]), DAG(["a", "b"])]
    disclosure = Disclosure((Release("hospital", "counts", "plain", 4),))
    notes = ("by hand",)
    ensemble = Ensemble.from_dags(graphs, [3, 1], notes=notes, disclosure=disclosure, rows=12)
    ensemble.save(tmp_path / "ensemble")
    again = Ensemble.load(tmp_path / "ensemble")
    assert (again.nodes, again.notes, again.dags) == (("a", "b"), ("by hand",), ensemble.dags)
    assert (again.disclosure, again.rows) == (disclosure, 12)
    np.testing.assert_array_equal(again.weights, ensemble.weights)
    content = (tmp_path / "ensemble").read_bytes()
    for damaged in (b"", content[:-40], content.replace(b"header", b"hebder")):
        (tmp_path / "damaged").write_bytes(damaged)
        with pytest.raises(FormatError, match="is not an ensemble"):
            Ensemble.load(tmp_path / "damaged")
