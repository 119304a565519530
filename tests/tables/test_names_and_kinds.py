"""Odd names, odd types and kinds: the same answer and the same sentence over every backend."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import MissingValuesError, SchemaError
from isthmus.statistics import CountPlan, Counts, Kind, Schema
from isthmus.statistics.counts import align_levels
from isthmus.tables import Frame, Series, as_source
from isthmus.tables.read_table import read_table
from isthmus.testing.source import check_source

Table = dict[str, Any]
Constructor = Callable[[Table], Any]

NAMES = [
    "Sepal.Length",
    "(x)",
    "`t`",
    "*",
    "^a.*$",
    'q"uote',
    "it's",
    "ç é",
    "select",
    "group by",
    "a b",
    "ab",
    "$1",
    "#1",
    "c1",
    "c0",
    "n",
    "isthmus_n",
    "{x}",
    "%s",
    "100%",
    ":p",
    "\\d",
    "x;--",
    "名",
    " ",
]


def odd_table(n: int = 60) -> Table:
    """Columns of four types under odd names, in a cycle."""
    rng = np.random.default_rng(0)
    table: Table = {}
    for i, name in enumerate(NAMES):
        if i % 4 == 0:
            table[name] = rng.integers(0, 3, n)
        elif i % 4 == 1:
            table[name] = rng.normal(size=n)
        elif i % 4 == 2:
            table[name] = rng.choice(["x", "y'z"], n)
        else:
            table[name] = rng.random(n) < 0.5
    return table


@pytest.mark.long
def test_columns_may_have_any_name(constructor: Constructor) -> None:
    data = odd_table()
    check_source(as_source(constructor(data)), Frame(data))
    discrete = {name: data[name] for i, name in enumerate(NAMES) if i % 4 != 1}
    source = as_source(constructor(discrete))
    assert source.schema() == Frame(discrete).schema()
    plan = CountPlan.sets([["Sepal.Length", "`t`", "*"], ["select", "n"]])
    assert source.counts(plan) == Frame(discrete).counts(plan)


@pytest.mark.long
def test_odd_names_go_through_learn(constructor: Constructor) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=200)
    data = {"*": x, "Sepal.Length": x + rng.normal(size=200), "select": rng.normal(size=200)}
    solution = ist.learn(constructor(data), progress=False)
    assert solution.dag.nodes == ("*", "Sepal.Length", "select")
    plain = ist.learn(dict(zip("abc", data.values(), strict=True)), progress=False)
    names = dict(zip("abc", data, strict=True))
    assert set(solution.dag.edges) == {(names[a], names[b]) for a, b in plain.dag.edges}


def test_names_that_differ_in_case_stay_apart_in_duckdb() -> None:
    duckdb = pytest.importorskip("duckdb")
    table = duckdb.sql('SELECT range AS a, 1 - range AS "A", 2.5 * range AS b FROM range(2)')
    moments = as_source(table, kinds={"a": "continuous", "A": "continuous"}).moments()
    np.testing.assert_allclose(moments.covariance()[0, 1], -0.25)


def test_kinds_may_be_strings(constructor: Constructor, discrete_data: Table) -> None:
    kinds = {"zahl": "continuous", "truth": "continuous", "code": "discrete"}
    source = as_source(constructor(discrete_data), kinds=kinds)
    assert source.schema().of_kind(Kind.CONTINUOUS) == ("zahl", "truth")
    floats = {"f": np.array([0.5, 1.5, 0.5]), "n": np.array([1, 2, 2])}
    assert as_source(constructor(floats), kinds={"f": "discrete"}).schema()["f"].levels == (
        0.5,
        1.5,
    )
    message = re.escape(
        "The kind of column 'zahl' was given as 'ordinal'. Use Kind.CONTINUOUS or Kind.DISCRETE, "
        "the strings 'continuous' and 'discrete', or, for dates, a unit such as 'days'."
    )
    with pytest.raises(SchemaError, match=message):
        as_source(constructor(discrete_data), kinds={"zahl": "ordinal"}).schema()
    with pytest.raises(SchemaError, match="kinds must map"):
        as_source(constructor(discrete_data), kinds=["zahl"]).schema()  # type: ignore[arg-type]


REPEATED = r"Column names must be unique; these occur more than once: \['a'\]"


def repeated_tables() -> list[Any]:
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    duckdb = pytest.importorskip("duckdb")
    return [
        pd.DataFrame([[1, 2, 3]], columns=["a", "a", "b"]),
        pa.Table.from_arrays([pa.array([1])] * 3, names=["a", "a", "b"]),
        duckdb.sql("SELECT 1 AS a, 2 AS a, 3 AS b"),
    ]


@pytest.mark.parametrize("i", range(3))
def test_repeated_names_are_refused_in_one_sentence(i: int) -> None:
    with pytest.raises(SchemaError, match=REPEATED):
        ist.learn(repeated_tables()[i])
    if i < 2:  # a series is a table in memory
        with pytest.raises(SchemaError, match=REPEATED):
            Series(repeated_tables()[i], lags=1)


def test_repeated_names_of_arrays_are_refused() -> None:
    with pytest.raises(SchemaError, match=REPEATED):
        Frame(np.zeros((3, 3)), names=["a", "a", "b"])


@pytest.mark.spark
def test_repeated_names_are_refused_in_spark(make_pyspark: Constructor) -> None:
    frame = make_pyspark({"a": [1.5, 2.5], "b": [0.5, 1.0]})
    with pytest.raises(SchemaError, match=REPEATED):
        ist.learn(frame.select("a", "a", "b"))


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet"])
def test_repeated_names_in_files_are_refused(ending: str, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / f"table{ending}"
    if ending == ".parquet":
        pq.write_table(pa.Table.from_arrays([pa.array([1])] * 3, names=["a", "a", "b"]), path)
    else:
        separator = "," if ending == ".csv" else "\t"
        path.write_text("\ufeffa,a,b\n1,2,3\n".replace(",", separator), encoding="utf-8")
    with pytest.raises(SchemaError, match=REPEATED):
        read_table(path)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint64])
def test_narrow_integers_with_a_wide_range_are_coded(dtype: Any) -> None:
    low, high = (0, 200) if np.dtype(dtype).kind == "u" else (-99, 99)
    values = np.array([low, high, high, low + 1] * 25, dtype)
    source = Frame({"a": values, "b": np.array([0, 1] * 50)})
    assert source.schema()["a"].levels == (low, low + 1, high)
    assert source.counts(CountPlan.everything()).table(["a"]).tolist() == [25, 25, 50]
    extreme = np.iinfo(dtype)
    ends = np.array([extreme.min, extreme.max] * 50, dtype)
    frame = Frame({"a": ends}, kinds={"a": "discrete"})
    assert frame.schema()["a"].levels == (extreme.min, extreme.max)


def test_an_int8_survey_code_can_be_learned() -> None:
    rng = np.random.default_rng(0)
    data = {"a": np.array([-100, 100] * 50, np.int8), "b": rng.integers(0, 2, 100)}
    assert ist.learn(data, progress=False).dag.nodes == ("a", "b")


def test_arrow_dictionaries_of_integers_stay_integers() -> None:
    pa, pd = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    values = pa.chunked_array([pa.array([30, 5, 30]), pa.array([7, 5])]).dictionary_encode()
    table = pa.table({"k": values, "t": pa.array(["x", "y", "x", "x", "y"]).dictionary_encode()})
    expected = Schema.discrete({"k": (5, 7, 30), "t": ("x", "y")})
    arrow_types = table.to_pandas(types_mapper=pd.ArrowDtype)
    for given in (table, table.to_pandas(), arrow_types):
        source = Frame(given)
        assert source.schema() == expected
        assert source.counts(CountPlan.everything()).table(["k"]).tolist() == [2, 1, 2]
    missing = pa.table({"k": pa.array([1, None, 2]).dictionary_encode()})
    with pytest.raises(MissingValuesError, match="missing"):
        Frame(missing).schema()


@pytest.mark.parametrize(
    "values", [[True, 1, 2], [True, 1.0], ["a", True, 1], [False, 0, "b"]], ids=str
)
def test_booleans_and_numbers_in_one_column_are_refused(values: list[Any]) -> None:
    with pytest.raises(SchemaError, match="mixes Booleans with numbers"):
        Frame({"x": np.array(values, dtype=object)}).schema()


@pytest.mark.parametrize("values", [[0, "0", "b"], [True, "True"], [1.0, "1", "x"]], ids=str)
def test_values_that_differ_only_in_type_are_refused(values: list[Any]) -> None:
    with pytest.raises(SchemaError, match="differ only in their type"):
        Frame({"x": np.array(values, dtype=object)}).schema()


def test_equal_numbers_are_one_level() -> None:
    source = Frame({"x": np.array(["<5", 7, 7.0, 8], dtype=object)})
    assert source.schema()["x"].levels == (7, 8, "<5")
    assert source.counts(CountPlan.everything()).table(["x"]).tolist() == [2, 1, 1]


def test_aligning_text_with_numbers_is_refused() -> None:
    numbers = Counts.from_codes(Schema.discrete({"x": (0, 1)}), [[0, 1]])
    texts = Counts.from_codes(Schema.discrete({"x": ("0", "1")}), [[0, 1]])
    for pair in ((numbers, texts), (texts, numbers)):
        with pytest.raises(SchemaError, match=r"level 0 .* text '0'.*Convert"):
            align_levels(*pair)
    booleans = Counts.from_codes(Schema.discrete({"x": (False, True)}), [[0, 1]])
    first, second = align_levels(numbers, booleans)
    assert (first + second).table(["x"]).tolist() == [2, 2]


INTEGERS: dict[str, tuple[Any, Kind]] = {
    "age of 15": (np.random.default_rng(0).integers(18, 90, 15), Kind.CONTINUOUS),
    "income of 15": (np.random.default_rng(1).integers(15_000, 90_000, 15), Kind.CONTINUOUS),
    "Likert 1-5 of 15": (np.random.default_rng(2).integers(1, 6, 15), Kind.CONTINUOUS),
    "Likert 1-7 of 10": (np.random.default_rng(3).integers(1, 8, 10), Kind.CONTINUOUS),
    "binary of 10": (np.array([0, 1] * 5), Kind.DISCRETE),
    "codes 10/20/30 of 15": (np.array([10, 20, 30] * 5), Kind.DISCRETE),
    "missing code -99 of 12": (np.array([1, 2, -99] * 4), Kind.DISCRETE),
    "four codes as floats": (np.array([1.0, 2.0, 3.0, 9.0] * 3), Kind.DISCRETE),
    "four codes of 4": (np.array([1, 2, 3, 9]), Kind.DISCRETE),
    "five whole floats": (np.array([1.0, 2.0, 3.0, 4.0, 5.0] * 3), Kind.CONTINUOUS),
    "constant of 3": (np.array([7000] * 3), Kind.DISCRETE),
    "year of 100": (np.array(range(2001, 2021)).repeat(5), Kind.CONTINUOUS),
    "age of 200": (np.random.default_rng(4).integers(18, 90, 200), Kind.CONTINUOUS),
    "one row": (np.array([5]), Kind.DISCRETE),
}


@pytest.mark.long
@pytest.mark.parametrize("name", INTEGERS)
def test_whole_numbers_with_fewer_than_five_values_are_discrete(
    name: str, constructor: Constructor
) -> None:
    values, kind = INTEGERS[name]
    assert as_source(constructor({"v": values})).schema()["v"].kind is kind
