"""Copies of tables: in any order of rows, in memory or in a file, chunk by chunk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.attacks.malicious import Attacked

from isthmus.errors import SchemaError
from isthmus.joint import AskConsensus, AskMoments, Persons, RoundRequest
from isthmus.joint.disclosure import row_hashes
from isthmus.joint.disclosure.checks import largest_share
from isthmus.joint.disclosure.material import ReleaseCandidates
from isthmus.joint.disclosure.trace import Trace
from isthmus.joint.federation.requests import row_sums
from isthmus.joint.federation.requests.fixed_point import FixedPointEncoding
from isthmus.joint.federation.requests.row_sums import encode_rows
from isthmus.joint.federation.snapshot import Snapshot
from isthmus.joint.noise.release import first_rows
from isthmus.sources.tables.engines.base import Engine
from isthmus.sources.tables.engines.polars import PolarsEngine
from isthmus.sources.tables.frame import Frame
from isthmus.statistics import Chebyshev, CountPlan, Expansion, Kind, Schema, Variable

SCHEMA = Schema(
    (
        Variable("age", Kind.CONTINUOUS),
        Variable("weight", Kind.CONTINUOUS),
        Variable("ward", Kind.DISCRETE, ("a", "b", "c")),
        Variable("ill", Kind.DISCRETE, (False, True)),
    )
)
SECRET = bytes(range(32))
PATIENTS = Persons("column:patient")


def visits(rows: int = 300, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "age": rng.integers(20, 90, rows).astype(float),
        "weight": rng.normal(80, 15, rows),
        "ward": rng.choice(["a", "b", "c"], rows),
        "ill": rng.random(rows) < 0.4,
        "patient": rng.permutation(rows) % 100,
    }


def shuffled(table: dict[str, Any], seed: int) -> dict[str, Any]:
    order = np.random.default_rng(seed).permutation(len(table["age"]))
    return {n: c[order] for n, c in table.items()}


def in_duckdb(table: dict[str, Any]) -> Any:
    duckdb = pytest.importorskip("duckdb")
    pyarrow = pytest.importorskip("pyarrow")
    connection = duckdb.connect()
    connection.register("given", pyarrow.table(table))
    connection.execute("create table visits as select * from given")
    return connection.table("visits")


def fingerprint(snapshot: Snapshot) -> str:
    trace = Trace.of(SECRET, SCHEMA, snapshot.values, snapshot.persons, folder=snapshot.folder)
    return trace.fingerprint(SECRET)


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_hashes, "CHUNK", 64)


# --- the order of rows -------------------------------------------------------------------------


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("where", ["memory", "engine"])
def test_the_order_of_rows_in_a_table_does_not_matter(where: str, tmp_path: Path) -> None:
    """Without ORDER BY, a database may return the rows of a patient in any order."""
    table = visits()
    first = Snapshot(table, SCHEMA, PATIENTS)
    other: Any = shuffled(table, 1)
    second = Snapshot(in_duckdb(other) if where == "engine" else other, SCHEMA, PATIENTS, tmp_path)
    assert np.array_equal(first.values, second.values)
    assert fingerprint(first) == fingerprint(second)
    assert first.persons is not None
    assert second.persons is not None
    assert len(np.unique(first.persons)) == 100
    kept = [s.values[first_rows(s.persons, 2)] for s in (first, second) if s.persons is not None]
    assert len(kept[0]) == 200
    assert np.array_equal(kept[0], kept[1])
    assert first.source.moments() == second.source.moments()  # to the last digit


def test_the_rows_of_a_person_that_are_used_are_not_the_smallest() -> None:
    """The order is that of a hash: clipping rows per person does not favour low values."""
    rng = np.random.default_rng(3)
    table = {"x": rng.uniform(size=4000), "patient": np.arange(4000) % 400}
    snapshot = Snapshot(table, Schema.continuous(["x"]), PATIENTS)
    assert snapshot.persons is not None
    used = snapshot.values[first_rows(snapshot.persons, 1)]
    assert abs(used.mean() - 0.5) < 4 * np.sqrt(1 / 12 / 400)


@pytest.mark.parametrize("request_name", ["moments", "consensus"])
def test_a_restart_with_rows_in_another_order_gives_the_same_answers(request_name: str) -> None:
    names = ("a", "b")
    rng = np.random.default_rng(4)
    tables: dict[str, Any] = {n: {k: rng.normal(size=120) for k in names} for n in "xyz"}
    world = Attacked(
        tables,
        Schema.continuous(names),
        dict.fromkeys(names, (-9, 9)),
        requests=("moments", "totals", "consensus"),
    )
    request: Any = AskMoments(names) if request_name == "moments" else AskConsensus(names, 0)
    answers = []
    for seed in (5, 6):
        order = np.random.default_rng(seed).permutation(120)
        tables["x"] = {k: c[order] for k, c in tables["x"].items()}
        world.join()
        controller = world.controllers["x"]
        grid = controller._grid
        opening = RoundRequest(1, request.to_bytes(), request.size(grid), request.limbs)
        answers.append(controller.approve(opening))
    assert np.array_equal(answers[0], answers[1])


def test_a_row_that_is_given_to_another_person_is_other_data() -> None:
    """The values are the same, and so are the numbers of rows and of persons."""
    table = visits()
    before = fingerprint(Snapshot(table, SCHEMA, PATIENTS))
    renamed = table | {"patient": table["patient"] + 5000}
    assert fingerprint(Snapshot(renamed, SCHEMA, PATIENTS)) == before
    i, j = 0, int(np.flatnonzero(table["patient"] != table["patient"][0])[0])
    moved = table["patient"].copy()
    moved[[i, j]] = moved[[j, i]]
    assert fingerprint(Snapshot(table | {"patient": moved}, SCHEMA, PATIENTS)) != before


# --- in a file ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("small_chunks")
def test_a_table_of_an_engine_is_copied_to_a_file_without_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import narwhals as nw

    table = visits()
    live = in_duckdb(table)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the table was collected")

    monkeypatch.setattr(nw.LazyFrame, "collect", refuse)
    snapshot = Snapshot(live, SCHEMA, PATIENTS, tmp_path)
    assert isinstance(snapshot.values, np.memmap)
    assert not snapshot.values.flags.writeable
    assert list(tmp_path.iterdir()) == []  # nobody can open it, and nothing is left behind
    local = Frame({n: table[n] for n in SCHEMA.names}, schema=SCHEMA)
    source, plan = snapshot.source, CountPlan.sets([["ward", "ill"]])
    np.testing.assert_allclose(source.moments().covariance(), local.moments().covariance())
    assert source.moments(["ward", "age"]).schema.names == ("ward", "age")
    assert source.counts(plan) == local.counts(plan)
    expansion = Expansion.standardised(Chebyshev(3), local.moments(["age", "weight"]))
    wide, expected = (s.with_features(expansion).moments() for s in (source, local))
    np.testing.assert_allclose(wide.covariance(), expected.covariance(), atol=1e-9)
    assert snapshot.is_unchanged()


def test_an_empty_table_and_a_missing_column_of_persons(tmp_path: Path) -> None:
    table = visits()
    live = in_duckdb(table)
    assert Snapshot(live.filter("false"), SCHEMA, PATIENTS, tmp_path).rows == 0
    with pytest.raises(SchemaError, match="no column \\['nobody'\\]"):
        Snapshot(live, SCHEMA, Persons("column:nobody"), tmp_path)


def test_integers_of_chosen_columns_do_not_depend_on_the_number_of_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = np.random.default_rng(8).uniform(-1, 1, size=(3000, 4))
    names = ("a", "b")
    grid = FixedPointEncoding(Schema.continuous(names), dict.fromkeys(names, (-1.0, 1.0)), 2**20, 3)
    at_once = encode_rows(grid, rows[:, [3, 1]])
    monkeypatch.setattr(row_sums, "NUMBERS", 1)
    assert np.array_equal(encode_rows(grid, rows, [3, 1]), at_once)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("persons", [False, True])
@pytest.mark.parametrize("rank", [1, 3])
def test_dominance_in_chunks_is_that_of_the_hat_matrix(persons: bool, rank: int) -> None:
    rng = np.random.default_rng(7)
    columns = rng.normal(size=(200, rank)) @ rng.normal(size=(rank, 3)) + 100.0
    columns[150] *= 3.0
    centred = np.column_stack([np.ones(200), columns])
    hat = centred @ np.linalg.pinv(centred)
    owners = rng.permutation(200) % 40 if persons else np.arange(200)
    blocks = [hat[np.ix_(owners == i, owners == i)] for i in np.unique(owners)]
    expected = max(np.linalg.eigvalsh(block)[-1] for block in blocks)
    material = ReleaseCandidates({}, columns, persons=owners if persons else None)
    assert largest_share(material) == pytest.approx(expected, rel=1e-9)


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")  # within Ibis
@pytest.mark.parametrize("engine", ["polars", "polars at once", "ibis"])
def test_every_engine_is_read_in_batches(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    polars = pytest.importorskip("polars")
    table = visits()
    expected = Snapshot(table, SCHEMA, PATIENTS)
    monkeypatch.setattr("isthmus.sources.tables.lazy.batch_rows", lambda _: 70)
    live: Any = polars.LazyFrame(table)
    if engine == "polars at once":  # what engines do that cannot stream
        monkeypatch.setattr(PolarsEngine, "batches", Engine.batches)
    if engine == "ibis":
        ibis = pytest.importorskip("ibis")
        live = ibis.duckdb.connect().create_table("visits", live.collect().to_arrow())
    snapshot = Snapshot(live, SCHEMA, PATIENTS, tmp_path)
    assert np.array_equal(snapshot.values, expected.values)
    assert fingerprint(snapshot) == fingerprint(expected)
