"""Parents along a known order, against K2 and against all sets, written from their definitions."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.objectives.problems import discrete_rows, gaussian_score

import isthmus as ist
from isthmus.errors import ArgumentError, KnowledgeError, MismatchError
from isthmus.graphs import DAG, Knowledge
from isthmus.objectives import list_parent_sets
from isthmus.results import Ending
from isthmus.scores import GaussianBIC
from isthmus.searches import drive
from isthmus.searches.boss import KnownOrder

pytestmark = pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")

Rows = dict[str, NDArray[np.int64]]


def k2_value(rows: Rows, child: str, parents: tuple[str, ...]) -> float:
    """The formula of Cooper and Herskovits, cell by cell; what was never seen counts 1."""
    levels = len(set(rows[child].tolist()))
    cells = Counter(zip(*(rows[p].tolist() for p in (*parents, child)), strict=True))
    margins: Counter[tuple[int, ...]] = Counter()
    for key, count in cells.items():
        margins[key[:-1]] += count
    total = sum(math.lgamma(count + 1) for count in cells.values())
    for count in margins.values():
        total += math.lgamma(levels) - math.lgamma(count + levels)
    return total


def k2_by_hand(
    rows: Rows,
    order: list[str],
    most: int,
    required: frozenset[tuple[str, str]] = frozenset(),
    forbidden: frozenset[tuple[str, str]] = frozenset(),
) -> dict[str, set[str]]:
    found = {}
    for i, child in enumerate(order):
        parents = {a for a, b in required if b == child}
        old = k2_value(rows, child, tuple(sorted(parents)))
        while len(parents) < most:
            open_ = [p for p in order[:i] if p not in parents and (p, child) not in forbidden]
            gains = {p: k2_value(rows, child, tuple(sorted({*parents, p}))) for p in open_}
            best = max(gains, key=lambda p: gains[p], default=None)
            if best is None or gains[best] <= old + 1e-8:
                break
            parents.add(best)
            old = gains[best]
        found[child] = parents
    return found


def kinds_of(rows: Rows) -> dict[str, ist.Kind]:
    return dict.fromkeys(rows, ist.Kind.DISCRETE)


def shuffled(rows: Rows, seed: int) -> list[str]:
    return [str(name) for name in np.random.default_rng(seed).permutation(list(rows))]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("most", [1, 2, 5])
def test_k2_as_published(seed: int, most: int) -> None:
    # Two to four levels, few rows: many configurations of the parents are never seen.
    rows = discrete_rows(seed, 60 + 40 * seed, 6)
    order = shuffled(rows, seed)
    solution = ist.learn(
        rows, score=ist.K2(), search=KnownOrder(order, max_parents=most), kinds=kinds_of(rows)
    )
    expected = k2_by_hand(rows, order, most)
    assert {v: set(solution.dag.parents(v)) for v in rows} == expected
    by_hand = sum(k2_value(rows, v, tuple(expected[v])) for v in rows)
    assert solution.score == pytest.approx(by_hand, rel=1e-10)
    assert solution.status.ending is Ending.CONVERGED


def test_these_problems_have_what_the_test_is_for() -> None:
    rows = discrete_rows(0, 60, 6)
    levels = [len(set(column.tolist())) for column in rows.values()]
    assert max(levels) > 2
    seen = len(set(zip(*(column.tolist() for column in rows.values()), strict=True)))
    assert seen < math.prod(levels)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("most", [None, 2])
def test_the_best_parents_of_all(seed: int, most: int | None) -> None:
    rows = discrete_rows(seed + 20, 80, 6)
    order = shuffled(rows, seed)
    search = KnownOrder(order, exact=True, max_parents=most)
    solution = ist.learn(rows, score=ist.K2(), search=search, kinds=kinds_of(rows))
    total = 0.0
    for i, child in enumerate(order):
        sizes = range((i if most is None else min(i, most)) + 1)
        sets = [s for k in sizes for s in itertools.combinations(order[:i], k)]
        best = max(k2_value(rows, child, s) for s in sets)
        chosen = solution.dag.parents(child)
        assert k2_value(rows, child, tuple(chosen)) == pytest.approx(best, rel=1e-12)
        total += best
    assert solution.score == pytest.approx(total, rel=1e-10)
    table = ist.parent_sets(rows, score=ist.K2(), kinds=kinds_of(rows))
    assert ist.solve(table, search=search).score == pytest.approx(total, rel=1e-10)


def test_two_parents_that_help_only_together() -> None:
    a, b = np.arange(400) % 2, np.arange(400) // 2 % 2
    rows = {"a": a, "b": b, "c": a ^ b}
    order = ["a", "b", "c"]
    greedy = ist.learn(rows, score=ist.K2(), search=KnownOrder(order), kinds=kinds_of(rows))
    best = ist.learn(
        rows, score=ist.K2(), search=KnownOrder(order, exact=True), kinds=kinds_of(rows)
    )
    assert greedy.dag.edges == ()
    assert set(best.dag.edges) == {("a", "c"), ("b", "c")}


@pytest.mark.parametrize("exact", [False, True])
def test_knowledge(exact: bool) -> None:
    for seed in range(5):
        rows = discrete_rows(seed, 300, 6)
        order = shuffled(rows, seed)
        required = frozenset({(order[0], order[4])})
        forbidden = frozenset({(order[1], order[3]), (order[2], order[5])})
        known = Knowledge(required=list(required), forbidden=list(forbidden))
        search = KnownOrder(order, exact=exact, max_parents=3)
        solution = ist.learn(
            rows, score=ist.K2(), search=search, kinds=kinds_of(rows), knowledge=known
        )
        assert known.allows(solution.dag)
        if not exact:
            expected = k2_by_hand(rows, order, 3, required, forbidden)
            assert {v: set(solution.dag.parents(v)) for v in rows} == expected
        against = Knowledge(required=[(order[4], order[0])])
        with pytest.raises(KnowledgeError, match="comes first in the order"):
            ist.learn(rows, score=ist.K2(), search=search, kinds=kinds_of(rows), knowledge=against)


def test_orders_that_are_none() -> None:
    rows = discrete_rows(0, 50, 4)
    kinds = kinds_of(rows)
    names = list(rows)
    with pytest.raises(MismatchError, match=r"Missing.*x3"):
        ist.learn(rows, score=ist.K2(), search=KnownOrder(names[:3]), kinds=kinds)
    with pytest.raises(MismatchError, match=r"Repeated.*x1"):
        ist.learn(rows, score=ist.K2(), search=KnownOrder([*names, "x1"]), kinds=kinds)
    with pytest.raises(MismatchError, match=r"Not in the data.*nobody"):
        ist.learn(rows, score=ist.K2(), search=KnownOrder([*names, "nobody"]), kinds=kinds)
    with pytest.raises(MismatchError, match="list of names"):
        KnownOrder("abc")
    with pytest.raises(ArgumentError, match="max_parents"):
        KnownOrder(names, max_parents=-1)


def test_gaussian_scores_and_a_table_with_fewer_parents() -> None:
    local = gaussian_score(GaussianBIC(), 4, 100, 7)
    table = list_parent_sets(local)
    order = [*reversed(local.nodes)]
    bound = Knowledge().bind(local.nodes)
    for most in (None, 1, 2):
        search = KnownOrder(order, exact=True, max_parents=most)
        direct, _ = drive(partial(search.search, local, bound, np.random.default_rng(0)), "test")
        listed, _ = drive(partial(search.search, table, bound, np.random.default_rng(0)), "test")
        DAG.from_parents(local.nodes, direct.parents)
        assert direct.score == pytest.approx(listed.score, rel=1e-12)
        assert direct.score == pytest.approx(
            sum(local.local(v, p) for v, p in enumerate(direct.parents)), rel=1e-12
        )
        assert most is None or max(len(p) for p in listed.parents) <= most


def test_out_of_time() -> None:
    rows = discrete_rows(2, 500, 14)
    kinds = kinds_of(rows)
    for exact in (False, True):
        solution = ist.learn(
            rows,
            score=ist.BDeu(),
            search=KnownOrder(list(rows), exact=exact),
            kinds=kinds,
            time_limit=0.0,
        )
        assert solution.status.ending is Ending.TIME_LIMIT
        assert ist.score(rows, solution.dag, ist.BDeu(), kinds=kinds) == pytest.approx(
            solution.score
        )
