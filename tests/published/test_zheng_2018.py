"""NOTEARS as published: the rules of the authors' program, and what the optimum must satisfy."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pytest

import isthmus as ist
from isthmus import simulate
from isthmus.errors import ArgumentError, GraphError, SchemaError
from isthmus.published import WeightedGraph, notears

Matrix = npt.NDArray[np.float64]


def rules(x: Matrix, penalty: float) -> Matrix:
    """Follow the description of the authors' program step by step, without the library."""
    from scipy.linalg import expm
    from scipy.optimize import minimize

    n, d = x.shape
    x = x - x.mean(axis=0, keepdims=True)
    free = [(0, 0) if i == j else (0, None) for i in range(d) for j in range(d)] * 2
    state = {"rho": 1.0, "alpha": 0.0}

    def constraint(w: Matrix) -> tuple[float, Matrix]:
        power = expm(w * w)
        return float(np.trace(power)) - d, power.T * w * 2

    def value(both: Matrix) -> tuple[float, Matrix]:
        w = (both[: d * d] - both[d * d :]).reshape(d, d)
        rest = x - x @ w
        loss, slope = 0.5 / n * (rest**2).sum(), -1.0 / n * x.T @ rest
        h, away = constraint(w)
        total = loss + 0.5 * state["rho"] * h * h + state["alpha"] * h + penalty * both.sum()
        smooth = slope + (state["rho"] * h + state["alpha"]) * away
        return total, np.concatenate([(smooth + penalty).ravel(), (penalty - smooth).ravel()])

    best, h = np.zeros(2 * d * d), np.inf
    for _ in range(100):
        new, h_new = best, h
        while state["rho"] < 1e16:
            new = minimize(value, best, method="L-BFGS-B", jac=True, bounds=free).x
            h_new = constraint((new[: d * d] - new[d * d :]).reshape(d, d))[0]
            if h_new <= 0.25 * h:
                break
            state["rho"] *= 10
        best, h = new, h_new
        state["alpha"] += state["rho"] * h
        if h <= 1e-8 or state["rho"] >= 1e16:
            break
    return (best[: d * d] - best[d * d :]).reshape(d, d)


def drawn(seed: int) -> Mapping[str, Matrix]:
    d = 3 + seed % 4
    dag = simulate.erdos_renyi(d, d - seed % 2, seed=seed)
    return simulate.linear(dag, (20, 60, 300)[seed % 3], seed=seed).data


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_the_weights_are_those_of_the_rules(seed: int) -> None:
    table = drawn(seed)
    wanted = rules(np.column_stack(list(table.values())), 0.1)
    result = notears(table)
    np.testing.assert_allclose(result.weights_before_threshold, wanted, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(result.weights != 0, np.abs(wanted) >= 0.3)
    assert result.h <= 1e-8


def test_the_objective_is_printed_equation_2() -> None:
    """At the optimum no single weight that keeps the graph acyclic can lower F(W)."""
    table = drawn(2)
    x = np.column_stack(list(table.values()))
    x = x - x.mean(axis=0)
    w = notears(table, penalty=0.2).weights_before_threshold

    def objective(weights: Matrix) -> float:
        loss = 0.5 / len(x) * ((x - x @ weights) ** 2).sum()
        return float(loss + 0.2 * np.abs(weights).sum())

    for i, j in np.argwhere(np.abs(w) > 0.1):
        for step in (-1e-2, 1e-2):
            moved = w.copy()
            moved[i, j] += step
            assert objective(moved) > objective(w)


def test_a_cycle_stays_and_the_error_says_what_to_do() -> None:
    from scipy.linalg import expm

    ring = np.array([[0.0, 0.5, 0.0], [0.0, 0.0, -0.4], [0.6, 0.0, 0.0]])
    graph = WeightedGraph(("a", "b", "c"), ring, 0.3)
    assert set(graph.edges) == {("a", "b"), ("b", "c"), ("c", "a")}
    assert set(graph.cycle or ()) == {"a", "b", "c"}
    assert graph.h == pytest.approx(np.trace(expm(ring**2)) - 3)
    with pytest.raises(GraphError, match="threshold"):
        _ = graph.dag
    assert WeightedGraph(("a", "b", "c"), ring, 0.45).dag.edges == (("a", "b"), ("c", "a"))


def test_what_does_not_fit_is_refused() -> None:
    table = drawn(0)
    with pytest.raises(ArgumentError, match="penalty"):
        notears(table, penalty=-1)
    with pytest.raises(ArgumentError, match="progress_rate"):
        notears(table, progress_rate=1.0)
    with pytest.raises(SchemaError):
        notears(ist.datasets.asia(rows=20))
