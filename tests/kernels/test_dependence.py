"""Gaussian scores where columns are exact linear combinations of others.

Equivalent graphs score the same, changes of unit do not matter, and a child that its parents
determine wins nothing by more parents.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
import pytest
from tests.kernels.problems import (
    NONE,
    TOLERANCE,
    Floats,
    correlate,
    likelihood_tables,
    matrix_score,
)

from isthmus.kernels.greedy import begin_hill_climb
from isthmus.kernels.scoring import LocalScore, gaussian_block_score, local

Graph = tuple[tuple[int, ...], ...]


def bic_of(x: Floats, *, gamma: float = 0.0) -> LocalScore:
    n, d = x.shape
    # Not np.cov, which takes one row for one column in NumPy 1.26.
    centred = x - x.mean(axis=0)
    covariance = centred.T @ centred / n
    return matrix_score(covariance, likelihood_tables(n, d, gamma=gamma))


def indicators(codes: Any) -> Floats:
    """Return a column per level but the last."""
    levels = np.unique(codes)
    return np.asarray(codes[:, None] == levels[None, :-1], dtype=np.float64)


def degenerate_of(blocks: list[Floats]) -> LocalScore:
    n = len(blocks[0])
    sizes = np.array([block.shape[1] for block in blocks])
    correlation, variance = correlate(np.cov(np.hstack(blocks), rowvar=False, bias=True))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    scale = np.add.reduceat(np.log(variance), starts[:-1])
    price = 0.5 * np.log(n)
    base = -0.5 * n * ((np.log(2.0 * np.pi) + 1.0) * sizes + scale)
    base -= price * (sizes + sizes * (sizes + 1) / 2.0)
    return gaussian_block_score(
        correlation, starts, base, half_n=0.5 * n, penalty=price, tolerance=TOLERANCE
    )


def all_graphs(d: int) -> list[Graph]:
    graphs = set()
    for order in permutations(range(d)):
        before = [order[:j] for j in range(d)]
        subsets = [
            [s for k in range(len(b) + 1) for s in combinations(sorted(b), k)] for b in before
        ]
        for chosen in product(*subsets):
            own = dict(zip(order, chosen, strict=True))
            graphs.add(tuple(own[v] for v in range(d)))
    return sorted(graphs)


def classes(d: int) -> list[list[Graph]]:
    """Group all graphs by skeleton and v-structures."""
    groups: dict[Any, list[Graph]] = defaultdict(list)
    for graph in all_graphs(d):
        edges = {frozenset((x, v)) for v, own in enumerate(graph) for x in own}
        colliders = {
            (pair, v)
            for v, own in enumerate(graph)
            for pair in combinations(own, 2)
            if frozenset(pair) not in edges
        }
        groups[frozenset(edges), frozenset(colliders)].append(graph)
    return list(groups.values())


CLASSES = classes(4)


def total(score: LocalScore, graph: Graph) -> float:
    return sum(local(score, v, own) for v, own in enumerate(graph))


def sum_of_two(n: int) -> Floats:
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(3, n))
    b = 10.0 * b
    return np.column_stack([a, b, a + b, a + c])


def total_dominated_by_one_part(n: int) -> Floats:
    rng = np.random.default_rng(1)
    a, b, c = rng.normal(size=(3, n))
    return np.column_stack([1e3 * a + b, a, b + 0.5 * c, b])


def copies(n: int) -> Floats:
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(2, n))
    return np.column_stack([a, -2.0 * a + 5.0, a + b, a])


def shares(n: int) -> Floats:
    rng = np.random.default_rng(3)
    x = rng.uniform(0.1, 1.0, size=(n, 4))
    return np.asarray(x / x.sum(axis=1, keepdims=True))


def plane(n: int) -> Floats:
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(2, n))
    return np.column_stack([a + b, a - b, a, 3.0 * a + b])


def nearly_dependent(n: int) -> Floats:
    """What is left of the total is at the tolerance: its rank is a matter of opinion."""
    rng = np.random.default_rng(5)
    a, b, c, e = rng.normal(size=(4, n))
    return np.column_stack([a, b, a + b + 1.7e-5 * e, a + c])


def few_rows(n: int) -> Floats:
    return np.random.default_rng(6).normal(size=(3, 4))


TABLES: list[Callable[[int], Floats]] = [
    sum_of_two,
    total_dominated_by_one_part,
    copies,
    shares,
    plane,
    nearly_dependent,
    few_rows,
]


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("gamma", [0.0, 0.5])
@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6])
def test_equivalent_graphs_score_the_same(
    table: Callable[[int], Floats], gamma: float, scale: float
) -> None:
    x = table(200)
    x = x * np.array([scale, 1.0, 1.0 / scale, 1.0])
    score = bic_of(x, gamma=gamma)
    assert len(CLASSES) == 185
    for group in CLASSES:
        totals = [total(score, graph) for graph in group]
        assert max(totals) - min(totals) <= 1e-9 * max(map(abs, totals))


@pytest.mark.parametrize("table", TABLES)
def test_the_order_of_columns_does_not_matter(table: Callable[[int], Floats]) -> None:
    if table is nearly_dependent:
        pytest.skip("which columns count as dependent may depend on their order here")
    x = table(200)
    order = np.array([2, 0, 3, 1])
    score, other = bic_of(x), bic_of(x[:, order])
    for v in range(4):
        others = [w for w in range(4) if w != v]
        for k in range(4):
            for parents in combinations(others, k):
                got = local(other, v, parents)
                want = local(score, int(order[v]), [int(order[p]) for p in parents])
                assert got == pytest.approx(want, rel=1e-8)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_units_do_not_matter(scale: float) -> None:
    x = sum_of_two(500)
    units = np.array([1.0, scale, 1.0 / scale, scale])
    score, other = bic_of(x), bic_of(x * units)
    shift = 500 * np.log(units)
    for v in range(4):
        for parents in ([], [w for w in range(4) if w != v], [(v + 1) % 4]):
            got, want = local(other, v, parents), local(score, v, parents)
            assert got + shift[v] == pytest.approx(want, rel=1e-8)


@pytest.mark.parametrize("table", TABLES)
def test_batches_are_the_scores_of_single_sets(table: Callable[[int], Floats]) -> None:
    x = np.column_stack([table(200), np.random.default_rng(9).normal(size=(len(table(200)), 40))])
    d = x.shape[1]
    for weight in (0.0, 0.25):
        constant, log_variance, _ = likelihood_tables(len(x), d)
        covariance = np.cov(x, rowvar=False, bias=True)
        score = matrix_score(covariance, (constant, log_variance, np.full(d + 1, weight)))
        for child in (0, 2, 3, 10):
            for parents in ([], [1], [4], [1, 5], [1, 20, 8]):
                own = np.array([p for p in parents if p != child], np.int64)
                candidates = np.array([v for v in range(d) if v != child and v not in own])
                got = score.extensions(child, own, candidates)
                want = [local(score, child, [*own, *j]) for j in ([], *([c] for c in candidates))]
                np.testing.assert_allclose(got, want, rtol=1e-9)
        several = np.array([1, 2, 3, 7, 9, 30])
        got = score.reductions(0, several)
        want = [local(score, 0, np.delete(several, i).tolist()) for i in range(6)]
        # A part that is a thousandth of the total is known to ten digits at most.
        np.testing.assert_allclose(got, want, rtol=1e-8)


def test_a_determined_child_wins_nothing_by_more_parents() -> None:
    rng = np.random.default_rng(7)
    n = 1000
    a, b, c = rng.normal(size=(3, n))
    columns = [a, b, a + b, a - b, a + c, a.copy(), 2.0 * a + 3.0 * b, rng.normal(size=n), c]
    score = bic_of(np.column_stack(columns))
    for child, parents in ((2, [0, 1]), (2, [0, 6]), (0, [5]), (5, [0]), (3, [1, 2]), (0, [1, 2])):
        others = [v for v in range(9) if v != child and v not in parents]
        values = score.extensions(child, np.array(parents), np.array(others))
        assert values[0] > local(score, child, parents[:1]) + 1000 or len(parents) == 1
        assert (values[1:] < values[0] - 3.0).all()


def test_a_redundant_parent_is_worth_nothing() -> None:
    """It changes what is explained of a child that is not determined by no more than its price."""
    rng = np.random.default_rng(8)
    n = 500
    a, b, e = rng.normal(size=(3, n))
    score = bic_of(np.column_stack([a, b, a + b, a.copy(), a - b + e]))
    best = local(score, 4, [0, 1])
    price = 0.5 * np.log(n)
    for parents, more in (([0, 1, 2], 1), ([0, 1, 3], 1), ([0, 1, 2, 3], 2), ([1, 2], 0)):
        assert local(score, 4, parents) == pytest.approx(best - more * price, rel=1e-9)


def best_graph(score: LocalScore) -> tuple[Graph, float]:
    values = {graph: total(score, graph) for graph in all_graphs(score.size)}
    best = max(values, key=lambda graph: values[graph])
    return best, values[best]


def test_a_sum_and_its_parts() -> None:
    """The first reproduction of the defect: the best graph is not complete."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 1000))
    score = bic_of(np.column_stack([a, 10.0 * b, a + 10.0 * b]))
    graph, _ = best_graph(score)
    assert sum(map(len, graph)) == 2


def test_a_search_ends_and_finds_the_best_graph() -> None:
    """The second reproduction: gains went round in a circle for ever."""
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(2, 100))
    c = a + rng.normal(size=100)
    score = bic_of(np.column_stack([a, b, c, a + b]))
    graph, value = best_graph(score)
    assert sum(map(len, graph)) < 6
    run = begin_hill_climb(score, seed=0)
    while not run.step():
        pass
    assert run.best()[1] == pytest.approx(value)


def test_a_code_and_its_coarser_version() -> None:
    """The third reproduction: blocks of indicators of which one determines the other."""
    rng = np.random.default_rng(1)
    city = rng.integers(0, 6, 1000)
    x = (city % 3 + rng.normal(size=1000))[:, None]
    blocks = [indicators(city), indicators(city // 2), x, rng.normal(size=(1000, 1))]
    score = degenerate_of(blocks)
    for group in CLASSES:
        totals = [total(score, graph) for graph in group]
        assert max(totals) - min(totals) <= 1e-9 * max(map(abs, totals))
    graph, _ = best_graph(score)
    assert sum(map(len, graph)) == 2
    for child, parents in ((0, [1]), (1, [0])):
        values = score.extensions(child, np.array(parents), np.array([3]))
        assert values[1] < values[0]


def test_blocks_of_many_levels() -> None:
    """A wide child is eliminated before its candidates; the scores are the same."""
    rng = np.random.default_rng(1)
    code = rng.integers(0, 40, 3000)
    blocks = [
        indicators(code),
        indicators(code % 5),
        rng.normal(size=(3000, 1)) + 0.1 * (code % 7)[:, None],
        indicators(rng.integers(0, 4, 3000)),
    ]
    score = degenerate_of(blocks)
    for group in CLASSES:
        totals = [total(score, graph) for graph in group]
        assert max(totals) - min(totals) <= 1e-9 * max(map(abs, totals))
    for child in range(4):
        others = np.array([v for v in range(4) if v != child])
        got = score.extensions(child, NONE, others)
        want = [local(score, child, own) for own in ([], *([v] for v in others))]
        np.testing.assert_allclose(got, want, rtol=1e-10)


def test_more_columns_than_rows() -> None:
    """Families of full rank, and those that a few rows make dependent."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(6, 12))
    score = bic_of(x)
    for _ in range(100):
        order = rng.permutation(12).tolist()
        k = int(rng.integers(0, 9))
        parents, first, second = order[:k], order[k], order[k + 1]
        forward = local(score, first, parents) + local(score, second, [*parents, first])
        back = local(score, second, parents) + local(score, first, [*parents, second])
        assert forward == pytest.approx(back, rel=1e-9)
        assert np.isfinite(forward)
    run = begin_hill_climb(score, seed=0)
    while not run.step():
        pass
    # With five parents a child is determined; no more than these are taken.
    assert max(map(len, run.best()[0])) <= 5


def test_constants_and_one_row() -> None:
    x = np.column_stack([np.ones(50), np.random.default_rng(3).normal(size=(50, 3))])
    score = bic_of(x)
    values = score.extensions(0, NONE, np.array([1, 2, 3]))
    assert (values[1:] < values[0]).all()
    single = bic_of(np.random.default_rng(3).normal(size=(1, 4)))
    assert np.isfinite(single.extensions(0, NONE, np.array([1, 2, 3]))).all()


def exact_determinant(correlation: Floats, columns: list[int]) -> Fraction:
    """Compute the determinant of a matrix of doubles, of which the lower part mirrors the upper."""
    rows = [[Fraction(float(correlation[min(i, j), max(i, j)])) for j in columns] for i in columns]
    determinant = Fraction(1)
    for i, own in enumerate(rows):
        determinant *= own[i]
        for other in rows[i + 1 :]:
            factor = other[i] / own[i]
            other[:] = [a - factor * b for a, b in zip(other, own, strict=True)]
    return determinant


@pytest.mark.parametrize("weight", [0.0, 0.25])
def test_nearly_determined_columns(weight: float) -> None:
    """A share of 1e-9 is left of two columns: too little for ordinary sums, enough to be scored."""
    rng = np.random.default_rng(10)
    n, d = 400, 14
    x = rng.normal(size=(n, d))
    for v, noise, parents in ((4, 1e-4, [0, 1, 2, 3]), (9, 3e-4, [4, 5, 6, 7, 8])):
        x[:, v] = noise * x[:, v] + x[:, parents] @ rng.uniform(0.5, 2.0, len(parents))
    correlation, variance = correlate(np.cov(x, rowvar=False, bias=True))
    constant, log_variance, _ = likelihood_tables(n, d)
    tables = constant, log_variance, np.full(d + 1, weight)
    score = matrix_score(np.cov(x, rowvar=False, bias=True), tables)

    def want(child: int, parents: list[int]) -> float:
        inside = exact_determinant(correlation, parents)
        left = exact_determinant(correlation, [*parents, child]) / inside
        assert left > 5 * TOLERANCE
        scale = float(np.log(variance[parents]).sum())
        return float(
            constant[len(parents)]
            - log_variance[len(parents)] * (np.log(float(left)) + np.log(variance[child]))
            - weight * (np.log(float(inside)) + scale)
        )

    for child, parents in ((4, [0, 1, 2, 3]), (0, [1, 2, 3, 4]), (9, [4, 6, 7, 8]), (11, [0, 2])):
        others = [v for v in range(d) if v != child and v not in parents]
        got = score.extensions(child, np.array(parents), np.array(others))
        expected = [want(child, [*parents, *more]) for more in ([], *([v] for v in others))]
        np.testing.assert_allclose(got, expected, rtol=1e-11)
        fewer = [want(child, parents[:i] + parents[i + 1 :]) for i in range(len(parents))]
        reduced = score.reductions(child, np.array(parents))
        np.testing.assert_allclose(reduced, fewer, rtol=1e-10)
