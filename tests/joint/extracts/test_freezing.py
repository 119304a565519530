"""Freezing: what becomes of the rows of a table, whatever holds it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.attacks.malicious import drafted_policy

from isthmus.errors import RefusedError, SchemaError
from isthmus.statistics import Chebyshev, CountPlan, Expansion, Kind, Schema, Variable
from isthmus.tables.engines.base import Engine
from isthmus.tables.engines.polars import PolarsEngine
from isthmus.tables.frame import Frame
from isthmus_joint import (
    AskMoments,
    DifferentialPrivacy,
    Extract,
    Identity,
    Member,
    Persons,
    SecureSums,
    Study,
)
from isthmus_joint.extracts import reading
from isthmus_joint.extracts.checks import ReleaseCandidates, largest_share
from isthmus_joint.federation.requests import fixed_point
from isthmus_joint.federation.requests.fixed_point import FixedPointEncoding, encode_rows

SCHEMA = Schema(
    (
        Variable("age", Kind.CONTINUOUS),
        Variable("weight", Kind.CONTINUOUS),
        Variable("ward", Kind.DISCRETE, ("a", "b", "c")),
        Variable("ill", Kind.DISCRETE, (False, True)),
    )
)
BOUNDS = {"age": (0.0, 120.0), "weight": (0.0, 300.0)}
PATIENTS = Persons("column:patient")
NOISE = DifferentialPrivacy(1.0)
KEYS = {name: Identity.generate() for name in "xyz"}
AUTHOR, BOSS = Identity.generate(), Identity.generate()


def study_of(title: str = "S", **changes: Any) -> Study:
    terms: dict[str, Any] = {
        "purpose": "p",
        "author": AUTHOR.public,
        "coordinator": BOSS.public,
        "members": [Member(n, n, key.public) for n, key in KEYS.items()],
        "schema": SCHEMA,
        "bounds": BOUNDS,
        "protocol": SecureSums(),
        "requests": ["moments"],
        "exact": "privacy" not in changes,
    }
    return Study.draft(title, **(terms | changes))


def visits(rows: int = 300, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "age": rng.integers(20, 90, rows).astype(float),
        "weight": rng.normal(80, 15, rows),
        "ward": rng.choice(["a", "b", "c"], rows),
        "ill": rng.random(rows) < 0.4,
        "patient": rng.permutation(rows) % 100,
    }


def frozen(data: object, study: Study | None = None, **rules: Any) -> Extract:
    study = study_of(privacy=NOISE) if study is None else study
    return Extract.freeze(
        study,
        data,
        drafted_policy(study, **({"persons": PATIENTS, "maximum_epsilon": 1.0} | rules)),
    )


def in_duckdb(table: dict[str, Any]) -> Any:
    duckdb = pytest.importorskip("duckdb")
    pyarrow = pytest.importorskip("pyarrow")
    connection = duckdb.connect()
    connection.register("given", pyarrow.table(table))
    connection.execute("create table visits as select * from given")
    return connection.table("visits")


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "CHUNK", 64)


# --- sources ---------------------------------------------------------------------------------


@pytest.mark.long
def test_frozen_rows_are_the_statistics_of_the_table() -> None:
    table = visits()
    source = frozen(in_duckdb(table)).source
    local = Frame({n: table[n] for n in SCHEMA.names}, schema=SCHEMA)
    plan = CountPlan.sets([["ward", "ill"]])
    np.testing.assert_allclose(source.moments().covariance(), local.moments().covariance())
    assert source.moments(["ward", "age"]).schema.names == ("ward", "age")
    assert source.counts(plan) == local.counts(plan)
    expansion = Expansion.standardised(Chebyshev(3), local.moments(["age", "weight"]))
    wide, expected = (s.with_features(expansion).moments() for s in (source, local))
    np.testing.assert_allclose(wide.covariance(), expected.covariance(), atol=1e-9)


def test_a_missing_column_of_persons() -> None:
    with pytest.raises(SchemaError, match="'nobody'"):
        frozen(visits(), persons=Persons("column:nobody"))
    with pytest.raises(SchemaError, match="no column \\['nobody'\\]"):
        frozen(in_duckdb(visits()), persons=Persons("column:nobody"))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")  # within Ibis
@pytest.mark.parametrize("engine", ["polars", "polars at once", "ibis"])
def test_every_engine_is_read_in_batches(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    polars = pytest.importorskip("polars")
    table = visits()
    expected = frozen(table).values
    monkeypatch.setattr("isthmus.tables.lazy.batch_rows", lambda _: 70)
    live: Any = polars.LazyFrame(table)
    if engine == "polars at once":  # what engines do that cannot stream
        monkeypatch.setattr(PolarsEngine, "batches", Engine.batches)
    if engine == "ibis":
        ibis = pytest.importorskip("ibis")
        live = ibis.duckdb.connect().create_table("visits", live.collect().to_arrow())
    values = frozen(live).values
    assert values is not None
    assert expected is not None
    assert np.array_equal(values, expected)


# --- rows that are dropped, values that are clipped --------------------------------------------


@pytest.mark.parametrize("noise", [True, False])
@pytest.mark.parametrize("where", ["memory", "engine"])
def test_incomplete_rows_are_dropped_and_values_are_clipped(noise: bool, where: str) -> None:
    """Nothing about them is told to anybody else, and nothing is refused because of them."""
    table = visits()
    table["age"][0], table["weight"][1], table["age"][2] = np.nan, 301.5, -1e300
    table["ward"] = table["ward"].astype(object)
    table["ward"][3] = "Mr Miller"
    study = study_of(privacy=NOISE if noise else None)
    extract = frozen(in_duckdb(table) if where == "engine" else table, study)
    assert extract.frozen is not None
    assert (extract.frozen.dropped, extract.frozen.clipped) == (2, 2)
    assert extract.values is not None
    assert extract.values.shape == (298, 4)
    ages = extract.values[:, 0]
    assert ages.min() >= 0.0
    assert ages.max() <= 120.0


def test_rules_that_rows_break_refuse_exact_sums_and_no_study_with_noise() -> None:
    few = {n: c[:30] for n, c in visits().items()}
    with pytest.raises(RefusedError, match="fewer than 50 persons"):
        frozen(few, study_of(), persons=Persons())
    assert frozen(few, persons=Persons()).number_of_persons == 30


@pytest.mark.parametrize("few", [4, 5])
@pytest.mark.parametrize("value", [1.0, 0.37])
def test_a_flag_that_is_declared_as_a_number_is_a_flag(few: int, value: float) -> None:
    """A variable that is declared as a number and has two values, one of them rare."""
    study = study_of(schema=Schema.continuous(["hiv", "x"]), bounds={"hiv": (0, 1), "x": (-9, 9)})
    rng = np.random.default_rng(1)
    table = {"hiv": np.where(np.arange(400) < few, value, 0.0), "x": rng.normal(size=400)}
    if few < 5:
        with pytest.raises(RefusedError, match="fewer than 5 persons"):
            frozen(table, study, persons=Persons())
    else:
        assert frozen(table, study, persons=Persons()).number_of_persons == 400


# --- chunks ------------------------------------------------------------------------------------


def test_integers_of_chosen_columns_do_not_depend_on_the_number_of_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = np.random.default_rng(8).uniform(-1, 1, size=(3000, 4))
    names = ("a", "b")
    grid = FixedPointEncoding(Schema.continuous(names), dict.fromkeys(names, (-1.0, 1.0)), 2**20, 3)
    assert AskMoments(names).size(grid) == 6
    at_once = encode_rows(grid, rows[:, [3, 1]])
    monkeypatch.setattr(fixed_point, "IN_MEMORY", 1)
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
    candidates = ReleaseCandidates({}, columns, persons=owners if persons else None)
    assert largest_share(candidates) == pytest.approx(expected, rel=1e-9)
