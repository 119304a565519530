"""NOTEARS-ADMM as published, beside a plain version of Algorithm 1; voting and averaging."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus import simulate
from isthmus.errors import ArgumentError, GraphError, MismatchError
from isthmus.published import WeightedGraph, average, notears_admm, vote


def sites_of(dag: ist.DAG, rows: int, sites: int, seed: int) -> list[dict[str, np.ndarray]]:
    table = simulate.linear(dag, rows, seed=seed).data
    return [{name: column[k::sites] for name, column in table.items()} for k in range(sites)]


def algorithm_1(parts: list[np.ndarray], penalty: float, iterations: int) -> np.ndarray:
    """Equations 4 to 9 with one B and one β per site; equation 5 on positive and negative parts."""
    from scipy.linalg import expm
    from scipy.optimize import minimize

    d, n = parts[0].shape[1], sum(map(len, parts))
    moments = [(p - p.mean(axis=0)).T @ (p - p.mean(axis=0)) / n for p in parts]
    betas, common = [np.zeros((d, d)) for _ in parts], np.zeros((d, d))
    alpha, rho1, rho2 = 0.0, 0.001, 0.001
    free = [(0, 0) if i == j else (0, None) for i in range(d) for j in range(d)] * 2
    for _ in range(iterations):
        own = [
            np.linalg.solve(s + rho2 * np.eye(d), rho2 * common - b + s)
            for s, b in zip(moments, betas, strict=True)
        ]

        def value(
            both: Any,
            own: Any = own,
            betas: Any = betas,
            alpha: float = alpha,
            rho1: float = rho1,
            rho2: float = rho2,
        ) -> Any:
            w = (both[: d * d] - both[d * d :]).reshape(d, d)
            power = expm(w * w)
            h = np.trace(power) - d
            total = alpha * h + 0.5 * rho1 * h * h + penalty * both.sum()
            slope = (alpha + rho1 * h) * power.T * w * 2
            for b, beta in zip(own, betas, strict=True):
                total += (beta * (b - w)).sum() + 0.5 * rho2 * ((b - w) ** 2).sum()
                slope = slope - beta - rho2 * (b - w)
            # Divided by ρ2, so that the optimiser's tolerances mean the same in every iteration.
            gradient = np.concatenate([(slope + penalty).ravel(), (penalty - slope).ravel()])
            return total / rho2, gradient / rho2

        start = np.concatenate([np.maximum(common, 0).ravel(), np.maximum(-common, 0).ravel()])
        best = minimize(
            value, start, jac=True, method="L-BFGS-B", bounds=free,
            options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000},
        ).x  # fmt: skip
        common = (best[: d * d] - best[d * d :]).reshape(d, d)
        alpha += rho1 * (np.trace(expm(common * common)) - d)
        betas = [b + rho2 * (o - common) for b, o in zip(betas, own, strict=True)]
        rho1, rho2 = 1.75 * rho1, 1.25 * rho2
    return common


@pytest.mark.long
def test_the_weights_are_those_of_algorithm_1() -> None:
    dag = ist.DAG(["a", "b", "c", "d"], [("a", "b"), ("b", "c"), ("a", "d")])
    sites = sites_of(dag, 120, 3, seed=2)
    parts = [np.column_stack(list(site.values())) for site in sites]
    for iterations in (5, 40):
        found = notears_admm(sites, iterations=iterations).weights_before_threshold
        np.testing.assert_allclose(found, algorithm_1(parts, 0.01, iterations), atol=1e-4)
    assert notears_admm(sites).dag == dag


@pytest.mark.long
def test_a_federation_gives_the_same_as_plain_sums() -> None:
    dag = ist.DAG(["a", "b", "c"], [("a", "b"), ("b", "c")])
    sites = sites_of(dag, 90, 3, seed=1)
    plain = notears_admm(sites, iterations=25)
    federation = ist.Federation.simulate(sites)
    secure = notears_admm(federation, iterations=25)
    np.testing.assert_allclose(
        secure.weights_before_threshold, plain.weights_before_threshold, atol=1e-6
    )


@pytest.mark.long
def test_networks_find_a_curve() -> None:
    pytest.importorskip("jax")
    rng = np.random.default_rng(0)
    x = rng.normal(size=120)
    table = {"x": x, "y": np.sin(2 * x) * 2 + 0.3 * rng.normal(size=120)}
    sites = [{name: column[k::2] for name, column in table.items()} for k in range(2)]
    result = notears_admm(sites, model="perceptron", iterations=60)
    assert result.edges == (("x", "y"),)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ArgumentError, match="one table per site"):
        notears_admm([])
    with pytest.raises(ArgumentError, match="Series"):
        notears_admm([{"a": np.arange(3.0)}], model="dynamic")
    with pytest.raises(MismatchError, match="same columns"):
        notears_admm([{"a": np.arange(9.0)}, {"b": np.arange(9.0)}])


def test_more_than_half_must_have_an_edge() -> None:
    nodes = ("a", "b", "c")
    edges = [[("a", "b"), ("b", "c")], [("a", "b")], [("b", "c"), ("a", "c")], [("a", "b")]]
    result = vote([ist.DAG(nodes, own) for own in edges])
    assert result.edges == (("a", "b"),)
    assert result.weights_before_threshold[1, 2] == 0.5  # half is not more than half


def test_cycles_stay_and_take_no_other_edge_with_them() -> None:
    nodes = ("a", "b", "c", "d", "e")
    edges = [("a", "b"), ("b", "c"), ("c", "a")]
    graphs = [ist.DAG(nodes, [*pair, ("d", "e")]) for pair in pairwise([*edges, edges[0]])]
    result = vote(graphs)
    assert set(result.edges) == {*edges, ("d", "e")}
    assert result.cycle is not None


def test_equivalence_classes_are_refused() -> None:
    graph = ist.DAG(["a", "b"], [("a", "b")]).cpdag()
    with pytest.raises(GraphError, match="without a direction"):
        vote([graph, graph])  # type: ignore[list-item]


def test_weights_are_averaged_with_their_signs() -> None:
    one = np.array([[0.0, 1.0, 0.9], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    two = np.array([[0.0, 0.2, -0.9], [0.7, 0.0, 0.0], [0.0, 0.5, 0.0]])
    graphs = [WeightedGraph(("a", "b", "c"), w, 0.3) for w in (one, two)]
    assert average(graphs).edges == (("a", "b"), ("b", "a"))
    assert set(average(graphs, 0.2).edges) == {("a", "b"), ("b", "a"), ("c", "b")}
    with pytest.raises(GraphError, match="same nodes"):
        average([graphs[0], WeightedGraph(("a", "b", "d"), one, 0.3)])
