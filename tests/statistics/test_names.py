"""Names mean nothing: columns called x@1 or x~1 by a user are ordinary variables everywhere."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import MismatchError, SchemaError
from isthmus.graphs.knowledge import Lag
from isthmus.results import DynamicNetwork
from isthmus.statistics import Kind, Moments, Role, Schema, Variable
from isthmus.tables import Frame, Lazy
from isthmus_joint import Federation

NAMES = ["x", "x~1", "a@2", "x@1", "a@1~2", "x=1"]


def table(n: int = 500, seed: int = 0) -> dict[str, Any]:
    """A chain of the columns, in this order, by lines."""
    rng = np.random.default_rng(seed)
    columns = [rng.normal(size=n)]
    for _ in NAMES[1:]:
        columns.append(0.8 * columns[-1] + rng.normal(size=n))
    return dict(zip(NAMES, columns, strict=True))


CHAIN = {frozenset(pair) for pair in itertools.pairwise(NAMES)}


def skeleton(dag: ist.DAG) -> set[frozenset[str]]:
    return {frozenset(edge) for edge in dag.edges}


@pytest.mark.parametrize("search", [None, ist.HillClimb(), ist.Boss(), ist.NotearsAdditive()])
def test_every_search_takes_such_names(search: Any) -> None:
    solution = ist.learn(table(), search=search)
    assert solution.dag.nodes == tuple(NAMES)
    assert skeleton(solution.dag) == CHAIN
    if search is None:
        assert not solution.cpdag.directed  # no direction follows from names of time steps


def test_a_frame_an_engine_and_a_federation_take_such_names() -> None:
    polars = pytest.importorskip("polars")
    data = table()
    sites = {f"s{k}": {n: x[k::3] for n, x in data.items()} for k in range(3)}
    for source in (data, polars.LazyFrame(data), Federation.simulate(sites)):
        wide = ist.WithFeatures(source, ist.Chebyshev(2))
        assert wide.moments().schema.names == tuple(NAMES)
        assert skeleton(ist.learn(source, search=ist.NotearsAdditive()).dag) == CHAIN


def test_duckdb_computes_basis_functions_of_such_names() -> None:
    duckdb = pytest.importorskip("duckdb")
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(table())  # noqa: F841 - DuckDB reads it by its name
    found = ist.WithFeatures(duckdb.sql("select * from frame"), ist.Chebyshev(2)).moments()
    expected = ist.WithFeatures(table(), ist.Chebyshev(2)).moments()
    assert found.schema.names == expected.schema.names
    np.testing.assert_allclose(found.covariance(), expected.covariance(), atol=1e-9)


def test_a_series_takes_such_names() -> None:
    rng = np.random.default_rng(0)
    data = {"x": rng.normal(size=300), "x@1": rng.normal(size=300)}
    data["x@1"][1:] += 0.9 * data["x"][:-1]
    series = ist.Series(data, lags=1)
    assert series.schema().names == ("x", "x@1", "x@@1", "x@1@1")
    assert series.schema().lag_of["x@@1"] == Lag("x", 1)
    solution = ist.learn(series, search=ist.Dynotears())
    network = DynamicNetwork.from_dag(solution.dag, series.schema().lag_of)
    assert network.edges == (("x", "x@1", 1),)
    assert solution.details.network.edges == network.edges
    assert DynamicNetwork.from_dag(network.unrolled(), network.lag_of) == network


def test_names_of_time_steps_make_no_series() -> None:
    rng = np.random.default_rng(0)
    data = {"x": rng.normal(size=50), "x@1": rng.normal(size=50)}
    with pytest.raises(MismatchError, match="Series"):
        ist.learn(data, search=ist.Dynotears())
    schema = Schema(
        (Variable("x", Kind.CONTINUOUS), Variable("before", Kind.CONTINUOUS, lag=Lag("x", 1)))
    )
    renamed = Frame({"x": data["x"], "before": data["x@1"]}, schema=schema)
    assert ist.learn(renamed, search=ist.Dynotears()).dag.nodes == ("x", "before")


def test_an_engine_with_columns_of_earlier_steps_states_them_by_a_schema() -> None:
    polars = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    x[1:] += 0.7 * x[:-1]
    frame = polars.LazyFrame({"x": x}).with_columns(polars.col("x").shift(1).alias("x@1"))
    source = Lazy(frame.drop_nulls(), schema=Schema.continuous(["x"]).with_lags(1))
    assert ist.learn(source, search=ist.Dynotears()).dag.edges == (("x@1", "x"),)
    assert ist.learn(source).dag.edges == (("x@1", "x"),)


def test_roles_and_lags_survive_a_file(tmp_path: Any) -> None:
    rng = np.random.default_rng(0)
    moments = ist.Series({"x": rng.normal(size=20), "x@1": rng.normal(size=20)}, lags=1).moments()
    moments.save(tmp_path / "moments.npz")
    again = Moments.load(tmp_path / "moments.npz")
    assert again == moments
    assert [c.role for c in again.schema.columns] == [Role.VALUE] * 2 + [Role.LAG] * 2
    plain = Moments(Schema.continuous(moments.schema.names), *_parts(moments))
    with pytest.raises(SchemaError, match="cannot be added"):
        plain + moments


def _parts(moments: Moments) -> tuple[Any, ...]:
    return moments.n, moments.shift, moments.sums, moments.gram


def test_lags_must_make_sense() -> None:
    with pytest.raises(SchemaError, match="1 or more"):
        Variable("x@0", Kind.CONTINUOUS, lag=Lag("x", 0))
    with pytest.raises(SchemaError, match="of another variable"):
        Variable("x", Kind.CONTINUOUS, lag=Lag("x", 1))
    with pytest.raises(SchemaError, match="already"):
        Schema.continuous(["x"]).with_lags(1).with_lags(1)
