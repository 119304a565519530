"""Moves by the criterion itself: the score they follow, its price, and what they gain."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from isthmus import simulate
from isthmus.graphs import DAG, Knowledge
from isthmus.metrics import shd
from isthmus.objectives.smooth import LikelihoodLoss, QuadraticLoss
from isthmus.searches.base import SearchResult
from isthmus.searches.notears import Notears
from isthmus.searches.notears_penalties import EdgePrice, EqualNoiseEBIC, left_by
from isthmus.watch import drive

Floats = NDArray[np.float64]


def moments(rows: Floats) -> Floats:
    found: Floats = np.cov(rows, rowvar=False, bias=True)
    return found


def drawn(d: int, n: int, seed: int) -> tuple[DAG, QuadraticLoss]:
    dag = simulate.erdos_renyi(d, 2 * d, seed=seed)
    return dag, QuadraticLoss(dag.nodes, moments(simulate.linear(dag, n, seed=seed).array()), n)


def learned(
    search: Notears, loss: QuadraticLoss, knowledge: Knowledge | None = None
) -> SearchResult:
    bound = (knowledge or Knowledge()).bind(loss.nodes)
    return drive(partial(search.search, loss, bound, np.random.default_rng(0)), "test")[0]


def left_slowly(matrix: Floats, child: int, parents: tuple[int, ...]) -> float:
    p = list(parents)
    fit = np.linalg.lstsq(matrix[np.ix_(p, p)], matrix[p, child], rcond=1e-12)[0]
    return float(matrix[child, child] - matrix[p, child] @ fit)


@pytest.mark.parametrize("loss", [QuadraticLoss, LikelihoodLoss])
def test_scores_of_parent_sets(loss: type[QuadraticLoss] | type[LikelihoodLoss]) -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(50, 5)) @ np.triu(rng.normal(size=(5, 5))) * [1.0, 10.0, 0.1, 1.0, 5.0]
    matrix = moments(rows)
    score = loss("abcde", matrix).subset_score(0.25)
    for child in range(5):
        others = [v for v in range(5) if v != child]
        for size in range(5):
            for parents in itertools.combinations(others, size):
                left = left_slowly(matrix, child, parents)
                worth = 0.5 * (np.log(left) if loss is LikelihoodLoss else left)
                found = score.local(child, parents)
                assert found == pytest.approx(-worth - 0.25 * size, rel=1e-9)


def test_constants_and_copies_earn_nothing() -> None:
    rows = np.random.default_rng(1).normal(size=(30, 3))
    rows = np.column_stack([rows, np.full(30, 7.0), rows[:, 0]])
    matrix = moments(rows)
    score = QuadraticLoss("abcde", matrix).subset_score(0.25)
    assert score.local(3, ()) == 0.0
    assert score.local(3, (0, 1)) == -0.5
    assert score.local(1, (3,)) == pytest.approx(score.local(1, ()) - 0.25, rel=1e-12)
    assert score.local(1, (0, 4)) == pytest.approx(score.local(1, (0,)) - 0.25, rel=1e-12)


@pytest.mark.long
@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(3, 9), st.integers(5, 500))
def test_a_lower_price_means_a_lower_criterion(seed: int, d: int, n: int) -> None:
    """The criterion lies below its tangent, for edges of typical weight."""
    rng = np.random.default_rng(seed)
    pairs, criterion = d * (d - 1) // 2, EqualNoiseEBIC()
    left = rng.exponential(size=(2, d)) + 1e-3
    counts = rng.integers(1, pairs, size=2)
    typical = 0.5 * np.log(n * d)
    price = criterion.price(left[0], int(counts[0]), n).price
    noise = float(left[0].mean())
    tangent = (0.5 * (left[1] - left[0]).sum() + price * (counts[1] - counts[0])) / noise
    values = [
        criterion.total(x, float(c) * typical, int(c), n) for x, c in zip(left, counts, strict=True)
    ]
    # The logarithm stands for a digamma function, which it misses by 1/24 at most.
    slack = 0.05 * abs(int(counts[1] - counts[0])) / n
    if price > 0.0:
        assert values[1] - values[0] <= tangent + slack + 1e-9


def test_what_parents_leave() -> None:
    dag, loss = drawn(6, 40, 0)
    kept = dag.adjacency()
    slow = [
        left_slowly(loss.matrix, j, tuple(np.flatnonzero(kept[:, j]).tolist())) for j in range(6)
    ]
    np.testing.assert_allclose(left_by(kept, loss.matrix), slow, rtol=1e-9)


@pytest.mark.long
def test_few_rows_of_a_sparse_graph() -> None:
    """The path alone has a mean of 78 over these draws."""
    errors, sharper = [], 0
    for seed in range(100, 104):
        dag, loss = drawn(50, 20, seed)
        found = learned(Notears(), loss)
        errors.append(shd(DAG.from_parents(dag.nodes, found.parents), dag))
        sharper += isinstance(found.details.penalty, EdgePrice)
        path = found.details.path
        assert isinstance(path, tuple)
        assert found.details.criterion == min(row["criterion"] for row in path)
    assert sharper >= 3
    assert np.mean(errors) < 55


@pytest.mark.long
def test_refinement_ends_in_an_optimum_near_the_graph() -> None:
    """From here the path ends four edges off, in a minimum of the objective with ℓ1."""
    dag, loss = drawn(100, 1000, 3)
    found = learned(Notears(), loss)
    assert shd(DAG.from_parents(dag.nodes, found.parents), dag) <= 4
    residual = found.details.kkt_residual
    assert isinstance(residual, float)
    assert residual < 1e-8


@pytest.mark.long
def test_sharper_graphs_obey_knowledge() -> None:
    dag, loss = drawn(50, 20, 100)
    free = DAG.from_parents(dag.nodes, learned(Notears(), loss).parents)
    first, last = free.topological_order()[0], free.topological_order()[-1]
    forbidden = free.edges[:2]
    knowledge = Knowledge(required=[(last, first)], forbidden=forbidden)
    found = learned(Notears(), loss, knowledge)
    assert isinstance(found.details.penalty, EdgePrice)
    edges = DAG.from_parents(dag.nodes, found.parents).edges
    assert (last, first) in edges
    assert not set(forbidden) & set(edges)
