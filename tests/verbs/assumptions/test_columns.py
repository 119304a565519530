"""Checks of columns that need no rows."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from tests.notes import noted

import isthmus as ist
from isthmus.statistics import Schema
from isthmus.verbs.notes import determined_columns, similar_levels


def test_levels_that_differ_in_spaces_or_case() -> None:
    import polars as pl

    schema = Schema.discrete({"a": ("no", "yes", "yes "), "b": ("New York", "new  york", "x")})
    (note,) = similar_levels(schema)
    assert "'yes' and 'yes ' in 'a'; 'New York' and 'new  york' in 'b'" in note
    assert similar_levels(Schema.discrete({"a": ("no", "yes"), "n": (1, 2, 3)})) == ()
    table = pl.DataFrame({"a": ["yes", "Yes", "no"] * 40, "b": ["u", "v"] * 60})
    with noted("Merge levels"):
        ist.learn(table.lazy())  # no rows are needed


def test_the_determined_variable_is_named() -> None:
    rng = np.random.default_rng(0)
    siblings = rng.integers(0, 4, 300)
    age = rng.normal(size=300)
    table = {
        "Alone": np.where(siblings == 0, "yes", "no"),
        "SibSp": np.array(["none", "one", "two", "three"])[siblings],
        "Age": age,
    }
    assert determined_columns(ist.summarise(table)) == (
        "'SibSp' determines 'Alone' exactly. Drop one.",
    )
    parts = {"total": age + siblings, "age": age, "n": siblings + 0.0}
    kinds = {"n": "continuous"}
    (note,) = determined_columns(ist.summarise(parts, kinds=kinds))
    assert note.endswith(" exactly. Drop one.")


@pytest.mark.parametrize("decimals", [0, 1, 3])
def test_products_and_ratios_are_named(decimals: int) -> None:
    """Without the note, learned directions of these columns were wrong with large margins."""
    rng = np.random.default_rng(0)
    height = 172 + 9 * rng.normal(size=1000)
    weight = 70 + 0.8 * (height - 172) + 10 * rng.normal(size=1000)
    bmi = weight / (height / 100) ** 2
    table = {
        "height": height.round(1),
        "weight": weight.round(1),
        "bmi": bmi.round(decimals),
        "pressure": (120 + bmi + 9 * rng.normal(size=1000)).round(),
    }
    with noted("Drop one of 'height', 'weight' and 'bmi': one is a product or a ratio"):
        ist.learn(table)


@pytest.mark.long
def test_columns_that_are_no_products_are_not_named() -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        a, b, c, d = rng.normal(size=(4, 500))
        logs = {"a": a, "b": a + 0.3 * b, "c": a + b + 0.3 * c, "d": 2 * a + 0.01 * d}
        table = {name: np.exp(x) for name, x in logs.items()} | {"e": 50 + a + b, "f": 50 + a}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert not any("product" in note for note in ist.learn(table).notes)


def test_one_common_level_does_not_determine_a_variable() -> None:
    rng = np.random.default_rng(0)
    missing = rng.random(400) < 0.3
    table = {
        name: np.where(missing, "missing", rng.choice(["u", "v", "w"], 400)) for name in ("a", "b")
    }
    table["x"] = rng.normal(size=400)
    (note,) = determined_columns(ist.summarise(table))
    assert note == "'a' and 'b' have an exact linear relation. Drop one."


@pytest.mark.parametrize(
    ("n", "noted"), [(2, True), (5, True), (12, True), (19, True), (20, False)]
)
@pytest.mark.parametrize("kind", ["gp", "levels"])
def test_a_few_rows_are_noted_however_few_the_variables(kind: str, n: int, noted: bool) -> None:
    rng = np.random.default_rng(n)
    if kind == "gp":
        table, score = {name: rng.normal(size=n) for name in "ab"}, ist.GP()
    else:
        table = {name: rng.permutation(np.resize(["u", "v", "w"], n)) for name in "abc"}
        score = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ist.errors.DataWarning)
        notes = ist.learn(table, score=score).notes
    start = f"{n} rows for {len(table)} variables"
    found = [note for note in notes if note.startswith(start)]
    assert bool(found) == noted
    assert all("an edge may be a coincidence" in note for note in found)
