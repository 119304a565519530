"""Basis functions as columns: the same in memory and in an engine."""

from __future__ import annotations

import json

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import ArgumentError, MismatchError, SchemaError
from isthmus.statistics import Expansion
from isthmus.tables import Frame, Lazy
from isthmus.testing.source import check_moments


def table(seed: int = 0, n: int = 500) -> dict[str, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    rng = np.random.default_rng(seed)
    return {"x": rng.normal(5.0, 2.0, n), "y": rng.standard_t(3, n), "z": rng.random(n)}


def test_features_are_chebyshev_polynomials() -> None:
    data = table()
    wide = ist.WithFeatures(data, ist.Chebyshev(5, radius=2.0))
    assert wide.schema().names == ("x", "y", "z")
    columns = []
    for x in data.values():
        u = np.clip((x - x.mean()) / (2.0 * x.std()), -1.0, 1.0)
        columns += [x, *(np.cos(k * np.arccos(u)) for k in range(1, 6))]
    expected = np.cov(columns, bias=True)
    np.testing.assert_allclose(wide.moments().covariance(), expected, atol=1e-12, rtol=1e-12)
    np.testing.assert_allclose(wide.moments().mean(), np.mean(columns, axis=1), atol=1e-13)


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_engine_computes_the_same(engine: str) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(table())
    if engine == "polars":
        lazy: object = frame.lazy()
    else:
        duckdb = pytest.importorskip("duckdb")
        lazy = duckdb.sql("select * from frame")
    source = ist.WithFeatures(Lazy(lazy), ist.Chebyshev(6))
    here = ist.WithFeatures(Frame(frame), ist.Chebyshev(6))
    check_moments(source.moments(), here.moments(), tolerance=1e-9)
    check_moments(source.moments(["z", "x"]), here.moments(["z", "x"]), tolerance=1e-9)
    assert source.disclosure().entries


def test_expansion_travels_as_json() -> None:
    expansion = Expansion.standardised(ist.Chebyshev(4), Frame(table()).moments())
    text = json.dumps(expansion.to_dict())
    assert Expansion.from_dict(json.loads(text)) == expansion


def test_refusals() -> None:
    with pytest.raises(ArgumentError, match="terms"):
        ist.Chebyshev(0)
    with pytest.raises(SchemaError, match="continuous"):
        ist.WithFeatures({"x": ["a", "b", "a"]})
    with pytest.raises(MismatchError, match="only statistics"):
        ist.WithFeatures(Frame(table()).moments())
