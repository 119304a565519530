"""Laws of statistics and sources: rows may be split, merged and shuffled, columns permuted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from isthmus.statistics import CountPlan, Counts, Kind, Moments, Schema
from isthmus.tables import Frame, Lazy, Precomputed, as_source
from isthmus.testing.source import check_counts, check_moments, check_source

Table = dict[str, Any]
Constructor = Callable[[Table], Any]

NAMES = st.lists(
    st.text(
        st.characters(categories=("L", "N"), include_characters=" _-'"), min_size=1, max_size=6
    ).filter(lambda s: s.strip() == s and not s.isdigit()),
    min_size=1,
    max_size=4,
    unique_by=str.casefold,  # SQL engines do not tell upper from lower case
)


@st.composite
def tables(draw: st.DrawFn, max_rows: int = 40) -> Table:
    """Tables of mixed columns, with large means, few rows and names from everywhere."""
    n = draw(st.integers(1, max_rows))
    data: Table = {}
    for name in draw(NAMES):
        kind = draw(st.sampled_from(["real", "whole", "text", "truth"]))
        if kind == "real":
            mean = draw(st.sampled_from([0.0, 1.0, -1e6, 1e9]))
            cells = hnp.arrays(np.float64, n, elements=st.floats(-8, 8, width=32))
            data[name] = mean + draw(cells)
        elif kind == "whole":
            low = draw(st.sampled_from([-5, 0, 10**9]))
            data[name] = low + draw(hnp.arrays(np.int64, n, elements=st.integers(0, 3)))
        elif kind == "text":
            words = st.sampled_from(["a", "B", "ß", "it's", "", "ключ"])
            data[name] = np.array(draw(st.lists(words, min_size=n, max_size=n)))
        else:
            data[name] = draw(hnp.arrays(np.bool_, n))
    return data


@st.composite
def discrete_tables(draw: st.DrawFn) -> Table:
    data = draw(tables())
    return {
        n: np.round(x).astype(np.int64) % 4 if x.dtype.kind == "f" else x for n, x in data.items()
    }


def parts(data: Table, labels: np.ndarray) -> list[Table]:
    return [{n: x[labels == k] for n, x in data.items()} for k in np.unique(labels)]


@given(tables(), st.data())
def test_moments_of_parts_add_up(data: Table, draw: st.DataObject) -> None:
    whole = Frame(data)
    n = len(next(iter(data.values())))
    labels = draw.draw(hnp.arrays(np.int64, n, elements=st.integers(0, 4)))
    pieces = [Frame(p, schema=whole.schema()).moments() for p in parts(data, labels)]
    order = draw.draw(st.permutations(range(len(pieces))))
    total = pieces[order[0]]
    for i in order[1:]:
        total = total + pieces[i]
    check_moments(total, whole.moments())


@given(discrete_tables(), st.data())
def test_counts_of_parts_add_up(data: Table, draw: st.DataObject) -> None:
    whole = Frame(data, kinds=dict.fromkeys(data, Kind.DISCRETE))
    n = len(next(iter(data.values())))
    labels = draw.draw(hnp.arrays(np.int64, n, elements=st.integers(0, 4)))
    for plan in (
        CountPlan.everything(),
        CountPlan.up_to(2),
        CountPlan.sets([list(data)[:2], list(data)[-1:]]),
    ):
        pieces = [Frame(p, schema=whole.schema()).counts(plan) for p in parts(data, labels)]
        total = pieces[0]
        for piece in pieces[1:]:
            total = total + piece
        check_counts(total, whole.counts(plan))


@given(tables(), st.data())
def test_order_of_rows_does_not_matter(data: Table, draw: st.DataObject) -> None:
    n = len(next(iter(data.values())))
    order = np.array(draw.draw(st.permutations(range(n))), dtype=np.intp)
    check_source(Frame({k: x[order] for k, x in data.items()}), Frame(data))


@given(tables(), st.data())
def test_order_of_columns_does_not_matter(data: Table, draw: st.DataObject) -> None:
    names = draw.draw(st.permutations(list(data)))
    frame, turned = Frame(data), Frame({n: data[n] for n in names})
    assert turned.schema() == frame.schema().subset(names)
    check_moments(turned.moments(), frame.moments().select(names))
    discrete = [n for n in names if frame.schema()[n].kind is Kind.DISCRETE]
    if discrete:
        plan = CountPlan.sets([discrete])
        table = turned.counts(plan).table(discrete)
        np.testing.assert_array_equal(frame.counts(plan).table(discrete), table)


@given(discrete_tables(), st.data())
def test_marginals_of_marginals(data: Table, draw: st.DataObject) -> None:
    counts = Frame(data, kinds=dict.fromkeys(data, Kind.DISCRETE)).counts(CountPlan.everything())
    names = draw.draw(st.lists(st.sampled_from(sorted(data)), min_size=1, unique=True))
    fewer = draw.draw(st.lists(st.sampled_from(names), unique=True))
    big, small = counts.table(names), counts.table(fewer)
    others = tuple(i for i, n in enumerate(names) if n not in fewer)
    left = [n for n in names if n in fewer]
    np.testing.assert_array_equal(
        np.transpose(big.sum(axis=others), [left.index(n) for n in fewer]), small
    )
    np.testing.assert_array_equal(counts.marginal(names).table(fewer), small)
    assert small.sum() == counts.n


@given(discrete_tables())
def test_statistics_survive_a_file(data: Table) -> None:
    import tempfile
    from pathlib import Path

    frame = Frame(data, kinds=dict.fromkeys(data, Kind.DISCRETE))
    with tempfile.TemporaryDirectory() as home:
        path = Path(home) / "s"
        for plan in (CountPlan.everything(), CountPlan.up_to(2)):
            frame.counts(plan).save(path)
            assert Counts.load(path) == frame.counts(plan)
        frame.moments().save(path)
        assert Moments.load(path) == frame.moments()


@given(discrete_tables())
def test_a_summary_is_its_source(data: Table) -> None:
    frame = Frame(data, kinds=dict.fromkeys(data, Kind.DISCRETE))
    check_source(Precomputed(frame.counts(CountPlan.everything())), frame)


def engine_tables(draw: st.DrawFn) -> Table:
    return draw(tables())


@pytest.mark.parametrize("engine", ["polars-lazy", "duckdb", "polars", "pandas-pyarrow", "pyarrow"])
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=tables())
def test_every_source_gives_what_the_frame_gives(
    request: pytest.FixtureRequest, engine: str, data: Table
) -> None:
    make: Constructor = request.getfixturevalue(f"make_{engine.replace('-', '_')}")
    check_source(as_source(make(data)), Frame(data))


@pytest.mark.filterwarnings("ignore::DeprecationWarning:ibis")
@pytest.mark.filterwarnings("ignore:The 'future.infer_string' option")
@settings(max_examples=15)
@given(data=tables())
def test_ibis_on_duckdb_gives_what_the_frame_gives(
    make_ibis_duckdb: Constructor, data: Table
) -> None:
    check_source(as_source(make_ibis_duckdb(data)), Frame(data))


@pytest.mark.postgres
@pytest.mark.filterwarnings("ignore:The 'future.infer_string' option")
@settings(max_examples=15)
@given(data=tables())
def test_postgres_gives_what_the_frame_gives(make_ibis_postgres: Constructor, data: Table) -> None:
    check_source(as_source(make_ibis_postgres(data)), Frame(data))


@pytest.mark.spark
@settings(max_examples=4)
@given(data=tables())
def test_spark_gives_what_the_frame_gives(make_pyspark: Constructor, data: Table) -> None:
    source = as_source(make_pyspark(data))
    frame = Frame(data)
    assert source.schema() == frame.schema()
    check_moments(source.moments(), frame.moments())
    if not frame.schema().of_kind(Kind.CONTINUOUS):
        check_counts(source.counts(CountPlan.everything()), frame.counts(CountPlan.everything()))


@pytest.mark.parametrize("engine", ["polars-lazy", "duckdb"])
def test_large_joint_tables_are_counted_by_sets(
    request: pytest.FixtureRequest, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same counts when the joint table is too large to fetch at once."""
    make: Constructor = request.getfixturevalue(f"make_{engine.replace('-', '_')}")
    monkeypatch.setattr("isthmus.tables.lazy.MOST", 450)
    monkeypatch.setattr("isthmus.tables.lazy.HEAD", 100)
    rng = np.random.default_rng(8)
    data = {f"v{i}": rng.integers(0, 3, 500) for i in range(8)}
    data["v7"] = (data["v0"] + data["v1"]) % 3
    source, frame = Lazy(make(data)), Frame(data)
    assert source.schema() == Schema.discrete(dict.fromkeys(data, (0, 1, 2)))
    plan = CountPlan.up_to(2)
    check_counts(source.counts(plan), frame.counts(plan))
    asked = [e for e in source.disclosure().entries if "sets" in e.what]
    assert [e.size for e in asked] == [28 * 9]
    check_moments(source.moments(), frame.moments())
