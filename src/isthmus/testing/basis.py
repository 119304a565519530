"""A conformance check for bases of one's own."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from isthmus.errors import IsthmusError
from isthmus.statistics.features import Basis, basis_from_dict, basis_to_dict

_POINTS = 2001
_REACH = 50.0  # standard deviations


def check_basis(basis: Basis) -> None:
    """Check that a basis keeps the promises of its interface.

    It must evaluate to as many functions as it says, finite and within its bounds, pass missing
    values on, give the same values in the language of an engine (where a dataframe library is
    installed), and survive being written to JSON and read again.

    Raises
    ------
    AssertionError
        A promise is broken; the message says which.
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
    assert values.shape == shape, f"evaluate gives the shape {values.shape}; {shape} is needed"
    table = basis.evaluate(z[:6].reshape(2, 3))
    assert table.shape == (basis.size, 2, 3), "evaluate must take arrays of any shape"
    same = np.array_equal(table.reshape(basis.size, 6), values[:, :6])
    assert same, "evaluate must not depend on the shape of its argument"
    assert np.isfinite(values).all(), "evaluate gives values that are not finite"
    missing = basis.evaluate(np.array([np.nan, 0.0]))[:, 0]
    assert np.isnan(missing).all(), "evaluate must give NaN for NaN"
    spread = values.std(axis=1)
    assert (spread > 0).all(), "a function is constant: it cannot explain anything"
    return values


def _check_bounds(basis: Basis, values: Any) -> None:
    bounds = list(basis.bounds())
    assert len(bounds) == basis.size, f"{len(bounds)} bounds for {basis.size} functions"
    for k, (low, high) in enumerate(bounds):
        finite = math.isfinite(low) and math.isfinite(high)
        assert finite, f"the bounds of function {k + 1} are not finite: {low}, {high}"
        assert low < high, f"the bounds of function {k + 1} do not ascend: {low}, {high}"
        room = 1e-9 * (high - low)
        within = values[k].min() >= low - room and values[k].max() <= high + room
        assert within, (
            f"function {k + 1} goes from {values[k].min():.6g} to {values[k].max():.6g}, outside "
            f"of its bounds {low:.6g} and {high:.6g}"
        )


def _check_written(basis: Basis) -> None:
    text = json.dumps(basis_to_dict(basis))
    try:
        again = basis_from_dict(json.loads(text))
    except IsthmusError as error:
        raise AssertionError(f"the basis cannot be read again: {error}") from error
    assert again == basis, f"written and read again, {basis!r} becomes {again!r}"


def _check_expressions(basis: Basis, z: Any, values: Any) -> None:
    import narwhals as nw

    for backend in ("polars", "pyarrow", "pandas"):
        try:
            frame = nw.from_dict({"z": z}, backend=backend)
        except (ImportError, ModuleNotFoundError):
            continue
        expressions = basis.expressions(nw.col("z"))
        number = len(expressions)
        assert number == basis.size, f"{number} expressions for {basis.size} functions"
        table = frame.select(*[e.alias(f"f{k}") for k, e in enumerate(expressions)])
        for k in range(basis.size):
            computed = np.asarray(table.get_column(f"f{k}").to_numpy())
            close = np.allclose(computed, values[k], rtol=1e-9, atol=1e-9)
            assert close, f"expression {k + 1} and evaluate differ in {backend}"
        return
