"""Above two hundred variables: the order is looked for under a penalty of its own."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from isthmus import simulate
from isthmus.arrays import completed
from isthmus.graphs import DAG, Knowledge
from isthmus.kernels.continuous import order_along
from isthmus.metrics import shd
from isthmus.objectives.smooth import QuadraticLoss
from isthmus.searches.notears import Notears
from isthmus.searches.notears_penalties import L1, L1ByParent, Penalty
from isthmus.searches.relaxation import LogDet, Task, lasso_along
from isthmus.watch import Ending, drive

Floats = NDArray[np.float64]


def drawn(d: int, n: int, seed: int, edges: int = 2) -> tuple[DAG, QuadraticLoss]:
    dag = simulate.erdos_renyi(d, edges * d, seed=seed)
    rows = simulate.linear(dag, n, seed=seed).array()
    return dag, QuadraticLoss(dag.nodes, np.cov(rows, rowvar=False, bias=True), n)


def test_a_weight_for_each_parent_against_differences() -> None:
    penalty = L1ByParent(np.array([0.1, 0.0, 2.0]))
    weights = np.array([[0.0, 0.3, -2.0], [1.0, 0.0, 0.2], [-0.7, 0.1, 0.0]])
    off = ~np.eye(3, dtype=bool)
    rise = (penalty.value(weights + 1e-6) - penalty.value(weights - 1e-6)) / 2e-6
    expected = penalty.slope(weights) * np.sign(weights)
    np.testing.assert_allclose(rise[off], expected[off], atol=1e-8)
    assert penalty.value(weights)[2, 0] == pytest.approx(1.4)


def relaxed(loss: QuadraticLoss, penalty: Penalty) -> Floats:
    d = len(loss.nodes)
    none = np.zeros((d, d), np.bool_)
    task = Task(loss, ~np.eye(d, dtype=bool), none, np.random.default_rng(0))
    relaxation = LogDet().begin(task, penalty)
    while not relaxation.step():
        pass
    return relaxation.weights()


@pytest.mark.long
def test_with_the_spread_of_the_parents_fewer_weights_give_a_better_order() -> None:
    found = []
    dag, loss = drawn(150, 300, 1)
    spread = np.sqrt(np.diagonal(loss.matrix))
    for penalty in (L1(0.1), L1ByParent(2.0 * np.sqrt(np.log(150) / 300) * spread)):
        weights = relaxed(loss, penalty)
        place = np.argsort(order_along(weights, np.zeros((150, 150), np.bool_)))
        backward = int((dag.adjacency() & (place[:, None] > place[None, :])).sum())
        found.append((np.count_nonzero(weights), backward))
    (plain, against), (fewer, least) = found
    assert fewer < plain / 3
    assert least <= against


@pytest.mark.long
def test_two_hundred_and_twenty_variables_are_learned_without_a_mistake() -> None:
    dag, loss = drawn(220, 1000, 0)
    knowledge = Knowledge().bind(loss.nodes)
    found, status = drive(
        partial(Notears().search, loss, knowledge, np.random.default_rng(0)), "test"
    )
    assert status.ending is Ending.CONVERGED
    assert shd(DAG.from_parents(dag.nodes, found.parents), dag) == 0


def test_the_penalty_of_the_problem_is_still_that_of_the_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, loss = drawn(30, 200, 3)
    search, knowledge = Notears(penalty=0.05), Knowledge().bind(loss.nodes)
    values = []
    for coarse in (200, 10):
        monkeypatch.setattr("isthmus.searches.notears.COARSE", coarse)
        found, _ = drive(partial(search.search, loss, knowledge, np.random.default_rng(0)), "test")
        assert found.details.penalty == L1(0.05)
        assert found.details.kkt_residual < 1e-8
        values.append(found.score)
    assert values[1] == pytest.approx(values[0], rel=1e-2)


def test_estimated_losses_do_not_let_the_objective_rise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isthmus.searches.relaxation.COARSE", 10)
    dag = simulate.scale_free(50, 4, hubs=simulate.Hubs.EFFECTS, seed=2)
    rows = simulate.linear(dag, 300, seed=2).array()
    loss = QuadraticLoss(dag.nodes, np.cov(rows, rowvar=False, bias=True), 300)
    none = np.zeros((50, 50), np.bool_)
    task = Task(loss, ~np.eye(50, dtype=bool), none, np.random.default_rng(0))
    order = np.random.default_rng(1).permutation(50)
    going = lasso_along(task, L1(0.05), order, np.zeros((50, 50)), refine=True)
    monkeypatch.setattr("isthmus.searches.relaxation._SLICE", 1e-4)
    values = []
    while not going.step():
        if going.settled:
            weights = completed(going.weights())
            values.append(completed(task.objective_and_gradient(L1(0.05), weights))[0])
    falls = -np.diff(values)
    assert (falls > 0.0).sum() > 20
    assert falls.min() > -1e-9
