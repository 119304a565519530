"""Numbers and dates that are written as text are read, or a note says that they are not."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from tests.notes import noted

import isthmus as ist
from isthmus.errors import DataError, SchemaError
from isthmus.tables.written_numbers import numbers_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=500)
Y = X + RNG.normal(size=500)
DAYS = np.clip(60 + 15 * X, 0, 119).astype(int)

WRITTEN = {
    "percent": [f"{v:.0f}%" for v in 50 + 10 * X],
    "thousands": [f"{int(round(v, -2)):,}" for v in 50_000 + 1500 * X],
    "some thousands": [f"{int(v):,}" for v in 1000 + 400 * X],
    "decimal point": [f"{v:.1f}" for v in 36.6 + 0.5 * X],
    "decimal comma": [f"{v:.1f}".replace(".", ",") for v in 36.6 + 0.5 * X],
    "German": [f"{v:,.1f}".translate(str.maketrans(".,", ",.")) for v in 5000 + 900 * X],
    "a currency": [f"$ {v:,.2f}" for v in 5000 + 900 * X],
    "a typographic minus": [f"{v:.2f}".replace("-", "\u2212") for v in X],
    "parentheses": [f"{v:.2f}" if v >= 0 else f"({-v:.2f})" for v in X],
    "a unit": [f"{v:.1f} kg" for v in 70 + 9 * X],
    "whole numbers": [str(k) for k in DAYS],
}
ISO = [str(np.datetime64("2024-01-01") + int(k)) for k in DAYS]


def table(cells: Any) -> dict[str, Any]:
    return {"c": np.array(cells), "y": Y}


@pytest.mark.parametrize("name", WRITTEN)
def test_written_numbers_are_numbers(name: str) -> None:
    frame = ist.Frame(table(WRITTEN[name]))
    assert frame.schema()["c"].kind is ist.Kind.CONTINUOUS
    assert "written as text" in frame.reading()["c"].reason
    assert np.corrcoef(frame.rows()[:, 0], X)[0, 1] > 0.98
    assert ist.learn(table(WRITTEN[name])).dag.skeleton().edges == (("c", "y"),)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_missing_cells_and_libraries(library: str) -> None:
    cells = WRITTEN["decimal comma"]
    frame = pytest.importorskip(library).DataFrame({"c": [None, *cells[1:]], "y": Y})
    source = ist.Frame(frame, missing=ist.DropRows())
    assert source.rows()[0, 0] == float(cells[1].replace(",", "."))


CATEGORIES = {
    "leading zeros": [f"{k:03}" for k in DAYS],
    "four values": [str(k % 4) for k in DAYS],
    "words": [f"group {k % 7}" for k in DAYS],
}


@pytest.mark.parametrize("name", CATEGORIES)
def test_codes_and_words_stay_categories(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = ist.learn(table(CATEGORIES[name]))
    assert solution.reading["c"].read_as == "discrete"


def test_identifiers_that_are_written_as_text_are_left_out() -> None:
    cells = [str(k) for k in RNG.permutation(10**6)[:500]]
    assert ist.Frame(table(cells)).reading()["c"].read_as == "identifier"


NOTED = {
    "a word among numbers": (["unknown", *WRITTEN["decimal point"][1:]], "to numbers"),
    "signs that differ": (["3 %", *WRITTEN["decimal point"][1:]], "to numbers"),
    "bounds among numbers": (
        [f"<{v}" if k % 3 == 0 else v for k, v in enumerate(WRITTEN["decimal point"])],
        "to numbers",
    ),
    "two numbers": ([f"{100 + k // 4}/{60 + k // 8}" for k in DAYS], "to numbers"),
    "dates": (ISO, "kinds={'c': 'days'}"),
    "dates of unknown order": ([f"{k % 12 + 1}/{k % 9 + 1}/2024" for k in DAYS], "to dates"),
}


@pytest.mark.parametrize("name", NOTED)
def test_what_is_not_read_is_said(name: str) -> None:
    cells, advice = NOTED[name]
    with noted("looks like") as notes:
        solution = ist.learn(table(cells))
    assert advice in notes[0]
    assert solution.reading["c"].read_as == "discrete"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ist.learn(table(cells), kinds={"c": "discrete"})


def test_numbers_are_read_in_one_way_only() -> None:
    assert numbers_of(["950", "1.250", "12.300"]) is None
    assert numbers_of(["950", "1,250", "12,300"]).tolist() == [950, 1250, 12_300]  # type: ignore[union-attr]
    assert numbers_of(["1.250", "12.300"]).tolist() == [1.25, 12.3]  # type: ignore[union-attr]
    assert numbers_of(["1 250", "12\u202f300,5"]).tolist() == [1250, 12_300.5]  # type: ignore[union-attr]
    assert numbers_of(["1.250.000", "3.000"]).tolist() == [1_250_000, 3000]  # type: ignore[union-attr]
    assert numbers_of(["-1e3", "+.5"]).tolist() == [-1000, 0.5]  # type: ignore[union-attr]
    assert numbers_of(["950", "1.250"], decimal=",").tolist() == [950, 1250]  # type: ignore[union-attr]
    assert numbers_of(["950", "1.250"], decimal=".").tolist() == [950, 1.25]  # type: ignore[union-attr]
    for wrong in (
        ["5%", "5"],
        ["5 kg", "5 g"],
        ["5A", "6A"],
        ["(1)", "(2)"],
        ["1", "x"],
        ["007", "12"],
        ["1-2"],
        [""],
        ["nan"],
        ["$5", "€5"],
    ):
        assert numbers_of(wrong) is None, wrong


def test_what_the_user_or_the_score_wants_comes_first() -> None:
    few = [str(k % 3) for k in DAYS]
    assert ist.Frame(table(few), kinds={"c": "continuous"}).rows()[:, 0].max() == 2
    assert ist.learn(table(few), score=ist.GaussianBIC()).reading["c"].read_as == "continuous"
    texts = {"a": WRITTEN["decimal point"], "b": WRITTEN["percent"]}
    for column in ist.learn(texts, score=ist.BIC()).reading:
        assert column.read_as == "discrete"
    with pytest.raises(SchemaError, match="cannot be continuous"):
        ist.Frame(table(CATEGORIES["words"]), kinds={"c": "continuous"}).schema()


def test_dates_as_text_are_read_in_a_unit() -> None:
    frame = ist.Frame(table(ISO), kinds={"c": "days"})
    assert (frame.rows()[:, 0] - frame.rows()[0, 0]).tolist() == (DAYS - DAYS[0]).tolist()
    with pytest.raises(DataError, match=r"such as '1/.*2024-05-31"):
        ist.Frame(table(["1/2/2024", *ISO[1:]]), kinds={"c": "days"}).schema()


@pytest.mark.parametrize("name", ["percent", "decimal comma", "whole numbers"])
def test_engines_say_that_they_do_not_convert(name: str) -> None:
    pl = pytest.importorskip("polars")
    with noted("column 'c'"):
        solution = ist.learn(pl.LazyFrame(table(WRITTEN[name])))
    assert solution.reading["c"].read_as == "discrete"


def test_levels_that_differ_in_case_or_spaces_are_named() -> None:
    cells = RNG.choice(["yes", "yes ", "Yes", "no"], 500)
    with noted("spaces .* case"):
        ist.learn(table(cells))


def test_a_network_needs_numbers() -> None:
    network = ist.learn({"x": X, "y": Y}).fit()
    with pytest.raises(SchemaError, match=r"'x' .*'1,25'"):
        network.predict({"x": ["1,25"]}, "y")


def test_words_among_real_numbers_are_named() -> None:
    cells = np.array(["n/a", "n/a", "unknown", *X[3:].tolist()], dtype=object)
    cells[3:] = X[3:].tolist()
    column = ist.Frame({"c": cells, "y": Y}).reading()["c"]
    assert column.read_as == "left out"
    assert column.caution is not None
    assert "If 'n/a', 'unknown' in column 'c' mean a missing value" in column.caution
