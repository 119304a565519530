"""Every score × search × kind of source: a solution, or a sentence that says what to do.

Never a bare error of Python, NumPy or an engine, and never the score of something else.
"""

from __future__ import annotations

import inspect
import os
import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest

import isthmus as ist
import isthmus.scores
import isthmus.searches
from isthmus.errors import IsthmusError
from isthmus.objectives import LOCAL_SCORES
from isthmus.results import IndependenceDetails
from isthmus.scores import Score
from isthmus.searches import Search

NAMES = ("a", "b", "c", "d")
ROWS = 60
LONG = "ISTHMUS_LONG" in os.environ


def concrete(module: Any, base: type) -> list[type]:
    found = [getattr(module, name) for name in module.__all__]
    classes = [c for c in found if inspect.isclass(c) and issubclass(c, base)]
    return [c for c in classes if not inspect.isabstract(c)]


def searches() -> list[Any]:
    """One object of each public search, small enough to be run often."""
    made: dict[str, Any] = {
        "KnownOrder": lambda: ist.KnownOrder(NAMES),
        "RBNets": lambda: ist.RBNets(episodes=2),
    }
    return [made.get(kind.__name__, kind)() for kind in concrete(isthmus.searches, Search)]


@cache
def columns(content: str) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, 4))
    x[:, 1] += x[:, 0]
    x[:, 3] += np.sin(x[:, 1])
    counts = rng.poisson(np.exp(0.3 * np.clip(x, -2, 2)))
    words = np.array(["low", "middle", "high"])[np.digitize(x, [-0.5, 0.5])]
    numbers = {name: x[:, i] for i, name in enumerate(NAMES)}
    tables: dict[str, dict[str, Any]] = {
        "continuous": numbers,
        "binary": {name: x[:, i] > 0 for i, name in enumerate(NAMES)},
        "text": {name: words[:, i] for i, name in enumerate(NAMES)},
        "integers": {name: counts[:, i] for i, name in enumerate(NAMES)},
        "mixed": {**numbers, "b": words[:, 1], "d": words[:, 3]},
        "awkward names": dict(zip(("x~1", "y@2", "a b", "ünï"), numbers.values(), strict=True)),
        "one column": {"a": x[:, 0]},
        "two rows": {name: x[:2, i] for i, name in enumerate(NAMES)},
    }
    return tables[content]


CONTENTS = (
    "continuous", "binary", "text", "integers", "mixed", "awkward names", "one column", "two rows",
)  # fmt: skip


def frame(table: dict[str, Any]) -> Any:
    return table


def lazy(table: dict[str, Any]) -> Any:
    polars = pytest.importorskip("polars")
    return polars.DataFrame(table).lazy()


def moments(table: dict[str, Any]) -> Any:
    return ist.summarise(table)


def counts(table: dict[str, Any]) -> Any:
    return ist.summarise(table, plan=ist.CountPlan.everything())


def series(table: dict[str, Any]) -> Any:
    return ist.Series(table, lags=1)


def federation(table: dict[str, Any]) -> Any:
    pytest.importorskip("cryptography")
    third = [slice(i, None, 3) for i in range(3)]
    return ist.Federation.simulate(
        {f"site {i}": {n: v[rows] for n, v in table.items()} for i, rows in enumerate(third)},
        within_sites=False,
    )


SOURCES = (frame, lazy, moments, counts, series, federation)


SLOW = (ist.GP, ist.ExactGP)
"""Scores whose families take tens of milliseconds each; a lagged table has thousands of them."""


def answer(make: Any, content: str, **options: Any) -> Any:
    """A solution, or the library's own error; anything else is a failure of the test."""
    if isinstance(options.get("score"), SLOW):
        options = {"time_limit": 0.1, **options}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ist.learn(make(columns(content)), **{"time_limit": 20, **options})
    except IsthmusError as error:
        return error


def check(found: Any, case: str) -> None:
    if isinstance(found, IsthmusError):
        message = str(found)
        assert message.rstrip().endswith((".", ")", "'")), f"{case}: no sentence: {message}"
        assert len(message.split()) >= 6, f"{case}: too short: {message}"
        return
    if isinstance(found, ist.PAGSolution):
        return
    assert isinstance(found, ist.Solution), case
    by_tests = isinstance(found.details, IndependenceDetails)  # which have no score
    assert np.isfinite(found.score) != by_tests, f"{case}: {found.score}"


@pytest.mark.parametrize("search", searches(), ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("score", [c() for c in concrete(isthmus.scores, Score)], ids=repr)
def test_every_score_and_search_on_every_source(score: Any, search: Any) -> None:
    solved = 0
    for make in SOURCES:
        contents = ("continuous", "binary", "text", "mixed")
        for content in contents if make is frame or LONG else contents[::3]:
            case = f"{make.__name__}, {content}"
            found = answer(make, content, score=score, search=search)
            check(found, case)
            if isinstance(found, IsthmusError):
                continue
            solved += 1
            if LOCAL_SCORES in score.gives and make in (frame, lazy, federation):
                expected = ist.score(columns(content), found.dag, score)
                assert found.score == pytest.approx(expected, rel=1e-6), case
    fits = any(capability in score.gives for capability in search.accepts)
    assert fits or solved == 0, "a search ran on an objective that it does not accept"


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("make", SOURCES, ids=lambda m: m.__name__)
def test_defaults_on_every_source(make: Any, content: str) -> None:
    if make is not frame and content not in ("continuous", "mixed", "one column") and not LONG:
        pytest.skip("a frame reads the same columns; set ISTHMUS_LONG to run it")
    check(answer(make, content), "nothing given")
    for search in searches():
        check(answer(make, content, search=search), f"{search!r}")
    for score in (c() for c in concrete(isthmus.scores, Score)):
        check(answer(make, content, score=score), f"{score!r}")


ODD: list[dict[str, Any]] = [
    {"knowledge": ist.Knowledge(required=[("a", "b"), ("b", "a")])},
    {"knowledge": ist.Knowledge(forbidden=[("a", "nobody")])},
    {"knowledge": ist.Knowledge(required=[("a", "b")], tiers=[["b"], ["a", "c", "d"]])},
    {"kinds": {"a": ist.Kind.DISCRETE}},
    {"kinds": {"nobody": ist.Kind.DISCRETE}},
    {"time_limit": 0},
    {"time_limit": -1},
    {"seed": -1},
    {"seed": "x"},
    {"score": "bic"},
    {"score": ist.BIC},
    {"search": "boss"},
    {"search": ist.Boss},
    {"search": ist.Boss(max_parents=0)},
    {"search": ist.HillClimb(max_parents=0)},
    {"search": ist.AStar(max_parents=1)},
    {"search": ist.KnownOrder(["a"])},
    {"progress": "yes"},
]


@pytest.mark.parametrize("options", ODD, ids=str)
@pytest.mark.parametrize("make", SOURCES, ids=lambda m: m.__name__)
def test_odd_arguments_on_every_source(make: Any, options: dict[str, Any]) -> None:
    for content in ("continuous", "text", "mixed"):
        try:
            found = answer(make, content, **options)
        except IsthmusError as error:  # some are refused when they are made
            found = error
        check(found, content)


@pytest.mark.parametrize(
    "data",
    [
        None, 3, "table.csv", [], {}, [1, 2], np.zeros(3), np.zeros((0, 3)), np.zeros((3, 0)),
        {"a": []}, {"a": [1.0], "b": [1.0, 2.0]}, {"a": [np.nan, 1.0]}, {"a": [None, "x"]},
        {1: [1.0, 2.0]}, {"": [1.0, 2.0]}, {"a": [1 + 2j, 3j]}, {"a": [[1], [2]]},
        {"a": [object(), object()]}, {"a": [np.inf, 1.0]}, np.array([["a", "b"], ["c", "d"]]),
    ],
    ids=lambda d: repr(d)[:40],
)  # fmt: skip
def test_odd_data_get_a_sentence(data: Any) -> None:
    for verb in (
        lambda: ist.learn(data),
        lambda: ist.parent_sets(data),
        lambda: ist.summarise(data),
        lambda: ist.score(data, ist.DAG(["a"], []), ist.GaussianBIC()),
    ):
        message = "it was accepted, and gave an answer"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                verb()
        except IsthmusError as error:
            message = str(error)
        assert len(message.split()) >= 5, message
