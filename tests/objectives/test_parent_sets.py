"""Safe pruning: for every predecessor set the best listed parent set is the best of all."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from tests.objectives.problems import discrete_rows, discrete_score, gaussian_score

from isthmus.graphs import Knowledge
from isthmus.objectives import LocalScore, PythonLocalScore, ScoreTable, list_parent_sets
from isthmus.objectives.table import TableBuilder
from isthmus.scores import (
    AIC,
    BIC,
    K2,
    BDeu,
    BGe,
    DegenerateGaussian,
    GaussianBIC,
    GaussianEBIC,
    Score,
)

DISCRETE: list[Score[Any, LocalScore]] = [
    BIC(),
    BIC(penalty_discount=0.3),
    AIC(),
    BDeu(),
    BDeu(ess=20),
    K2(),
]
GAUSSIAN: list[Score[Any, LocalScore]] = [
    GaussianBIC(),
    GaussianEBIC(),
    BGe(),
    BGe(alpha_w=30.0),
    DegenerateGaussian(),
]


def all_scores(local: LocalScore, child: int, required: int = 0, forbidden: int = 0) -> Any:
    """Score of each parent set by its mask, -inf where it is not allowed."""
    d = len(local.nodes)
    values = np.full(2**d, -np.inf)
    for mask in range(2**d):
        if mask >> child & 1 or mask & forbidden or required & ~mask:
            continue
        values[mask] = local.local(child, [p for p in range(d) if mask >> p & 1])
    return values


def best_of_subsets(values: Any) -> Any:
    best = values.copy()
    d = len(values).bit_length() - 1
    for p in range(d):
        masks = np.flatnonzero(np.arange(2**d) >> p & 1)
        best[masks] = np.maximum(best[masks], best[masks ^ (1 << p)])
    return best


def assert_safe(local: LocalScore, table: ScoreTable, known: Knowledge | None = None) -> None:
    """Every node, every predecessor set: the best survivor is the best of all."""
    d = len(local.nodes)
    bound = (known or Knowledge()).bind(local.nodes)
    for child in range(d):
        required = sum(1 << p for p in np.flatnonzero(bound.required[:, child]).tolist())
        forbidden = sum(1 << p for p in np.flatnonzero(bound.forbidden[:, child]).tolist())
        truth = all_scores(local, child, required, forbidden)
        survivors = np.full(2**d, -np.inf)
        for parents, score in table.parent_sets(child):
            mask = sum(1 << p for p in parents)
            assert score == pytest.approx(truth[mask], rel=1e-12, abs=1e-9)
            survivors[mask] = score
        np.testing.assert_allclose(
            best_of_subsets(survivors), best_of_subsets(truth), rtol=1e-12, atol=1e-9
        )


@pytest.mark.parametrize("score", DISCRETE, ids=repr)
@pytest.mark.parametrize(("n", "d"), [(30, 7), (200, 8), (2000, 8)])
def test_discrete_pruning_is_safe(score: Score[Any, LocalScore], n: int, d: int) -> None:
    for seed in range(3):
        local = discrete_score(score, seed, n, d)
        assert_safe(local, list_parent_sets(local))


@pytest.mark.parametrize("score", GAUSSIAN, ids=repr)
@pytest.mark.parametrize(("n", "d"), [(30, 7), (1000, 8)])
def test_gaussian_pruning_is_safe(score: Score[Any, LocalScore], n: int, d: int) -> None:
    for seed in range(3):
        local = gaussian_score(score, seed, n, d)
        assert_safe(local, list_parent_sets(local))


@pytest.mark.parametrize("score", [BIC(), BDeu()], ids=repr)
def test_nine_variables(score: Score[Any, LocalScore]) -> None:
    local = discrete_score(score, 77, 500, 9)
    assert_safe(local, list_parent_sets(local))


def test_nothing_useless_is_listed() -> None:
    local = discrete_score(BDeu(), 3, 300, 6)
    table = list_parent_sets(local)
    for child in range(6):
        sets = [(set(parents), score) for parents, score in table.parent_sets(child)]
        assert [s for _, s in sets] == sorted((s for _, s in sets), reverse=True)
        for (a, x), (b, y) in itertools.permutations(sets, 2):
            assert not (a < b and x >= y)


def test_knowledge_is_part_of_the_table() -> None:
    known = Knowledge(required=[("x0", "x2")], forbidden=[("x1", "x2"), ("x3", "x4")])
    for seed in range(3):
        local = discrete_score(BIC(), seed, 300, 6)
        table = list_parent_sets(local, knowledge=known.bind(local.nodes))
        assert_safe(local, table, known)


def test_a_score_in_python() -> None:
    compiled = discrete_score(BDeu(), 1, 100, 5)
    python = PythonLocalScore(compiled.nodes, compiled.local, equivalent=True)
    assert_safe(python, list_parent_sets(python))


def test_max_parents() -> None:
    local = discrete_score(AIC(), 5, 2000, 7)
    table = list_parent_sets(local, max_parents=2)
    for child in range(7):
        truth = all_scores(local, child)
        sizes = np.array([mask.bit_count() for mask in range(2**7)])
        truth[sizes > 2] = -np.inf
        best, _ = max(((s, p) for p, s in table.parent_sets(child)), default=(0.0, ()))
        assert best == pytest.approx(truth.max())
        assert all(len(p) <= 2 for p, _ in table.parent_sets(child))


def test_theorem_3_as_printed_is_not_safe() -> None:
    """Its inequality stands the wrong way round: it leaves only the empty set."""
    rows = discrete_rows(4, 500, 5)
    codes = np.array(list(rows.values()))
    local = discrete_score(BIC(), 4, 500, 5)
    levels = [len(np.unique(row)) for row in codes]

    def entropy(columns: list[int]) -> float:
        _, counts = np.unique(codes[columns], axis=1, return_counts=True)
        return -float((counts / 500 * np.log(counts / 500)).sum()) if columns else 0.0

    def given(v: int, parents: tuple[int, ...]) -> float:
        return entropy([v, *parents]) - entropy(list(parents))

    def pruned(child: int, parents: tuple[int, ...], *, printed: bool) -> bool:
        for size in range(len(parents)):
            for subset in itertools.combinations(parents, size):
                own = (levels[child] - 1) * float(np.prod([levels[p] for p in subset]))
                for j in set(parents) - set(subset):
                    earned = 500 * min(given(child, subset), given(j, subset))
                    if printed and earned >= (1 - levels[j]) * own:
                        return True
                    if not printed and earned <= 0.5 * np.log(500) * (levels[j] - 1) * own:
                        return True
        return False

    def survivors(*, printed: bool) -> ScoreTable:
        sets = [
            [
                (parents, local.local(child, parents))
                for size in range(5)
                for parents in itertools.combinations(sorted(set(range(5)) - {child}), size)
                if not pruned(child, parents, printed=printed)
            ]
            for child in range(5)
        ]
        return ScoreTable.from_lists(local.nodes, sets)

    assert_safe(local, survivors(printed=False))
    assert len(survivors(printed=True)) == 5
    with pytest.raises(AssertionError):
        assert_safe(local, survivors(printed=True))


def test_bounds_save_work_and_change_nothing() -> None:
    for score in DISCRETE:
        local = discrete_score(score, 8, 1000, 8)
        plain, bounded = (list_parent_sets(local, bounded=b) for b in (False, True))
        assert np.array_equal(plain.sets, bounded.sets)
        assert np.array_equal(plain.scores, bounded.scores)
    local = discrete_score(BIC(), 8, 1000, 8)
    counted = []
    for use in (False, True):
        builder = TableBuilder(local, bounded=use)
        while not builder.step():
            pass
        counted.append(builder.scored)
    assert counted[0] == 8 * 2**7
    assert counted[1] < counted[0] / 2


@pytest.mark.parametrize("score", [BIC(), BDeu(), K2()], ids=repr)
def test_slack_keeps_what_is_nearly_best(score: Score[Any, LocalScore]) -> None:
    slack = 3.0
    local = discrete_score(score, 12, 300, 6)
    table = list_parent_sets(local, slack=slack)
    for child in range(6):
        truth = all_scores(local, child)
        below = np.full(2**6, -np.inf)
        for p in range(6):
            masks = np.flatnonzero(np.arange(2**6) >> p & 1)
            below[masks] = np.maximum(below[masks], best_of_subsets(truth)[masks ^ (1 << p)])
        expected = set(np.flatnonzero(truth > below - slack).tolist())
        assert {sum(1 << p for p in ps) for ps, _ in table.parent_sets(child)} == expected
