"""Conformance check for sources."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from isthmus.errors import IsthmusError
from isthmus.statistics import CountPlan, Counts, Kind, Moments
from isthmus.statistics.features import Basis, basis_from_dict, basis_to_dict
from isthmus.tables import Source


def check_source(source: Source, frame: Source) -> None:
    """Check that a source returns the same statistics as a `Frame` of the same rows.

    Schemas and counts must be equal. Moments must agree to 1e-10, relative to the standard
    deviations.

    Parameters
    ----------
    source
        The source to check.
    frame
        The same rows in memory, in any order.

    Raises
    ------
    AssertionError
        If something differs. The message says what.
    """
    schema = frame.schema()
    assert source.schema() == schema, f"schemas differ: {source.schema()} is not {schema}"
    check_moments(source.moments(), frame.moments())
    backwards = schema.names[::-1]
    check_moments(source.moments(backwards), frame.moments(backwards))
    first = schema.names[:1]
    check_moments(source.moments(first), frame.moments(first))
    discrete = schema.of_kind(Kind.DISCRETE)
    plans = [CountPlan.sets([discrete[:2], discrete[-1:]])] if discrete else []
    if len(discrete) == len(schema):
        plans += [CountPlan.everything(), CountPlan.up_to(2)]
    for plan in plans:
        check_counts(source.counts(plan), frame.counts(plan))


def check_moments(actual: Moments, expected: Moments, tolerance: float = 1e-10) -> None:
    """Check that two moments are equal, relative to the standard deviations of the columns."""
    assert actual.schema == expected.schema, "the schemas of the moments differ"
    assert actual.n == expected.n, f"the moments have {actual.n} rows, not {expected.n}"
    spread = np.sqrt(expected.scatter().diagonal())
    size = np.maximum(spread / np.sqrt(expected.n), np.abs(expected.mean()))
    wrong = np.abs(actual.mean() - expected.mean()) > tolerance * size
    assert not wrong.any(), f"the means of {_named(expected, wrong)} differ"
    # The scatter of a constant column is not exactly zero, because its mean is rounded.
    rounding = 2 * np.finfo(np.float64).eps * np.abs(expected.mean()) * np.sqrt(expected.n)
    wide = np.maximum(spread, rounding)
    scale = tolerance * np.outer(wide, wide) + np.outer(rounding, rounding)
    wrong = np.asarray((np.abs(actual.scatter() - expected.scatter()) > scale).any(axis=0))
    assert not wrong.any(), f"the products of {_named(expected, wrong)} differ"


def check_counts(actual: Counts, expected: Counts) -> None:
    """Check that two counts are equal."""
    assert actual.schema == expected.schema, "the schemas of the counts differ"
    assert actual.n == expected.n, f"the counts have {actual.n} rows, not {expected.n}"
    assert actual.plan == expected.plan, f"the plan is {actual.plan}, not {expected.plan}"
    assert actual == expected, f"the tables of {actual.plan} differ"


def _named(moments: Moments, wrong: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> list[str]:
    return [c for c, bad in zip(moments.columns, wrong, strict=True) if bad]


# --- Conformance check for bases ----------------------------------------------------------------

_POINTS = 2001
_REACH = 50.0  # standard deviations


def check_basis(basis: Basis) -> None:
    """Check that a basis satisfies the requirements of its interface.

    It must evaluate to the stated number of functions, with finite values within the stated bounds
    and NaN for missing values. Its expressions must give the same values in a dataframe library, if
    one is installed, and it must be the same after a round trip through JSON.

    Raises
    ------
    AssertionError
        If a requirement is not met. The message says which.
    """
    z = np.concatenate([np.linspace(-_REACH, _REACH, _POINTS), np.linspace(-4.0, 4.0, _POINTS)])
    values = _check_values(basis, z)
    _check_bounds(basis, values)
    _check_written(basis)
    _check_expressions(basis, z, values)
    rows = basis.rows_per_column
    assert isinstance(rows, int), f"rows_per_column must be an integer, not {rows!r}"
    assert rows >= 1, f"rows_per_column must be at least 1, not {rows}"


def _check_values(basis: Basis, z: Any) -> Any:
    assert basis.size >= 1, f"a basis needs at least one function; size is {basis.size}"
    values = basis.evaluate(z)
    shape = (basis.size, len(z))
    assert values.shape == shape, f"evaluate must return the shape {shape}, not {values.shape}"
    table = basis.evaluate(z[:6].reshape(2, 3))
    assert table.shape == (basis.size, 2, 3), "evaluate must accept arrays of any shape"
    same = np.array_equal(table.reshape(basis.size, 6), values[:, :6])
    assert same, "evaluate must not depend on the shape of its argument"
    assert np.isfinite(values).all(), "evaluate must return finite values"
    missing = basis.evaluate(np.array([np.nan, 0.0]))[:, 0]
    assert np.isnan(missing).all(), "evaluate must return NaN for NaN"
    spread = values.std(axis=1)
    assert (spread > 0).all(), "every function must vary; one is constant"
    return values


def _check_bounds(basis: Basis, values: Any) -> None:
    bounds = list(basis.bounds())
    assert len(bounds) == basis.size, f"there are {len(bounds)} bounds for {basis.size} functions"
    for k, (low, high) in enumerate(bounds):
        finite = math.isfinite(low) and math.isfinite(high)
        assert finite, f"the bounds of function {k + 1} must be finite, not {low}, {high}"
        assert low < high, f"the bounds of function {k + 1} must increase, not {low}, {high}"
        margin = 1e-9 * (high - low)
        within = values[k].min() >= low - margin and values[k].max() <= high + margin
        assert within, (
            f"function {k + 1} has values from {values[k].min():.6g} to {values[k].max():.6g}, "
            f"outside of its bounds {low:.6g} and {high:.6g}"
        )


def _check_written(basis: Basis) -> None:
    text = json.dumps(basis_to_dict(basis))
    try:
        restored = basis_from_dict(json.loads(text))
    except IsthmusError as error:
        raise AssertionError(f"the basis cannot be restored from JSON: {error}") from error
    assert restored == basis, f"restored from JSON, {basis!r} becomes {restored!r}"


def _check_expressions(basis: Basis, z: Any, values: Any) -> None:
    import narwhals as nw

    for backend in ("polars", "pyarrow", "pandas"):
        try:
            frame = nw.from_dict({"z": z}, backend=backend)
        except (ImportError, ModuleNotFoundError):
            continue
        expressions = basis.expressions(nw.col("z"))
        number = len(expressions)
        assert number == basis.size, f"there are {number} expressions for {basis.size} functions"
        table = frame.select(*[e.alias(f"f{k}") for k, e in enumerate(expressions)])
        for k in range(basis.size):
            computed = np.asarray(table.get_column(f"f{k}").to_numpy())
            close = np.allclose(computed, values[k], rtol=1e-9, atol=1e-9)
            assert close, f"expression {k + 1} and evaluate differ in {backend}"
        return
