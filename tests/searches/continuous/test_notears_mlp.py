"""Small neural networks: the loss by hand, and learning from the front door."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from importlib.util import find_spec

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.patience import LATENESS
from tests.searches.watching import Polls

import isthmus as ist
from isthmus import simulate
from isthmus.arrays import completed
from isthmus.errors import ArgumentError, MismatchError
from isthmus.graphs import Knowledge
from isthmus.neural import perceptron
from isthmus.objectives.smooth import ParametricLoss
from isthmus.results import Ending
from isthmus.scores import losses
from isthmus.statistics import Rows, Schema
from isthmus.watch import Watch

pytestmark = pytest.mark.skipif(find_spec("jax") is None, reason="jax is not installed")

Floats = NDArray[np.float64]


def slow(parameters: Floats, x: Floats, hidden: int, ridge: float) -> float:
    """The loss with a loop over rows, nodes and units."""
    n, d = x.shape
    first = parameters[: d * d * hidden].reshape(d, d, hidden)
    rest = parameters[d * d * hidden :]
    bias, outer = rest[: 2 * d * hidden].reshape(2, d, hidden)
    last = rest[2 * d * hidden :]
    total = 0.0
    for r in range(n):
        for j in range(d):
            predicted = last[j]
            for m in range(hidden):
                z = bias[j, m] + sum(x[r, i] * first[i, j, m] for i in range(d))
                predicted += outer[j, m] / (1.0 + np.exp(-z))
            total += (x[r, j] - predicted) ** 2
    return float(total / (2 * n) + 0.5 * ridge * ((first**2).sum() + (outer**2).sum()))


def small_loss(seed: int = 0) -> tuple[ParametricLoss, Floats, Floats]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(7, 3))
    loss = ist.Perceptrons(hidden=2, ridge=0.1).bind(Rows(Schema.continuous("abc"), x))
    # The networks see centred columns in units of the smallest standard deviation.
    x = (x - x.mean(axis=0)) / x.std(axis=0).min()
    return loss, x, rng.normal(size=len(loss.edge))


def test_value_is_that_of_a_loop() -> None:
    loss, x, parameters = small_loss()
    value, _ = loss.value_and_gradient(parameters)
    assert value == pytest.approx(slow(parameters, x, 2, 0.1), rel=1e-6)


def test_gradient_is_that_of_finite_differences() -> None:
    loss, x, parameters = small_loss()
    _, gradient = loss.value_and_gradient(parameters)
    assert gradient.dtype == np.float64
    step = 1e-6
    for k in range(len(parameters)):
        up, down = parameters.copy(), parameters.copy()
        up[k] += step
        down[k] -= step
        change = (slow(up, x, 2, 0.1) - slow(down, x, 2, 0.1)) / (2 * step)
        assert gradient[k] == pytest.approx(change, abs=1e-6)


def test_a_node_does_not_depend_on_a_cause_whose_parameters_are_zero() -> None:
    loss, x, parameters = small_loss()
    parameters[loss.edge == 0 * 3 + 1] = 0.0  # a -> b
    moved = x.copy()
    moved[:, 0] += 1.0
    d, hidden = 3, 2
    first = parameters[: d * d * hidden].reshape(d, d * hidden)
    for rows in (x, moved):
        into_b = (rows @ first)[:, hidden : 2 * hidden]
        np.testing.assert_allclose(into_b, (x @ first)[:, hidden : 2 * hidden])


@pytest.mark.long
def test_no_global_flag_is_touched() -> None:
    code = """
import jax, jax.numpy as jnp, numpy as np
import isthmus as ist
x = np.random.default_rng(0).normal(size=(50, 3))
ist.learn(x, search=ist.NotearsMLP(), time_limit=0.0)
assert not jax.config.jax_enable_x64
assert jnp.ones(2).dtype == jnp.float32
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def data(seed: int, d: int = 5, n: int = 400) -> simulate.Simulation:
    dag = simulate.erdos_renyi(d, d, seed=seed)
    return simulate.nonlinear(dag, n, mechanism=simulate.MLP(hidden=10), seed=seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1])
def test_curved_relations_are_found(seed: int) -> None:
    truth = data(seed, n=800)
    solution = ist.learn(truth.data, search=ist.NotearsMLP())
    assert "Perceptrons" in solution.choice
    assert ist.shd(solution.dag, truth.dag) <= 2
    residual = solution.details.kkt_residual
    assert isinstance(residual, float)
    assert residual < 1e-6
    assert solution.status.ending is Ending.CONVERGED
    if seed == 0:
        again = ist.learn(truth.data, search=ist.NotearsMLP())
        assert again.dag == solution.dag
        assert again.score == solution.score


@pytest.mark.long
def test_products_of_causes_are_found() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 1000))
    table = {"a": a, "b": b, "c": 2.0 * a * b + rng.normal(size=1000)}
    # No sum of curves in a and b explains a product; a network does.
    solution = ist.learn(table, search=ist.NotearsMLP())
    assert set(solution.dag.edges) == {("a", "c"), ("b", "c")}


@pytest.mark.long
def test_knowledge_is_kept() -> None:
    truth = data(2)
    a, b = truth.dag.edges[0]
    knowledge = Knowledge(required=[(b, a)])
    assert knowledge.allows(ist.learn(truth.data, search=ist.NotearsMLP(), knowledge=knowledge).dag)
    knowledge = Knowledge(forbidden=[(a, b)])
    assert knowledge.allows(ist.learn(truth.data, search=ist.NotearsMLP(), knowledge=knowledge).dag)


SMALL = pytest.param(
    20, marks=pytest.mark.skipif("ISTHMUS_LONG" not in os.environ, reason="half a minute")
)


@pytest.mark.long
@pytest.mark.parametrize("n", [SMALL, 100, 1000])
def test_networks_find_next_to_nothing_in_noise(n: int) -> None:
    edges = [
        len(
            ist.learn(
                np.random.default_rng(seed).normal(size=(n, 10)), search=ist.NotearsMLP()
            ).dag.edges
        )
        for seed in range(3)
    ]
    assert sum(edges) <= 2


@pytest.mark.long
def test_networks_do_not_depend_on_a_common_unit() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=1000)
    b = np.sin(2 * a) + 0.5 * rng.normal(size=1000)
    c = b**2 + 0.5 * rng.normal(size=1000)
    plain = ist.learn({"a": a, "b": b, "c": c}, search=ist.NotearsMLP())
    assert set(plain.dag.edges) == {("a", "b"), ("b", "c")}
    for factor in (1e-6, 7.0):
        table = {"a": factor * a, "b": factor * b, "c": factor * c}
        scaled = ist.learn(table, search=ist.NotearsMLP())
        assert scaled.dag == plain.dag
        assert scaled.score == pytest.approx(factor**2 * plain.score, rel=1e-6)
        assert scaled.status.ending is Ending.CONVERGED


@pytest.mark.long
def test_nodes_that_look_independent_are_left_out_and_products_are_not() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 40))
    x[:, 2] = 2.0 * x[:, 0] * x[:, 1] + rng.normal(size=500)
    loss = ist.Perceptrons().bind(Rows(Schema.continuous([f"x{i}" for i in range(40)]), x))
    dependent = completed(loss.looks_dependent())
    assert dependent[0, 2]
    assert dependent[2, 1]
    assert dependent.sum() <= 20
    assert np.array_equal(dependent, dependent.T)
    solution = ist.learn(x, search=ist.NotearsMLP())
    assert {("x0", "x2"), ("x1", "x2")} <= set(solution.dag.edges)
    assert len(solution.dag.edges) <= 6


def test_limits_and_refusals() -> None:
    truth = data(4, d=8)
    solution = ist.learn(truth.data, search=ist.NotearsMLP(), time_limit=0.3)
    assert solution.status.ending is Ending.TIME_LIMIT
    assert solution.details.kkt_residual > 0.0
    with pytest.raises(MismatchError, match=r"Perceptrons.* needs the rows"):
        ist.learn(ist.summarise(truth.data), search=ist.NotearsMLP())
    with pytest.raises(ArgumentError, match="hidden"):
        ist.Perceptrons(hidden=0)


@pytest.mark.long
@pytest.mark.parametrize("width", [1, 2, 4, 5])
def test_a_loss_in_pieces_is_that_at_once(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    n, d, hidden = 30, 5, 3
    x = rng.normal(size=(n, d))
    parameters = rng.normal(size=perceptron.size(d, hidden))
    value, gradient = perceptron.value_and_gradient(x, hidden, 0.1)(parameters)
    monkeypatch.setattr(perceptron, "_PIECE", width * 3 * n * d * hidden)
    evaluation = perceptron.evaluation(x, hidden, 0.1)
    for _ in range(2):  # the first time it is compiled
        found = completed(evaluation(parameters))
        assert found[0] == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(found[1], gradient, atol=1e-12)


def test_an_error_of_another_thread_is_raised_here() -> None:
    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        completed(perceptron._meanwhile(fail))


def test_ranks_are_those_of_scipy() -> None:
    from scipy.stats import rankdata

    column = np.random.default_rng(0).integers(0, 9, 50).astype(np.float64)
    np.testing.assert_array_equal(losses._ranks(column), rankdata(column))


@pytest.mark.long
@pytest.mark.timing
def test_every_step_is_short_with_many_variables() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 1000))
    x[:, 1:] += np.sin(x[:, :-1])
    names = [f"x{i}" for i in range(1000)]
    loss = ist.Perceptrons().bind(Rows(Schema.continuous(names), x))
    # Time of this process: others on a busy machine are not what is tested.
    polls, end = Polls(math.inf, time.process_time), time.process_time() + 4.0
    watch = Watch(stop=lambda: polls() or polls.times[-1] > end)
    known = Knowledge().bind(names)
    result = ist.NotearsMLP().search(loss, known, np.random.default_rng(0), watch)
    assert watch.stopped
    assert len(result.parents) == 1000
    assert max(polls.longest, time.process_time() - polls.times[-1]) < LATENESS
