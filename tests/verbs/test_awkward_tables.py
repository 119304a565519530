"""Tables that other libraries and earlier versions choked on: many levels, exact dependence."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from tests.notes import noted
from tests.patience import LATENESS

import isthmus as ist
from isthmus.arrays import Floats


def moments(table: dict[str, Floats]) -> ist.Moments:
    return ist.Frame(table).moments()


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")
def test_levels_that_multiply_beyond_any_table() -> None:
    table = {f"v{i}": rng(i).permutation(8000) for i in range(6)}
    kinds = dict.fromkeys(table, "discrete")
    found = ist.learn(table, score=ist.K2(), search=ist.HillClimb(), kinds=kinds)
    assert np.isfinite(found.score)
    wide = {f"v{i}": [f"level {k}" for k in rng(i).permutation(60_000)] for i in range(4)}
    kinds = dict.fromkeys(wide, "discrete")
    found = ist.learn(wide, score=ist.K2(), search=ist.HillClimb(restarts=0), kinds=kinds)
    assert np.isfinite(found.score)


@pytest.mark.timing
def test_hundreds_of_different_numbers_of_levels() -> None:
    table = {f"v{c}": rng(c).permutation(np.arange(600) % c) for c in range(2, 300)}
    kinds = dict.fromkeys(table, ist.Kind.DISCRETE)
    counts = ist.summarise(table, plan=ist.CountPlan.everything(), kinds=kinds)
    found = ist.learn(counts, score=ist.K2(), search=ist.HillClimb(), time_limit=1)
    assert found.status.seconds < 1.0 + LATENESS


def totals() -> dict[str, Floats]:
    a, b = rng(4).normal(size=(2, 100))
    return {"a": a, "b": 10.0 * b, "c": a + rng(5).normal(size=100), "total": a + 10.0 * b}


def test_a_total_and_its_parts() -> None:
    a, b = rng().normal(size=(2, 1000))
    with noted("'a' and 'b' determine 's' exactly"):
        found = ist.learn({"a": a, "b": 10.0 * b, "s": a + 10.0 * b})
    assert len(found.dag.edges) == 2
    assert "determine 's' exactly" in str(found)


@pytest.mark.parametrize("score", [ist.GaussianBIC(), ist.GaussianEBIC(), ist.DegenerateGaussian()])
def test_equivalent_graphs_score_the_same_under_exact_dependence(
    score: ist.GaussianBIC | ist.GaussianEBIC | ist.DegenerateGaussian,
) -> None:
    local = score.bind(moments(totals()))
    for first, second in itertools.permutations(range(4), 2):
        rest = [v for v in range(4) if v not in (first, second)]
        for size in range(3):
            for given in itertools.combinations(rest, size):
                one = local.local(first, given) + local.local(second, (*given, first))
                other = local.local(second, given) + local.local(first, (*given, second))
                assert one == pytest.approx(other, rel=1e-9)


@pytest.mark.parametrize("search", [ist.XGES(), ist.Boss(), ist.HillClimb()])
def test_searches_end_under_exact_dependence(
    search: ist.XGES | ist.Boss | ist.HillClimb,
) -> None:
    with noted("'a' and 'b' determine 'total' exactly"):
        found = ist.learn(totals(), score=ist.GaussianBIC(), search=search)
    with noted("determine .* exactly"):
        best = ist.learn(totals(), score=ist.GaussianBIC())
    assert found.score == pytest.approx(best.score)


def test_a_category_and_its_coarser_version() -> None:
    city = rng().integers(0, 6, 1000)
    table = {
        "city": [f"city {k}" for k in city],
        "country": [f"country {k // 2}" for k in city],
        "x": rng(1).normal(size=1000),
    }
    for search in (None, ist.XGES()):
        with noted("'city' determines 'country' exactly. Drop one"):
            found = ist.learn(table, search=search)
        assert {frozenset(edge) for edge in found.dag.edges} == {frozenset({"city", "country"})}


def test_no_relation_is_named_where_there_is_none() -> None:
    from isthmus.statistics.relations import linear_relations

    x = rng().normal(size=(50, 8))
    x[:, 7] = x[:, 0] + 1e-3 * x[:, 7]
    assert linear_relations(moments({f"v{i}": x[:, i] for i in range(8)})) == ()
    # With fewer rows than columns everything is dependent.
    few = {f"v{i}": x[:6, i] for i in range(8)}
    assert linear_relations(moments(few)) == ()


def test_two_relations_are_two_groups_in_any_unit() -> None:
    from isthmus.statistics.relations import linear_relations

    x = rng().normal(size=(200, 5))
    table = {f"v{i}": x[:, i] * 10.0 ** (2 * i) for i in range(5)}
    table["s"] = table["v0"] + table["v1"]
    table["t"] = 3.0 - table["v3"] + 2.0 * table["v4"]
    groups = linear_relations(moments(table))
    assert set(groups) == {("v0", "v1", "s"), ("v3", "v4", "t")}


@pytest.mark.filterwarnings("ignore:10 rows for 3 variables:isthmus.errors.DataWarning")
@pytest.mark.parametrize("search", [None, ist.XGES(), ist.Boss(), ist.ASOBS()])
def test_a_column_of_one_level_among_others(search: ist.XGES | ist.Boss | ist.ASOBS | None) -> None:
    table = {"c": rng().normal(size=10), "b": list("xy" * 5), "z": ["x"] * 10}
    with noted("Constant columns: 'z'"):
        found = ist.learn(table, search=search)
    assert not any("z" in edge for edge in found.dag.edges)


@pytest.mark.filterwarnings("ignore")
def test_a_text_that_is_the_same_in_all_rows_makes_numbers_a_mixed_table() -> None:
    x = rng().normal(size=100)
    table = {"x": x, "y": x + np.roll(x, 1)}
    without = ist.learn(table)
    found = ist.learn(table | {"site": ["A"] * 100})
    assert "GaussianEBIC" in without.choice
    assert "GaussianEBIC" not in found.choice
    assert any("'site'" in note and "score is another one" in note for note in found.notes)
    levels = ist.learn({"a": list("xy" * 50), "site": ["A"] * 100})
    assert not any("another one" in note for note in levels.notes)


@pytest.mark.parametrize("search", [ist.ASOBS(), ist.OBS()])
def test_a_hundred_million_rows_end_a_search(search: ist.ASOBS | ist.OBS) -> None:
    x = rng().normal(size=(10**4, 8))
    for j in range(1, 8):
        x[:, j] += x[:, j // 2]
    few = moments({f"v{i}": x[:, i] for i in range(8)})
    many = replace(few, n=few.n * 10**4, sums=few.sums * 10**4, gram=few.gram * 10**4)
    found = ist.learn(many, score=ist.GaussianBIC(), search=search, time_limit=20)
    assert found.status.finished
