"""Every verb accepts and refuses the same things, in the same words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import ArgumentError, IsthmusError, MismatchError, SchemaError

R = np.random.default_rng(0)
NUMBERS = {name: R.normal(size=60) for name in "abc"}
MIXED = {**NUMBERS, "c": R.choice(["x", "y", "z"], 60)}
INTEGERS = {name: R.integers(0, 3, 60) for name in "abc"}
DAG = ist.DAG(list("abc"), [("a", "b"), ("b", "c")])


def verbs(data: Any, score: Any) -> list[Any]:
    """The same question through every verb."""
    return [
        lambda: ist.learn(data, score=score),
        lambda: ist.score(data, DAG, score),
        lambda: ist.parent_sets(data, score=score),
        lambda: ist.sample(data, score=score, draws=5),
    ]


@pytest.mark.parametrize("score", [ist.GaussianBIC(), ist.BGe(), ist.BIC(), ist.K2()])
def test_every_verb_refuses_columns_of_the_wrong_kind_in_the_same_words(score: Any) -> None:
    messages = set()
    for verb in verbs(MIXED, score):
        with pytest.raises(MismatchError, match=r"leave these columns|how to read") as caught:
            verb()
        messages.add(str(caught.value))
    assert len(messages) == 1


def test_every_verb_reads_integers_as_the_score_needs_them() -> None:
    wide = {name: R.integers(0, 40, 60) for name in "abc"}  # continuous by default
    for data in (INTEGERS, wide):
        for verb in verbs(data, ist.BIC()):
            verb()
        for verb in verbs(data, ist.GaussianBIC()):
            verb()


@pytest.mark.parametrize("score", [ist.LeastSquares(), ist.AdditiveLeastSquares()])
def test_a_loss_cannot_score_graphs(score: Any) -> None:
    for verb in verbs(NUMBERS, score)[1:]:
        with pytest.raises(MismatchError, match="Give a local score"):
            verb()


@pytest.mark.parametrize(
    ("score", "advice"),
    [
        ("bic", r"score=BIC\(\)"),
        ("gaussian-bic", r"score=GaussianBIC\(\)"),
        ("BDEU", r"score=BDeu\(\)"),
        ("qqqq", r"score=BIC\(\)"),
        (ist.GaussianBIC, r"score=GaussianBIC\(\)"),
        (3, "must be a score object"),
        (ist.Boss(), "must be a score object"),
    ],
)
def test_a_score_that_is_none_gets_a_sentence(score: Any, advice: str) -> None:
    for verb in verbs(NUMBERS, score):
        with pytest.raises(ArgumentError, match=advice):
            verb()


@pytest.mark.parametrize(
    ("search", "advice"),
    [
        ("hc", r"search=HillClimb\(\)"),
        ("xges", r"search=XGES\(\)"),
        (ist.Boss, r"search=Boss\(\)"),
        (ist.BIC(), "must be a search object"),
    ],
)
def test_a_search_that_is_none_gets_a_sentence(search: Any, advice: str) -> None:
    with pytest.raises(ArgumentError, match=advice):
        ist.learn(NUMBERS, search=search)
    with pytest.raises(ArgumentError, match=advice):
        ist.solve(ist.parent_sets(NUMBERS), search=search)


def test_a_table_and_a_search_that_cannot_use_it() -> None:
    table = ist.parent_sets(NUMBERS)
    for search in (ist.HillClimb(), ist.XGES(), ist.Notears()):
        with pytest.raises(MismatchError, match="scored parent sets"):
            ist.solve(table, search=search)
    with pytest.raises(ArgumentError, match="parent_sets"):
        ist.solve(NUMBERS)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "arguments",
    [
        {"knowledge": {"required": [("a", "b")]}},
        {"knowledge": [("a", "b")]},
        {"kinds": ["a"]},
        {"kinds": {"nobody": ist.Kind.DISCRETE}},
        {"seed": -1},
        {"seed": 1.5},
        {"time_limit": -5},
        {"time_limit": float("nan")},
        {"time_limit": "1"},
        {"progress": "yes"},
    ],
)
def test_odd_arguments_get_a_sentence(arguments: dict[str, Any]) -> None:
    with pytest.raises(IsthmusError, match=r"\."):
        ist.learn(NUMBERS, **arguments)


@pytest.mark.parametrize("dag", [[("a", "b")], {"a": "b"}, None, np.eye(3)])
def test_score_needs_a_graph(dag: Any) -> None:
    with pytest.raises(ArgumentError, match="must be a DAG"):
        ist.score(NUMBERS, dag, ist.GaussianBIC())


def test_score_needs_a_graph_over_the_columns() -> None:
    with pytest.raises(SchemaError, match="z"):
        ist.score(NUMBERS, ist.DAG(["a", "z"], [("a", "z")]), ist.GaussianBIC())


def test_a_graph_over_some_columns_is_scored_on_these() -> None:
    part = ist.DAG(["a", "b"], [("a", "b")])
    alone = ist.score({name: NUMBERS[name] for name in "ab"}, part, ist.GaussianBIC())
    assert ist.score(NUMBERS, part, ist.GaussianBIC()) == pytest.approx(alone, rel=1e-12)
    assert ist.score(MIXED, part, ist.GaussianBIC()) == pytest.approx(alone, rel=1e-12)


def test_parent_sets_choose_their_score_as_learn_does() -> None:
    for data in (NUMBERS, MIXED, INTEGERS):
        learned = ist.learn(data, search=ist.AStar())
        solved = ist.solve(ist.parent_sets(data))
        assert solved.score == pytest.approx(learned.score, rel=1e-10)
