"""RBNets as published: the order of the final policy, and the two ways to explore."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import ArgumentError
from isthmus.published import rbnets

pytestmark = pytest.mark.skipif(find_spec("jax") is None, reason="jax is not installed")


@pytest.mark.long
def test_the_network_is_the_best_along_the_order_of_the_policy() -> None:
    data = ist.datasets.asia(rows=300, seed=1)
    result = rbnets(data, episodes=20, seed=2)
    best = ist.learn(data, score=ist.BIC(), search=ist.KnownOrder(result.order, exact=True))
    assert result.score == pytest.approx(best.score)
    assert ist.score(data, result.dag, ist.BIC()) == pytest.approx(result.score)
    optimum = ist.learn(data, score=ist.BIC(), search=ist.AStar()).score
    assert optimum is not None
    assert len(result.walks) == 20
    assert max(*result.walks, result.score) <= optimum + 1e-6


@pytest.mark.long
def test_exploration_is_reproducible_and_can_be_chosen() -> None:
    rng = np.random.default_rng(0)
    a = rng.random(200) < 0.5
    table = {"a": a, "b": a ^ (rng.random(200) < 0.1), "c": rng.random(200) < 0.5}
    bound = rbnets(table, episodes=3, seed=1)
    greedy = rbnets(table, episodes=3, epsilon=0.0, seed=1)
    random = rbnets(table, episodes=3, epsilon=1.0, seed=1)
    again = rbnets(table, episodes=3, epsilon=1.0, seed=1)
    np.testing.assert_array_equal(random.walks, again.walks)
    assert bound.score == pytest.approx(greedy.score)  # any order is optimal for one edge


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ArgumentError, match="epsilon"):
        rbnets(ist.datasets.asia(rows=20), epsilon=2.0)
    with pytest.raises(ArgumentError, match="episodes"):
        rbnets(ist.datasets.asia(rows=20), episodes=0)
