"""Every test here runs over every backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from isthmus.errors import DataError, MismatchError, MissingValuesError, SchemaError
from isthmus.statistics import CountPlan, Kind, Schema, Variable
from isthmus.tables import Frame, Lazy, as_source
from isthmus.testing.source import check_source

Table = dict[str, Any]
Constructor = Callable[[Table], Any]


def test_discrete(constructor: Constructor, discrete_data: Table) -> None:
    source = as_source(constructor(discrete_data))
    assert source.schema() == Schema.discrete(
        {
            "text": ("a", "b", "it's", "ç"),
            "zahl": (-2, -1, 0, 1),
            "truth": (False, True),
            "code": (0, 1, 2),
        }
    )
    counts = source.counts(CountPlan.everything())
    for i, level in enumerate(source.schema()["text"].levels):
        for j, truth in enumerate((False, True)):
            expected = ((discrete_data["text"] == level) & (discrete_data["truth"] == truth)).sum()
            assert counts.table(["text", "truth"])[i, j] == expected
    check_source(source, Frame(discrete_data))


def test_continuous(constructor: Constructor, continuous_data: Table) -> None:
    source = as_source(constructor(continuous_data))
    assert source.schema() == Schema.continuous(continuous_data)
    x = np.column_stack([np.asarray(v, dtype=np.float64) for v in continuous_data.values()])
    np.testing.assert_allclose(source.moments().mean(), x.mean(0), rtol=1e-10)
    np.testing.assert_allclose(source.moments().covariance(), np.cov(x.T, bias=True), rtol=1e-6)
    check_source(source, Frame(continuous_data))


def test_mixed(constructor: Constructor, discrete_data: Table, continuous_data: Table) -> None:
    data = {**continuous_data, **discrete_data}
    source = as_source(constructor(data))
    check_source(source, Frame(data))
    with pytest.raises(SchemaError, match=r"Counts need discrete.*'x'"):
        source.counts(CountPlan.everything())


def test_one_row_one_column(constructor: Constructor) -> None:
    for data in ({"a": np.array([2.5])}, {"a": np.array(["x"])}, {"a": np.array([7])}):
        source = as_source(constructor(data))
        check_source(source, Frame(data))
        assert source.moments().n == 1


def test_fewer_rows_than_columns(constructor: Constructor) -> None:
    rng = np.random.default_rng(4)
    data = {f"v{i}": rng.normal(size=3) for i in range(5)}
    check_source(as_source(constructor(data)), Frame(data))


def test_kinds_are_obeyed(constructor: Constructor, discrete_data: Table) -> None:
    kinds = {"zahl": Kind.CONTINUOUS, "truth": Kind.CONTINUOUS}
    source = as_source(constructor(discrete_data), kinds=kinds)
    assert source.schema().of_kind(Kind.CONTINUOUS) == ("zahl", "truth")
    check_source(source, Frame(discrete_data, kinds=kinds))
    floats = {"f": np.array([0.5, 1.5, 0.5]), "n": np.array([10, 20, 20])}
    source = as_source(constructor(floats), kinds={"f": Kind.DISCRETE})
    assert source.schema()["f"].levels == (0.5, 1.5)
    check_source(source, Frame(floats, kinds={"f": Kind.DISCRETE}))
    with pytest.raises(SchemaError, match="cannot be continuous"):
        as_source(constructor(discrete_data), kinds={"text": Kind.CONTINUOUS}).schema()
    with pytest.raises(SchemaError, match="does not have"):
        as_source(constructor(discrete_data), kinds={"nowhere": Kind.DISCRETE}).schema()


def test_a_schema_fixes_levels_and_order(constructor: Constructor, discrete_data: Table) -> None:
    schema = Schema(
        (
            Variable("zahl", Kind.CONTINUOUS),
            Variable("text", Kind.DISCRETE, ("zz", "b", "a", "ç", "it's")),
        )
    )
    table = constructor(discrete_data)
    make = Lazy if isinstance(as_source(table), Lazy) else Frame
    source = make(table, schema=schema)
    check_source(source, Frame(discrete_data, schema=schema))
    assert source.counts(CountPlan.sets([["text"]])).table(["text"])[0] == 0
    short = schema.with_levels({"text": ("b", "a")})
    with pytest.raises(SchemaError, match="not among its levels"):
        make(table, schema=short).moments()
    with pytest.raises(SchemaError, match="not among its levels"):
        make(table, schema=short).counts(CountPlan.sets([["text"]]))
    with pytest.raises(SchemaError, match="lacks the columns"):
        make(table, schema=Schema.continuous(["zahl", "absent"])).schema()
    with pytest.raises(SchemaError, match="not both"):
        make(table, schema=schema, kinds={})


def test_missing_cells_are_named(constructor: Constructor) -> None:
    data: Table = {
        "x": [1.5, None, 2.5, 3.5, None],
        "whole": [100, 200, 300, 400, 500],
        "ok": ["a", "b", "a", "a", "b"],
    }
    source = as_source(constructor(data), kinds={"whole": Kind.CONTINUOUS})
    with pytest.raises(MissingValuesError, match=r"'x' \(2\).*DropRows") as caught:
        source.moments()
    assert "'ok'" not in str(caught.value)
    data = {"c": ["a", None, "b", None, None], "k": [1, 2, 1, None, 2], "ok": [1, 2, 1, 1, 2]}
    source = as_source(constructor(data), kinds=dict.fromkeys(data, Kind.DISCRETE))
    with pytest.raises(MissingValuesError, match=r"2 of 3 columns, 5 rows: 'c' \(3\), 'k' \(1\)"):
        source.counts(CountPlan.everything())


def test_missing_cells_are_named_when_the_levels_were_given(constructor: Constructor) -> None:
    """Then no query for the levels comes before, and the moments must find them."""
    schema = Schema((Variable("x", Kind.CONTINUOUS), Variable("c", Kind.DISCRETE, ("a", "b"))))
    table = constructor({"x": [1.5, 2.5, 3.5, None], "c": ["a", None, "b", None]})
    make = Lazy if isinstance(as_source(table), Lazy) else Frame
    with pytest.raises(MissingValuesError, match=r"'x' \(1\), 'c' \(2\)"):
        make(table, schema=schema).moments()
    with pytest.raises(MissingValuesError, match=r"'c' \(2\)"):
        make(table, schema=schema).counts(CountPlan.sets([["c"]]))


def test_nan_and_infinite_are_refused(constructor: Constructor) -> None:
    nan = {"x": np.array([1.5, np.nan, 2.5]), "y": np.array([1.5, 2.5, 3.5])}
    with pytest.raises(MissingValuesError, match=r"'x' \(1\)"):
        as_source(constructor(nan)).moments()
    infinite = {"x": np.array([1.5, 4.5, 2.5]), "y": np.array([1.5, -np.inf, np.inf])}
    with pytest.raises(DataError, match=r"infinite.*'y' \(2\)"):
        as_source(constructor(infinite)).moments()
    huge = {"x": np.array([1.5, 4.5, 2.5]), "y": np.array([1e200, -1e200, 0.0])}
    with pytest.raises(DataError, match="overflow"):
        as_source(constructor(huge)).moments()


def test_no_rows_are_refused(constructor: Constructor) -> None:
    with pytest.raises(DataError, match="no rows"):
        as_source(constructor({"x": np.empty(0)})).moments()
    with pytest.raises(DataError, match="no rows"):
        as_source(constructor({"c": np.empty(0, dtype="U1")})).counts(CountPlan.everything())


def test_times_are_refused_with_advice(constructor: Constructor) -> None:
    when = np.array(["2020-01-01", "2020-01-02"], dtype="M8[us]")
    with pytest.raises(SchemaError, match=r"'when'.*weekday"):
        as_source(constructor({"when": when, "x": [1.0, 2.0]})).schema()


@pytest.mark.long
def test_odd_names(constructor: Constructor) -> None:
    rng = np.random.default_rng(5)
    names = ["a b", "naïve", 'quo"te', "it's", "select", "isthmus_n", "n"]
    data: Table = {n: rng.integers(0, 2, 20) for n in names}
    check_source(as_source(constructor(data)), Frame(data))
    data = {n: rng.normal(size=20) for n in names}
    check_source(as_source(constructor(data)), Frame(data))


def test_small_integers_do_not_overflow(constructor: Constructor) -> None:
    data: Table = {"a": np.full(1000, 250, np.uint8), "b": np.full(1000, 370, np.int16)}
    data["a"][:2], data["b"][:2] = 0, 1
    kinds = dict.fromkeys(data, Kind.CONTINUOUS)
    source = as_source(constructor(data), kinds=kinds)
    np.testing.assert_allclose(source.moments().mean(), [249.5, 369.262], rtol=1e-12)
    check_source(source, Frame(data, kinds=kinds))


def test_rows_are_only_where_they_are(constructor: Constructor, continuous_data: Table) -> None:
    source = as_source(constructor(continuous_data))
    if isinstance(source, Frame):
        assert source.rows().shape == (300, 4)
        assert source.disclosure().entries == ()
    else:
        with pytest.raises(MismatchError, match="only statistics"):
            source.rows()


def test_what_came_over_is_told_and_asked_once(
    lazy_constructor: Constructor, discrete_data: Table, continuous_data: Table
) -> None:
    source = as_source(lazy_constructor(discrete_data))
    source.schema()
    counts = source.counts(CountPlan.everything())
    source.counts(CountPlan.up_to(2))
    source.moments()
    source.moments(["code"])
    told = [e for e in source.disclosure().entries if "distinct rows of" in e.what]
    assert len(told) == 1
    assert counts.joint is not None
    assert told[0].size == counts.joint.codes.shape[1] * 5
    assert told[0].form == "plain"
    source = as_source(lazy_constructor(continuous_data))
    source.moments()
    source.moments(["x"])
    told = [e for e in source.disclosure().entries if "products" in e.what]
    assert len(told) == 1
    assert told[0].size < 300
    assert sum(e.size for e in source.disclosure().entries) < 300


def test_integers_that_turn_out_to_be_many(lazy_constructor: Constructor) -> None:
    """The first rows look discrete; only the whole column shows that it is not."""
    n = 10_100
    data = {
        "late": np.concatenate([np.zeros(10_000, dtype=np.int64), np.arange(100)]),
        "code": np.arange(n) % 3,
    }
    source = as_source(lazy_constructor(data))
    assert source.schema() == Frame(data).schema()
    assert source.schema()["late"].kind is Kind.CONTINUOUS
    check_source(source, Frame(data))


@pytest.mark.long
def test_columns_are_read_alike(constructor: Constructor) -> None:
    rng, n = np.random.default_rng(6), 300
    data: Table = {
        "x": rng.normal(size=n),
        "row": rng.permutation(n),
        "name": np.array([f"p{i}" for i in range(n)]),
        "remark": np.array([f"patient {i} was seen today" for i in range(n)]),
        "town": np.array([f"t{i % 140}" for i in range(n)]),
        "code": rng.integers(0, 3, n).astype(np.float64),
        "half": rng.integers(0, 5, n) / 2,
        "count": rng.poisson(50, n),
        "when": np.datetime64("2020-01-01", "us") + rng.integers(0, 9**9, n).astype("m8[ms]"),
    }
    kinds = {"when": "weeks"}
    source, frame = as_source(constructor(data), kinds=kinds), Frame(data, kinds=kinds)
    assert isinstance(source, (Frame, Lazy))
    assert source.schema() == frame.schema()
    assert source.schema()["code"].levels == (0, 1, 2)
    expected = ["continuous", *["identifier"] * 2, "free text", "left out"]
    expected += ["discrete", "continuous", "continuous", "date"]
    assert [str(c.read_as) for c in source.reading()] == expected
    for ours, theirs in zip(source.reading(), frame.reading(), strict=True):
        assert (ours.name, ours.read_as) == (theirs.name, theirs.read_as)
        if ours.name != "when":
            assert ours.reason == theirs.reason
    weeks = (data["when"] - np.datetime64("1970-01-01")) / np.timedelta64(7, "D")
    assert source.moments().select(["when"]).mean()[0] == pytest.approx(weeks.mean(), abs=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("engine", ["polars_lazy", "duckdb", "ibis_duckdb"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:The 'future.infer_string'")
def test_the_first_rows_do_not_mislead(engine: str, request: pytest.FixtureRequest) -> None:
    n = 25_000
    numbers = np.arange(n)
    data: Table = {
        "x": np.random.default_rng(1).normal(size=n),
        "row": numbers,
        "name": np.array([f"p{i}" for i in numbers]),
        "late": np.where(numbers < 12_000, "same", np.array([f"l{i}" for i in numbers])),
        "code": np.sort(numbers % 4).astype(np.float64),
        "many": np.sort(numbers % 30).astype(np.float64),
        "fraction": np.where(numbers < 15_000, numbers % 3, 0.5),
    }
    source = as_source(request.getfixturevalue(f"make_{engine}")(data))
    assert isinstance(source, Lazy)
    assert source.schema() == Frame(data).schema()
    read = {c.name: str(c.read_as) for c in source.reading()}
    assert read == {
        "x": "continuous",
        "row": "identifier",
        "name": "identifier",
        "late": "identifier",
        "code": "discrete",
        "many": "continuous",
        "fraction": "continuous",
    }
