"""Paths of single engines that ordinary tables do not take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isthmus.arrays import completed
from isthmus.errors import DataError, MissingValuesError, SchemaError
from isthmus.statistics import CountPlan, Schema
from isthmus.tables import Frame, Lazy
from isthmus.tables.missing import ExpectationMaximisation
from isthmus.testing.source import check_moments, check_source

Table = dict[str, Any]
Constructor = Callable[[Table], Any]

IBIS = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ibis"),
    pytest.mark.filterwarnings("ignore:The 'future.infer_string' option"),
]


def with_marks(function: Any) -> Any:
    for mark in IBIS:
        function = mark(function)
    return function


def mixed(n: int = 500) -> Table:
    rng = np.random.default_rng(3)
    return {
        "x": 1e6 + rng.normal(size=n),
        "truth": rng.random(n) < 0.5,
        "y": rng.normal(size=n),
        "c": rng.choice(["a", "it's", "ç"], n),
    }


def with_holes() -> Table:
    """Three columns with four patterns of missing values."""
    x = np.random.default_rng(6).normal(size=(90, 3))
    x[::3, 0] = np.nan
    x[::5, 1] = np.nan
    return {f"v{i}": x[:, i] for i in range(3)}


@with_marks
@pytest.mark.postgres
def test_postgres_by_copy(make_ibis_postgres: Constructor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isthmus.tables.engines.ibis.QUERIES", 0)
    monkeypatch.setattr("isthmus.tables.engines.ibis.batch_rows", lambda _: 64)
    for n in (500, 64, 1):
        data = mixed(n)
        source = Lazy(make_ibis_postgres(data), stream_rows=True)
        check_source(source, Frame(data))
        assert any(e.size == 4 * n and "streamed" in e.what for e in source.disclosure().entries)
    table = make_ibis_postgres(with_holes())
    missing = ExpectationMaximisation()
    source = Lazy(table, missing=missing, stream_rows=True)
    expected = Frame(with_holes(), missing=missing).moments()
    check_moments(source.moments(), expected, tolerance=1e-6)
    assert source.disclosure().entries[-1].size == 90 * 3
    data = mixed()
    data["x"][3] = np.nan
    data["y"] = [None, *data["y"][1:]]
    with pytest.raises(MissingValuesError, match=r"'x' \(1\), 'y' \(1\)"):
        Lazy(make_ibis_postgres(data), stream_rows=True).moments()
    short = Frame(mixed()).schema().with_levels({"c": ("a", "ç")})
    with pytest.raises(SchemaError, match="not among its levels"):
        Lazy(make_ibis_postgres(mixed()), schema=short, stream_rows=True).moments()


@with_marks
@pytest.mark.postgres
def test_postgres_in_several_queries(
    make_ibis_postgres: Constructor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isthmus.tables.engines.sql.CHUNK", 5)
    data = mixed()
    source = Lazy(make_ibis_postgres(data))
    check_source(source, Frame(data))
    assert sum(e.size for e in source.disclosure().entries) < 200


@with_marks
@pytest.mark.postgres
def test_postgres_with_sixty_columns(make_ibis_postgres: Constructor) -> None:
    """More sums than PostgreSQL gives back in one row."""
    x = np.random.default_rng(4).normal(size=(50, 60))
    data = {f"v{i}": x[:, i] for i in range(60)}
    check_moments(Lazy(make_ibis_postgres(data)).moments(), Frame(data).moments())


@with_marks
@pytest.mark.postgres
def test_numeric_columns_of_postgres(make_ibis_postgres: Constructor, postgres: str) -> None:
    import psycopg

    with psycopg.connect(postgres) as connection:
        connection.execute(
            "CREATE TABLE prices AS SELECT (i * 1.25)::numeric(10, 2) AS price, i AS day, "
            "(i % 2)::smallint AS odd FROM generate_series(1, 40) AS i"
        )
    table = make_ibis_postgres({"a": [1]}).get_backend().table("prices")
    i = np.arange(1, 41)
    check_source(Lazy(table), Frame({"price": i * 1.25, "day": i, "odd": i % 2}))


@pytest.fixture
def rows_sent(make_ibis_sqlite: Constructor, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Number of rows of each answer of SQLite."""
    backend = type(make_ibis_sqlite({"a": [1]}).get_backend())
    send = backend.to_pyarrow_batches
    sent: list[int] = []

    def counted(self: Any, *given: Any, **named: Any) -> Any:
        table = send(self, *given, **named).read_all()
        sent.append(table.num_rows)
        return table.to_reader()

    monkeypatch.setattr(backend, "to_pyarrow_batches", counted)
    return sent


@with_marks
@pytest.mark.slow
def test_no_row_of_a_wide_table_leaves_a_database(
    make_ibis_sqlite: Constructor, rows_sent: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("sql", "ibis"):
        monkeypatch.setattr(f"isthmus.tables.engines.{module}.CHUNK", 100)
    monkeypatch.setattr("isthmus.tables.engines.sql.TILE", 10)
    x = 5.0 + np.random.default_rng(4).normal(size=(30, 40))
    data = {f"v{i}": x[:, i] for i in range(40)}
    table, expected = make_ibis_sqlite(data), Frame(data).moments()
    source = Lazy(table)
    check_moments(source.moments(), expected)
    assert set(rows_sent) == {1}
    assert sum(entry.size for entry in source.disclosure().entries) < 1_000
    source = Lazy(table, schema=expected.schema, stream_rows=True)
    check_moments(source.moments(), expected)
    assert rows_sent[-1] == 30
    assert "30 rows of 40 variables, streamed" in source.disclosure().entries[-1].what


@pytest.mark.long
@with_marks
def test_patterns_of_missing_values_are_summed_up_in_sql(
    make_ibis_sqlite: Constructor, rows_sent: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isthmus.tables.engines.sql.CHUNK", 4)
    missing = ExpectationMaximisation()
    schema = Schema.continuous(list(with_holes()))
    expected = Frame(with_holes(), missing=missing).moments()
    source = Lazy(make_ibis_sqlite(with_holes()), schema=schema, missing=missing)
    check_moments(source.moments(), expected, tolerance=1e-6)
    assert set(rows_sent) == {1, 4}  # four patterns
    assert source.disclosure().entries[-1].size == 4 * (1 + 3 + 6)
    data = with_holes()
    data["v2"][8] = np.inf
    with pytest.raises(DataError, match=r"infinite.*'v2' \(1\)"):
        Lazy(make_ibis_sqlite(data), schema=schema, missing=missing).moments()
    monkeypatch.setattr("isthmus.tables.engines.sql.LARGEST", 20)
    with pytest.raises(DataError, match=r"4 different patterns.*stream_rows=True"):
        Lazy(make_ibis_sqlite(with_holes()), schema=schema, missing=missing).moments()


@with_marks
def test_databases_without_nan(
    make_ibis_sqlite: Constructor, rows_sent: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isthmus.tables.engines.sql.CHUNK", 5)
    data = mixed()
    check_moments(Lazy(make_ibis_sqlite(data)).moments(), Frame(data).moments())
    assert max(rows_sent) < 10  # the levels of the two discrete columns, and their counts
    check_source(Lazy(make_ibis_sqlite(data)), Frame(data))
    data["x"][:3] = [0.0, -np.inf, np.inf]
    with pytest.raises(DataError, match=r"infinite.*'x' \(2\)"):
        Lazy(make_ibis_sqlite(data)).moments()


@with_marks
def test_ibis_tables_in_memory_and_queries(make_ibis_duckdb: Constructor) -> None:
    ibis = pytest.importorskip("ibis")
    data = {"x": [1.5, 2.5, 4.5], "y": [1.0, 0.5, 0.25]}
    check_source(Lazy(ibis.memtable(data)), Frame(data))
    table = make_ibis_duckdb(mixed())
    query = table.filter(table.y > 0).mutate(z=table.x * 2).drop("truth")
    kept = mixed()["y"] > 0
    part = {n: v[kept] for n, v in mixed().items() if n != "truth"}
    check_source(Lazy(query), Frame({**part, "z": part["x"] * 2}))


def test_duckdb_queries_types_and_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    duckdb = pytest.importorskip("duckdb")
    monkeypatch.setattr("isthmus.tables.engines.duckdb.batch_rows", lambda _: 2048)
    connection = duckdb.connect()
    connection.execute("CREATE TYPE size AS ENUM ('small', 'large', 'huge')")
    relation = connection.sql(
        "SELECT (i * 0.25)::DECIMAL(12, 2) AS price, i::HUGEINT AS big, "
        "(CASE WHEN i % 3 = 0 THEN 'large' ELSE 'small' END)::size AS size, "
        "i % 2 = 0 AS even FROM range(10000) t(i)"
    )
    i = np.arange(10_000)
    data = {
        "price": i * 0.25,
        "big": i,
        "size": np.where(i % 3 == 0, "large", "small"),
        "even": i % 2 == 0,
    }
    check_source(Lazy(relation), Frame(data))
    connection.close()


def test_duckdb_with_values_that_are_no_levels(make_duckdb: Constructor) -> None:
    short = Frame(mixed()).schema().with_levels({"c": ("a", "ç")})
    with pytest.raises(SchemaError, match=r"'c'.*not among its levels"):
        Lazy(make_duckdb(mixed()), schema=short).moments()


def test_narwhals_keeps_no_types_of_duckdb_at_exit(make_duckdb: Constructor) -> None:
    """Under some interpreters, DuckDB 2.0 ends with thirty lines on leaks if it does."""
    from narwhals._namespace import _builtin_namespace

    from isthmus.tables.engines import duckdb

    Lazy(make_duckdb(mixed())).moments()
    assert _builtin_namespace.cache_info().currsize > 0
    duckdb._release_cached_types()
    assert _builtin_namespace.cache_info().currsize == 0


def test_a_table_that_changes_is_noticed(make_duckdb: Constructor) -> None:
    relation = make_duckdb({"a": [0, 1, 1], "b": ["x", "y", "y"]})
    source = Lazy(relation)
    assert source.counts(CountPlan.everything()).n == 3
    assert source.counts(CountPlan.up_to(1)).n == 3  # from what is at hand
    short = Schema.discrete({"a": (0,), "b": ("x",)})
    with pytest.raises(SchemaError, match=r"'a'.*not among its levels"):
        Lazy(relation, schema=short).counts(CountPlan.everything())


def test_unsupported_engines_are_named() -> None:
    import narwhals as nw

    from isthmus.tables.engines.find import engine_of

    class Odd:
        implementation = nw.Implementation.DASK

        def to_native(self) -> object:
            return object()

    with pytest.raises(DataError, match="not supported"):
        engine_of(Odd(), ["a"])  # type: ignore[arg-type]


@pytest.mark.spark
def test_the_driver_of_spark_receives_one_sum(
    make_pyspark: Constructor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the number of partitions, of which some have no rows, and in the same order."""
    monkeypatch.setattr("isthmus.tables.engines.spark_workers.BLOCK", 4)
    rng = np.random.default_rng(5)
    data = {"x": rng.normal(size=6), "y": rng.normal(size=6), "c": np.array(list("abaaba"))}
    table = make_pyspark(data)
    expected = Frame(data).moments()
    numbers = 2 + 4 * 3 + 3 + 3 * 4 // 2
    for partitions in (1, 9):
        # By hash, so that a row is in the same partition in every run.
        source = Lazy(table.repartition(partitions, "x"), schema=expected.schema)
        check_moments(source.moments(), expected)
        assert [entry.size for entry in source.disclosure().entries] == [numbers]
    again = Lazy(table.repartition(9, "x"), schema=expected.schema)
    assert again.moments() == source.moments()


@pytest.mark.spark
def test_the_driver_of_spark_receives_each_pattern_once(make_pyspark: Constructor) -> None:
    x = np.random.default_rng(6).normal(size=(60, 3))
    x[::3, 0] = np.nan
    data = {f"v{i}": x[:, i] for i in range(3)}
    schema = Schema.continuous(list(data))
    expected = Frame(data, missing=ExpectationMaximisation()).moments()
    sizes = []
    for partitions in (1, 7):
        table = make_pyspark(data).repartition(partitions)
        source = Lazy(table, schema=schema, missing=ExpectationMaximisation())
        check_moments(source.moments(), expected, tolerance=1e-6)
        sizes.append(source.disclosure().entries[-1].size)
    # Two patterns: triangles of three and of two columns, with the column of ones.
    assert sizes == [2 + 10 + 6] * 2
    for partitions in (1, 7):
        x[40:45, 2] = np.inf
        table = make_pyspark(data).repartition(partitions)
        with pytest.raises(DataError, match=r"'v2' \(5\)"):
            Lazy(table, schema=schema, missing=ExpectationMaximisation()).moments()


@pytest.mark.spark
def test_the_workers_of_spark_count_all_sets_in_one_pass(make_pyspark: Constructor) -> None:
    data = {k: mixed()[k] for k in ("truth", "c")} | {"k": np.arange(500) % 3 + 5}
    schema = Schema.discrete({"truth": (False, True), "c": ("a", "it's", "ç"), "k": (5, 6, 7)})
    source = Lazy(make_pyspark(data).repartition(4), schema=schema)
    sets = [(1,), (0, 2), (0, 1, 2)]
    engine, columns = source._engine, ["c0", "c1", "c2"]
    counted = completed(engine.count_tables(schema, columns, sets))
    rows = list(zip(*(data[v.name].tolist() for v in schema.variables), strict=True))
    for members, table in zip(sets, counted.tables, strict=True):
        for cell in np.ndindex(table.shape):
            wanted = [schema.variables[i].levels[k] for i, k in zip(members, cell, strict=True)]
            assert table[cell] == sum([row[i] for i in members] == wanted for row in rows)
    assert counted.size == 1 + 2 * 3 + 3 + 6 + 18
    with pytest.raises(SchemaError, match=r"'c'.*not among its levels"):
        completed(engine.count_tables(schema.with_levels({"c": ("a", "ç")}), columns, sets))


def test_moments_of_a_scanned_file_are_the_same_in_every_run(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    path = tmp_path / "table.parquet"
    table = polars.DataFrame({f"v{i}": rng.normal(size=200_000) for i in range(4)})
    table.write_parquet(path, row_group_size=5_000)
    first = Lazy(polars.scan_parquet(path)).moments()
    assert all(Lazy(polars.scan_parquet(path)).moments() == first for _ in range(5))
    assert Frame(table).moments() == first
