"""What only tables in memory and ready statistics do."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.errors import DataError, MismatchError, SchemaError, UnplannedError
from isthmus.statistics import CountPlan, Kind, Schema
from isthmus.tables import Frame, Lazy, Precomputed, as_source
from isthmus.tables.grouping import pack


def test_arrays_with_and_without_names() -> None:
    x = np.random.default_rng(0).normal(size=(10, 3))
    assert Frame(x).schema().names == ("x0", "x1", "x2")
    assert Frame(x, names=["a", "b", "c"]).schema().names == ("a", "b", "c")
    fields = np.array([(1.5, "u"), (2.5, "v")], dtype=[("p", "f8"), ("q", "U1")])
    assert Frame(fields).schema()["q"].levels == ("u", "v")
    codes = np.random.default_rng(0).integers(0, 3, size=(50, 4)).astype(np.uint8)
    counts = Frame(codes).counts(CountPlan.up_to(2))
    assert counts.table(["x3"]).tolist() == np.bincount(codes[:, 3]).tolist()
    with pytest.raises(SchemaError, match="2 names"):
        Frame(x, names=["a", "b"])
    with pytest.raises(SchemaError, match="must be unique"):
        Frame(x, names=["a", "b", "a"])
    with pytest.raises(SchemaError, match="shape"):
        Frame(x[:, 0])
    with pytest.raises(SchemaError, match="this table has its own"):
        Frame({"a": [1.0]}, names=["b"])


def test_rows_are_numbers_and_codes() -> None:
    rows = Frame({"x": [1.5, 2.5], "c": ["v", "u"]}).rows()
    assert rows.tolist() == [[1.5, 1.0], [2.5, 0.0]]


def test_integers_by_how_many_there_are() -> None:
    few, many = np.arange(100) % 4, np.arange(100) % 5
    wide = np.arange(100) % 3 * 10**12
    huge = np.array([2**64 - 1, 2**64 - 2], dtype=np.uint64).repeat(50)
    schema = Frame({"few": few, "many": many, "wide": wide, "huge": huge}).schema()
    assert schema.of_kind(Kind.DISCRETE) == ("few", "wide", "huge")
    assert schema["wide"].levels == (0, 10**12, 2 * 10**12)
    assert schema["huge"].levels == (2**64 - 2, 2**64 - 1)


def test_python_objects() -> None:
    import decimal

    data = {
        "mixed": np.array(["b", 2, "a"], dtype=object),
        "truth": np.array([True, False, True], dtype=object),
        "price": np.array([decimal.Decimal("1.5")] * 3, dtype=object),
        "whole": np.array([3, 1, 3], dtype=object),
    }
    frame = Frame(data)
    assert frame.schema()["mixed"].levels == (2, "a", "b")
    assert frame.schema()["truth"].levels == (False, True)
    assert frame.schema()["price"].kind is Kind.CONTINUOUS
    assert frame.schema()["whole"].levels == (1, 3)
    assert frame.rows()[:, 0].tolist() == [2, 0, 1]
    with pytest.raises(SchemaError, match="cannot be read"):
        Frame({"a": np.array([{}, {}], dtype=object)}).schema()
    masked = np.ma.array([1.0, 2.0], mask=[True, False])
    with pytest.raises(DataError, match=r"'a' \(1\)"):
        Frame({"a": masked}).schema()


def test_categories() -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    values = ["b", "a", "b"]
    tables = [
        pd.DataFrame({"c": pd.Categorical(values, categories=["z", "b", "a"])}),
        pl.DataFrame({"c": values}, schema={"c": pl.Categorical}),
        pl.DataFrame({"c": values}, schema={"c": pl.Enum(["z", "b", "a"])}),
        pl.LazyFrame({"c": values}, schema={"c": pl.Enum(["z", "b", "a"])}),
        pl.LazyFrame({"c": values}, schema={"c": pl.Categorical}),
    ]
    for table in tables:
        source = as_source(table)
        assert source.schema() == Schema.discrete({"c": ("a", "b")})
        assert source.counts(CountPlan.everything()).table(["c"]).tolist() == [1, 2]
        assert source.moments().mean().tolist() == pytest.approx([2 / 3])
    whole = pd.DataFrame({"c": pd.Categorical([3, 1, 3])})
    assert Frame(whole).schema()["c"].levels == (1, 3)


def test_things_that_are_no_tables() -> None:
    for thing in (3, None, [1, 2], object()):
        with pytest.raises(DataError, match="not a table"):
            as_source(thing)
    with pytest.raises(DataError, match="no columns"):
        as_source({})
    with pytest.raises(DataError, match=r"read_csv\('data\.csv'\)"):
        as_source("data.csv")
    with pytest.raises(DataError, match="to Frame"):
        Lazy({"a": [1]})
    pl, pd = pytest.importorskip("polars"), pytest.importorskip("pandas")
    with pytest.raises(DataError, match="Give it to Lazy"):
        Frame(pl.LazyFrame({"a": [1]}))
    with pytest.raises(SchemaError, match="astype"):
        Frame(pd.DataFrame({0.5: [1.0]}))
    with pytest.raises(SchemaError, match="unique"):
        Frame(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(SchemaError, match="different lengths"):
        Frame({"a": [1, 2], "b": [1]}).schema()
    with pytest.raises(SchemaError, match="List"):
        Frame(pl.DataFrame({"a": [[1]]})).schema()


@pytest.mark.long
def test_nothing_but_identifiers_is_refused() -> None:
    table = {"id": np.arange(70_000).astype(str)}
    with pytest.raises(SchemaError, match=r"No column.*identifier \(70,000 different values"):
        Frame(table).schema()
    with pytest.raises(SchemaError, match=r"70,000 distinct.*identifier"):
        Frame(table, kinds={"id": "discrete"}).schema()


def test_the_frame_is_not_written_to() -> None:
    data = {"x": np.array([1.0, 2.0]), "c": np.array([3, 5])}
    before = {n: v.copy() for n, v in data.items()}
    frame = Frame(data)
    frame.moments()
    frame.counts(CountPlan.sets([["c"]]))
    for name, values in before.items():
        np.testing.assert_array_equal(data[name], values)


def test_summaries() -> None:
    data = {"a": np.array([0, 1, 1, 0]), "b": np.array([0, 1, 0, 1]), "c": np.array([0, 0, 0, 1])}
    frame = Frame(data)
    moments = as_source(frame.moments())
    assert isinstance(moments, Precomputed)
    assert moments.moments(["b"]).columns == ("b=1",)
    assert moments.disclosure().entries == ()
    with pytest.raises(MismatchError, match="GaussianBIC"):
        moments.counts(CountPlan.everything())
    with pytest.raises(MismatchError, match="no rows"):
        moments.rows()
    pairs = as_source(frame.counts(CountPlan.up_to(2)))
    assert pairs.counts(CountPlan.sets([["a", "b"]])).table(["a", "b"]).sum() == 4
    with pytest.raises(UnplannedError, match="every set of at most 2"):
        pairs.counts(CountPlan.everything())
    with pytest.raises(UnplannedError):
        pairs.counts(CountPlan.up_to(3))
    with pytest.raises(MismatchError, match="moments are not made"):
        pairs.moments()
    with pytest.raises(SchemaError, match="know their kinds"):
        as_source(frame, kinds={})
    assert as_source(frame) is frame


def test_packs_hold_all_sets_and_stay_small(monkeypatch: pytest.MonkeyPatch) -> None:
    from itertools import combinations

    monkeypatch.setattr("isthmus.tables.grouping.PACK", 100)
    sizes = np.array([2, 3, 4, 5, 2, 2, 7, 200])
    sets = list(combinations(range(8), 2))
    packs = pack(sets, sizes)
    assert sorted(s for _, answered in packs for s in answered) == sorted(sets)
    for members, answered in packs:
        assert all(set(s) <= set(members) for s in answered)
        if 7 not in members:
            assert np.prod(sizes[list(members)]) <= 100
    assert len(packs) < len(sets) - 10
