"""The parts of the path: barrier, penalties, orders, moves."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.objectives.test_additive import make
from tests.searches.continuous.test_acyclicity import log_determinant as reference

from isthmus.arrays import Work, completed
from isthmus.graphs import DAG, Knowledge
from isthmus.graphs.names import order_of
from isthmus.kernels.continuous import acyclic_part
from isthmus.objectives import QuadraticAdditiveLoss
from isthmus.searches import Watch, order_descent
from isthmus.searches.central_path import (
    CentralPath,
    PathProblem,
    PathStage,
    allowed_edges,
    log_determinant,
)
from isthmus.searches.notears_additive import NotearsAdditive
from isthmus.searches.notears_mlp import NodeLasso
from isthmus.searches.order_descent import SolvedOrder

Floats = NDArray[np.float64]


def test_barrier_is_the_log_determinant() -> None:
    rng = np.random.default_rng(0)
    weights = 0.3 * rng.normal(size=(5, 5))
    np.fill_diagonal(weights, 0.0)
    found = completed(log_determinant(weights * weights, 0.9))
    assert found is not None
    value, gradient = reference(weights, 0.9)
    assert found[0] == pytest.approx(value, abs=1e-12)
    np.testing.assert_allclose(found[1] * 2 * weights, gradient, atol=1e-12)
    assert completed(log_determinant(np.full((3, 3), 1.0), 1.0)) is None
    # However heavy the edges: without a cycle there is nothing to pay.
    heavy = completed(log_determinant(100.0 * np.triu(np.ones((4, 4)), 1), 1.0))
    assert heavy is not None
    assert heavy[0] == pytest.approx(0.0)


@pytest.mark.parametrize("grouped", [False, True])
def test_gradient_of_the_whole_is_that_of_finite_differences(*, grouped: bool) -> None:
    loss, features, _ = make("squares")
    rows = features.shape[1]

    def flat(x: Floats) -> Work[tuple[float, Floats]]:
        value, gradient = yield from loss.evaluation(x.reshape(rows, 4))
        return value, gradient.ravel()

    edge = (loss.owner[:, None] * 4 + np.arange(4)).ravel()
    problem = PathProblem(
        flat,
        np.zeros(rows * 4),
        edge,
        4,
        4,
        ~np.eye(4, dtype=np.bool_),
        np.full((4, 4), 0.1),
        grouped,
    )
    path = CentralPath(problem)
    completed(path._begin())
    stage = PathStage(0.3, 1.0, 1e-6, 10)
    x = 0.1 * np.random.default_rng(1).normal(size=rows * 4)
    x[edge % 5 == 0] = 0.0  # nothing acts on itself

    def value(x: Floats) -> tuple[float, Floats]:
        return completed(path._value(x, stage))

    _, gradient = value(x)
    step = 1e-6
    for k in np.flatnonzero(edge % 5):
        up, down = x.copy(), x.copy()
        up[k] += step
        down[k] -= step
        change = (value(up)[0] - value(down)[0]) / (2 * step)
        assert gradient[k] == pytest.approx(change, abs=1e-7)
    assert not gradient[edge % 5 == 0].any()


@pytest.mark.long
@given(st.integers(0, 10_000), st.integers(2, 7))
def test_the_heaviest_acyclic_graph_is_acyclic_and_holds_what_is_required(
    seed: int, d: int
) -> None:
    rng = np.random.default_rng(seed)
    weights = np.abs(rng.normal(size=(d, d)))
    required = np.triu(rng.random((d, d)) < 0.2, 1)
    part = acyclic_part(weights, required, 0.5)
    names = [f"x{i}" for i in range(d)]
    dag = DAG.from_adjacency(names, part)  # refuses a cycle
    assert (part | ~required).all()
    order = order_of(part)
    assert order is not None
    assert all(order.index(i) < order.index(j) for i, j in np.argwhere(part))
    # What was left out is light, or would close a cycle.
    for i, j in np.argwhere(~part):
        if i != j and weights[i, j] > 0.5:
            assert names[i] in dag.descendants(names[j])


def test_nothing_is_allowed_against_what_is_required() -> None:
    known = Knowledge(required=[("a", "b"), ("b", "c")], forbidden=[("a", "d")])
    allowed = allowed_edges(known.bind(list("abcd")), 4)
    assert not allowed[2, 0]
    assert not allowed[1, 0]
    assert not allowed[0, 3]
    assert allowed[0, 2]


def small_problem(seed: int, d: int = 5) -> QuadraticAdditiveLoss:
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.normal(size=(d, d)) * (rng.random((d, d)) < 0.6), 1)
    x = rng.normal(size=(200, d)) @ np.linalg.inv(np.eye(d) - weights)
    x = x[:, rng.permutation(d)]
    s = np.cov(x.T, bias=True)
    return QuadraticAdditiveLoss([f"x{i}" for i in range(d)], np.arange(d), s, s, s.diagonal())


def best_of_all_orders(loss: QuadraticAdditiveLoss, penalty: float) -> float:
    d = loss.targets
    known: dict[tuple[int, frozenset[int]], float] = {}

    def node(target: int, before: tuple[int, ...]) -> float:
        key = target, frozenset(before)
        if key not in known:
            lasso = NodeLasso(loss, target, sorted(before), np.full(d, penalty))
            known[key] = lasso.value(completed(lasso.solve(np.zeros(d)))[0])
        return known[key]

    orders = itertools.permutations(range(d))
    return min(sum(node(v, order[:k]) for k, v in enumerate(order)) for order in orders)


@pytest.mark.long
def test_objective_is_compared_with_the_best_of_all_orders() -> None:
    penalty, reached = 0.05, 0
    for seed in range(10):
        loss = small_problem(seed)
        least = best_of_all_orders(loss, penalty)
        free = Knowledge().bind(loss.nodes)
        values = []
        for sweeps in (0, 10):
            search, rng = NotearsAdditive(penalty, 0.0, sweeps), np.random.default_rng(0)
            values.append(search.search(loss, free, rng, Watch()).score)
        assert values[1] <= values[0] + 1e-9
        assert values[1] >= least - 1e-9
        reached += values[1] <= least + 1e-6
    assert reached >= 9


@pytest.mark.parametrize("kind", ["squares", "profiled"])
def test_quick_solver_agrees_with_the_exact_one(kind: str) -> None:
    loss, features, _ = make(kind, n=200)
    rows = features.shape[1]
    open_ = ~np.eye(4, dtype=np.bool_)
    none = np.zeros((4, 4), dtype=np.bool_)
    descent = SolvedOrder(
        loss, open_, none, np.full((4, 4), 0.03), [2, 0, 3, 1], np.zeros((rows, 4))
    )
    for target in range(4):
        completed(descent.settle(target))
    nearly = descent.coefficients
    for target in range(4):
        completed(descent.finish(target))
    np.testing.assert_allclose(nearly, descent.coefficients, atol=1e-5)
    assert descent.residual < 1e-9


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
def test_places_that_cannot_be_better_are_not_tried(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    d = 12
    loss = small_problem(seed, d)
    open_, none = ~np.eye(d, dtype=np.bool_), np.zeros((d, d), dtype=np.bool_)
    descents = []
    for safe in (order_descent._SAFE, np.inf):
        monkeypatch.setattr(order_descent, "_SAFE", safe)
        penalties = np.full((d, d), 0.05)
        descent = SolvedOrder(loss, open_, none, penalties, list(range(d)), np.zeros((d, d)))
        for target in range(d):
            completed(descent.settle(target))
        for node in list(range(d)) * 3:
            completed(descent.move(node))
        descents.append(descent)
    bounded, whole = descents
    assert bounded.order == whole.order
    assert bounded.value == pytest.approx(whole.value, abs=1e-6)
    assert len(bounded._fits) < len(whole._fits)
