"""The variables of a study: names, kinds, levels and bounds."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, final

from isthmus.errors import IsthmusError, StudyError
from isthmus.graphs.lags import Lag
from isthmus.joint.agreement.toml import Reader
from isthmus.statistics import Kind, Schema, Variable

Bounds = Mapping[str, tuple[float, float]]
"""Lowest and highest possible value of each continuous variable."""


@final
class Variables(NamedTuple):
    """The variables of a study with their definitions."""

    schema: Schema
    bounds: Bounds


def require_bounds(schema: Schema, bounds: Bounds) -> None:
    """Raise `StudyError` unless each continuous variable has finite, ascending bounds."""
    missing = [n for n in schema.of_kind(Kind.CONTINUOUS) if n not in bounds]
    if missing:
        raise StudyError(
            f"The continuous variables {missing[:10]} have no bounds. State the lowest and the "
            "highest value that can occur, from what the variable means and not from data."
        )
    invalid = [
        n
        for n, (low, high) in bounds.items()
        if not (math.isfinite(low) and math.isfinite(high) and low < high)
    ]
    if invalid:
        raise StudyError(
            f"The bounds of {invalid[:10]} must be two finite numbers in ascending order."
        )


def read_variables(path: str | os.PathLike[str]) -> Variables:
    """Read variables from a file that holds only the ``[[variables]]`` of a study."""
    top = Reader.parse(Path(path).read_bytes(), "file of variables")
    schema, bounds = take_variables(top)
    top.finish()
    assert schema is not None
    return Variables(schema, bounds)


def take_variables(top: Reader) -> tuple[Schema | None, dict[str, tuple[float, float]]]:
    """Take the ``[[variables]]`` of a document."""
    variables: list[Variable] = []
    bounds: dict[str, tuple[float, float]] = {}
    for entry in top.tables("variables"):
        name, kind = entry.take("name", str), entry.convert("kind", Kind)
        try:
            if kind is Kind.CONTINUOUS:
                bounds[name] = entry.take("low", float), entry.take("high", float)
                variables.append(Variable(name, kind, lag=_take_lag(entry)))
            elif kind is Kind.DISCRETE:
                variables.append(Variable(name, kind, tuple(entry.take("levels", list))))
        except IsthmusError as error:
            top.problems.append(str(error).rstrip("."))
        entry.reject_other_keys()
    try:
        schema = Schema(tuple(variables))
        require_bounds(schema, bounds)
    except IsthmusError as error:
        top.problems.append(str(error).rstrip("."))
        return None, bounds
    return schema, bounds


def _take_lag(entry: Reader) -> Lag | None:
    """Take which variable this is at an earlier time step, and how many steps earlier."""
    variable, steps = entry.take("lag_of", str, ""), entry.take("lag", int, 0)
    return Lag(variable, steps) if variable or steps else None


def variable_entries(schema: Schema, bounds: Bounds) -> list[dict[str, object]]:
    """Return the ``[[variables]]`` of a study file."""
    entries: list[dict[str, object]] = []
    for v in schema.variables:
        entry: dict[str, object] = {"name": v.name, "kind": v.kind.value}
        if v.kind is Kind.DISCRETE:
            entry["levels"] = list(v.levels)
        elif v.name in bounds:
            low, high = bounds[v.name]
            entry |= {"low": float(low), "high": float(high)}
        if v.lag is not None:
            entry |= {"lag_of": v.lag.variable, "lag": v.lag.steps}
        entries.append(entry)
    return entries
