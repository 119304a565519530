"""Numbers that users give are checked where they enter, and columns that doubles cannot hold."""

from __future__ import annotations

import math
import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import ArgumentError, DataError
from isthmus.fitting.effects import adjusted_effect
from isthmus.results.effects import EffectEstimate, PossibleEffect, ZeroEffect
from isthmus.verbs.fit import fit

WRONG: list[Any] = [-3, math.nan, math.inf, "1", None, True, [1.0]]
RNG = np.random.default_rng(0)


def mixed() -> dict[str, Any]:
    x = RNG.normal(size=200)
    return {"x": x, "g": np.where(x + RNG.normal(size=200) > 0, "a", "b")}


def tables() -> list[dict[str, Any]]:
    numbers = RNG.normal(size=(2, 200))
    words = RNG.choice(["a", "b"], size=(2, 200))
    return [mixed(), dict(zip("xy", numbers, strict=True)), dict(zip("xy", words, strict=True))]


@pytest.mark.parametrize("wrong", WRONG)
def test_pseudo_count(wrong: Any) -> None:
    for table in tables():
        solution = ist.learn(table)
        for call in (
            lambda: solution.fit(pseudo_count=wrong),  # noqa: B023
            lambda: solution.fit(table, pseudo_count=wrong),  # noqa: B023
            lambda: fit(table, solution.dag, pseudo_count=wrong),  # noqa: B023
            lambda: ist.cross_validate(table, folds=2, pseudo_count=wrong),  # noqa: B023
        ):
            with pytest.raises(ArgumentError, match="pseudo_count"):
                call()


def test_pseudo_count_of_a_logistic_node() -> None:
    dag = ist.DAG(["x", "g"], [("x", "g")])
    allowed: list[Any] = [0, 0.5, np.float32(2), np.int64(1)]
    for right in allowed:
        fit(mixed(), dag, pseudo_count=right)
    with pytest.raises(ArgumentError, match="pseudo_count=-3 was given"):
        fit(mixed(), dag, pseudo_count=-3)


@pytest.mark.parametrize("wrong", [95, 1.5, -1, 0, 1, math.nan, "a", None, True])
def test_level_of_an_interval(wrong: Any) -> None:
    one = PossibleEffect((), (), 1.0, 0.1, 10)
    effects: list[Any] = [
        EffectEstimate("a", "b", identified=True, alternatives=(one,)),
        EffectEstimate("a", "b", identified=False, alternatives=()),
        EffectEstimate("a", "b", identified=True, alternatives=(one,), zero=ZeroEffect.DIRECTION),
    ]
    for estimate in (one, *effects):
        with pytest.raises(ArgumentError, match=r"level .*between 0 and 1"):
            estimate.interval(wrong)
    assert effects[0].interval(np.float32(0.5))[0] < 1.0


def with_column(column: Any) -> ist.Solution:
    x, y = np.random.default_rng(1).normal(size=(2, 100))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ist.learn({"a": column, "x": x, "y": y})


def test_numbers_that_differ_by_less_than_doubles_hold() -> None:
    for column in ([10**30 + i for i in range(100)], [Decimal(10**30 + i) for i in range(100)]):
        with pytest.raises(DataError, match=r"'a'.*double precision.*Subtract an offset"):
            with_column(column)
    with pytest.raises(DataError, match=r"'a'.*double precision"):
        with_column([10**400 + i for i in range(100)])
    reading = with_column([10**30] * 100).reading
    assert reading["a"].reason == "all rows have the same value"
    assert with_column([10**30 + 10**20 * i for i in range(100)]).reading["a"].used


def test_numbers_of_128_bits() -> None:
    pl = pytest.importorskip("polars")
    values = [10**30 + i for i in range(100)]
    x, y = np.random.default_rng(1).normal(size=(2, 100))
    table = pl.DataFrame({"x": x, "y": y}).with_columns(pl.Series("a", values, dtype=pl.Int128))
    with pytest.raises(DataError, match="Subtract an offset"):
        ist.learn(table)


def test_one_variable_is_singular() -> None:
    moments = ist.Frame({"x": [1.0, 2.0], "y": [1.0, 3.0]}).moments()
    with pytest.raises(DataError, match="at least 3 rows"):
        adjusted_effect(moments, "x", "y", ())
