"""Checks of columns that need no rows."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pytest
from tests.notes import noted

import isthmus as ist
from isthmus.statistics import Schema
from isthmus.verbs.notes import determined_columns, similar_levels


def test_levels_that_differ_in_spaces_or_case() -> None:
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
