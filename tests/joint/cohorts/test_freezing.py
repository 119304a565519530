"""Freezing: what becomes of the rows of a table, whatever holds it and in whatever order."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.attacks.malicious import drafted_policy

from isthmus.errors import DataError, RefusedError, SchemaError
from isthmus.joint import (
    AskMoments,
    Cohort,
    DifferentialPrivacy,
    FixedPointEncoding,
    Member,
    Persons,
    SecureSums,
    Study,
)
from isthmus.joint.agreement.variables import resolution_of
from isthmus.joint.cohorts import freezing, row_hashes
from isthmus.joint.cohorts.candidates import ReleaseCandidates
from isthmus.joint.cohorts.checks import largest_share
from isthmus.joint.cohorts.freezing import STEPS, blurred
from isthmus.joint.federation.requests import fixed_point
from isthmus.joint.federation.requests.fixed_point import encode_rows
from isthmus.joint.noise.release import first_rows
from isthmus.joint.secure_sum.limbs import to_ints
from isthmus.sources.tables.engines.base import Engine
from isthmus.sources.tables.engines.polars import PolarsEngine
from isthmus.sources.tables.frame import Frame
from isthmus.statistics import Chebyshev, CountPlan, Expansion, Kind, Schema, Variable
from isthmus.types import Floats

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


def study_of(**changes: Any) -> Study:
    terms: dict[str, Any] = {
        "purpose": "p",
        "author": bytes([98]) * 32,
        "coordinator": bytes([99]) * 32,
        "members": [Member(n, n, bytes([i + 1]) * 32) for i, n in enumerate("xyz")],
        "schema": SCHEMA,
        "bounds": BOUNDS,
        "protocol": SecureSums(),
        "requests": ["moments"],
    }
    return Study.draft("S", **(terms | changes))


def visits(rows: int = 300, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "age": rng.integers(20, 90, rows).astype(float),
        "weight": rng.normal(80, 15, rows),
        "ward": rng.choice(["a", "b", "c"], rows),
        "ill": rng.random(rows) < 0.4,
        "patient": rng.permutation(rows) % 100,
    }


def frozen(data: object, study: Study | None = None, **rules: Any) -> Cohort:
    study = study_of(privacy=NOISE) if study is None else study
    return Cohort.freeze(
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
    monkeypatch.setattr(row_hashes, "CHUNK", 64)


# --- the order of rows -------------------------------------------------------------------------


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("where", ["memory", "engine"])
def test_the_order_of_rows_in_a_table_does_not_matter(where: str) -> None:
    """Without ORDER BY, a database may return the rows of a patient in any order."""
    table = visits()
    order = np.random.default_rng(1).permutation(300)
    other: Any = {n: c[order] for n, c in table.items()}
    study = study_of(privacy=NOISE)
    one, two = frozen(table), frozen(in_duckdb(other) if where == "engine" else other)
    assert one.values is not None
    assert two.values is not None
    assert one.persons is not None
    assert two.persons is not None
    assert np.array_equal(one.values, two.values)
    assert one.number_of_persons == 100
    kept = []
    for rows in (one.rows_of(study), two.rows_of(study)):
        assert rows.values is not None
        assert rows.persons is not None
        kept.append(rows.values[first_rows(rows.persons, 2)])
    assert len(kept[0]) == 200
    assert np.array_equal(kept[0], kept[1])


def test_the_rows_of_a_person_that_are_used_are_not_the_smallest() -> None:
    """The order is that of a hash: clipping rows per person does not favour low values."""
    rng = np.random.default_rng(3)
    table = {"x": rng.uniform(size=4000), "patient": np.arange(4000) % 400}
    study = study_of(schema=Schema.continuous(["x"]), bounds={"x": (0.0, 1.0)}, privacy=NOISE)
    rows = frozen(table, study).rows_of(study)
    assert rows.persons is not None
    assert rows.values is not None
    used = rows.values[first_rows(rows.persons, 1)]
    assert abs(used.mean() - 0.5) < 4 * np.sqrt(1 / 12 / 400)


def test_frozen_rows_are_the_statistics_of_the_table() -> None:
    table = visits()
    study = study_of(privacy=NOISE)
    source = frozen(in_duckdb(table)).rows_of(study).source
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


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")  # within Ibis
@pytest.mark.parametrize("engine", ["polars", "polars at once", "ibis"])
def test_every_engine_is_read_in_batches(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    polars = pytest.importorskip("polars")
    table = visits()
    expected = frozen(table).values
    monkeypatch.setattr("isthmus.sources.tables.lazy.batch_rows", lambda _: 70)
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
    cohort = frozen(in_duckdb(table) if where == "engine" else table, study)
    assert cohort.frozen is not None
    assert (cohort.frozen.dropped, cohort.frozen.clipped) == (2, 2)
    assert cohort.values is not None
    assert cohort.values.shape == (298, 4)
    ages = cohort.values[:, 0]
    assert ages.min() >= 0.0
    assert ages.max() <= 120.0


def test_rules_that_rows_break_refuse_exact_sums_and_no_study_with_noise() -> None:
    few = {n: c[:30] for n, c in visits().items()}
    with pytest.raises(RefusedError, match="fewer than 50 persons"):
        frozen(few, study_of(), persons=Persons())
    assert frozen(few, persons=Persons()).number_of_persons == 30


@pytest.mark.parametrize("few", [4, 5])
@pytest.mark.parametrize("value", [1.0, 0.37])
def test_a_flag_is_a_flag_after_it_was_blurred(few: int, value: float) -> None:
    """A variable that is declared as a number and has two values, one of them rare."""
    study = study_of(schema=Schema.continuous(["hiv", "x"]), bounds={"hiv": (0, 1), "x": (-9, 9)})
    rng = np.random.default_rng(1)
    table = {"hiv": np.where(np.arange(400) < few, value, 0.0), "x": rng.normal(size=400)}
    if few < 5:
        with pytest.raises(RefusedError, match="fewer than 5 persons"):
            frozen(table, study, persons=Persons())
    else:
        assert frozen(table, study, persons=Persons()).number_of_persons == 400


# --- blur --------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(
    st.floats(-1e6, 1e6),
    st.floats(1e-6, 1e6),
    st.floats(0.0, 0.2),
    st.lists(st.floats(-2e6, 2e6), min_size=1, max_size=20),
)
def test_blurred_values_are_multiples_of_a_power_of_two_within_the_bounds(
    low: float, span: float, share: float, values: list[float]
) -> None:
    high = low + span
    resolution = resolution_of(low, high, share * span)
    assert np.log2(resolution) == int(np.log2(resolution))
    try:
        found = blurred(np.array(values), low, high, resolution)
    except DataError:
        assert max(abs(low), abs(high)) > resolution * 2**36
        return
    assert low <= found.min()
    assert found.max() <= high
    whole = found / (resolution / STEPS)
    assert (whole == np.rint(whole)).all()
    inside = np.clip(values, low + resolution, high - resolution)
    near = (np.array(values) > low + resolution) & (np.array(values) < high - resolution)
    assert (np.abs(found - inside)[near] <= resolution * (1 + 1e-9)).all()


def residues(values: list[list[float]]) -> Counter[tuple[int, ...]]:
    """How often sums and products of two columns have each remainder, over all possible draws."""
    counted: Counter[tuple[int, ...]] = Counter()
    bounds, resolution = (-8.0, 8.0), 1.0
    unit, rows = resolution / freezing.STEPS, len(values)
    for drawn in itertools.product(range(freezing.STEPS), repeat=2 * rows):
        parts = iter((drawn[:rows], drawn[rows:]))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(freezing, "draw", lambda _, parts=parts: np.array(next(parts), float))
            columns = [blurred(np.array(c), *bounds, resolution) for c in zip(*values, strict=True)]
        x, y = ([int(v / unit) for v in column] for column in columns)
        products = [(x, y), (x, x), (y, y)]
        sums = [sum(x), sum(y), *(sum(a * b for a, b in zip(*p, strict=True)) for p in products)]
        counted[tuple(s % freezing.STEPS for s in sums)] += 1
    return counted


def test_sums_modulo_the_resolution_do_not_depend_on_the_data(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By enumeration of all draws: three rows of two columns, four steps per resolution."""
    monkeypatch.setattr(freezing, "STEPS", 4)
    found = [
        residues(values)
        for values in (
            [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]],
            [[0.25, 1.0], [3.5, -2.75], [7.9, -7.9]],
            [[0.0, 0.0], [0.0, 0.0], [0.25, 0.5]],  # one has more digits than the others
        )
    ]
    assert found[0] == found[1] == found[2]
    alone: Counter[int] = Counter()
    for (remainder, *_), times in found[0].items():
        alone[remainder] += times
    assert len(set(alone.values())) == 1  # and the sum of a column is uniform


@pytest.mark.parametrize("bounds", [(0.0, 0.3), (-50.1, 49.7), (1e5, 1e5 + 1.1)])
def test_the_integers_of_frozen_values_are_exact(bounds: tuple[float, float]) -> None:
    """No floating-point number is rounded on the way, whose digits could tell of the value."""
    rng = np.random.default_rng(5)
    low, high = bounds
    given = np.stack([rng.uniform(low, high, 200), rng.uniform(0, 1, 200)], axis=1)
    rows: Floats = np.stack(
        [
            blurred(given[:, 0], low, high, resolution_of(low, high)),
            blurred(given[:, 1], 0.0, 1.0, resolution_of(0.0, 1.0)),
        ],
        axis=1,
    )
    grid = FixedPointEncoding(
        Schema.continuous(["x", "y"]), {"x": bounds, "y": (0.0, 1.0)}, 2**24, 3
    )
    integers = to_ints(encode_rows(grid, rows))
    shifted = [
        [(Fraction(v) - Fraction(s)) / Fraction(2) ** int(e) for v in column]
        for column, s, e in zip(rows.T.tolist(), grid.shift, grid.exponents, strict=True)
    ]
    one = 2**grid.fraction
    assert integers[1:3] == [sum(column) * one for column in shifted]
    pairs = ((0, 0), (0, 1), (1, 1))
    exact = [sum(a * b for a, b in zip(shifted[i], shifted[j], strict=True)) for i, j in pairs]
    assert integers[3:] == [value * one for value in exact]


def test_the_blur_hardly_changes_moments() -> None:
    table = visits(2000)
    study = study_of()
    cohort = frozen(table, study, persons=Persons())
    found = cohort.rows_of(study).source.moments(["age", "weight"]).covariance()
    local = Frame({n: table[n] for n in SCHEMA.names}, schema=SCHEMA)
    np.testing.assert_allclose(found, local.moments(["age", "weight"]).covariance(), rtol=0.02)


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
