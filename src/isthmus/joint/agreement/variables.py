"""The variables of a study: names, kinds, levels, bounds and resolutions."""

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

Resolutions = Mapping[str, float]
"""Width of the interval within which each continuous variable is blurred, a power of two."""

INTERVALS = 1024
"""A drafted resolution is the range of a variable divided by this number: the blur then adds less
than 0.1 % to the variance of a variable whose standard deviation is 2 % of its range."""

FINEST = 2.0**-20
"""Smallest resolution, as a share of the range."""

DIGITS = 2.0**-36
"""Smallest resolution, as a share of the largest absolute value. With the 16 binary digits of the
blur, frozen values are then floating-point numbers without rounding errors."""


@final
class Variables(NamedTuple):
    """The variables of a study with their definitions."""

    schema: Schema
    bounds: Bounds
    resolutions: Resolutions


def resolution_of(low: float, high: float, stated: float = 0.0) -> float:
    """Return a resolution that can be used: the stated one or the default, as a power of two."""
    span = high - low
    wanted = stated or span / INTERVALS
    least = max(abs(low), abs(high)) * DIGITS
    return _power_of_two(max(wanted, span * FINEST, min(least, span / 8)))


def _power_of_two(number: float) -> float:
    """Return the smallest power of two that is not smaller."""
    mantissa, exponent = math.frexp(number)
    return math.ldexp(1.0, exponent - 1 if mantissa == 0.5 else exponent)


def resolutions_of(bounds: Bounds, stated: Resolutions | None = None) -> dict[str, float]:
    """Return the resolution of each continuous variable."""
    given = stated or {}
    return {n: resolution_of(low, high, given.get(n, 0.0)) for n, (low, high) in bounds.items()}


def resolution_problems(bounds: Bounds, resolutions: Resolutions) -> list[str]:
    """Return a phrase for each resolution that cannot be used."""
    problems = []
    for name, own in resolutions.items():
        if name not in bounds:
            problems.append(f"{name!r} has a resolution and is not continuous")
            continue
        low, high = bounds[name]
        span = high - low
        if not (span * FINEST <= own <= span / 4 and own == _power_of_two(own)):
            problems.append(
                f"the resolution of {name!r} is {own}; it must be a power of two, at most a "
                f"quarter of the range, for instance {resolution_of(low, high)}"
            )
    return problems


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
    """Read variables from a file that holds only the ``[[variables]]`` of a study.

    Resolutions are rounded up to a power of two.
    """
    top = Reader.parse(Path(path).read_bytes(), "file of variables")
    schema, bounds, stated = take_variables(top)
    top.finish()
    assert schema is not None
    return Variables(schema, bounds, resolutions_of(bounds, stated))


def take_variables(
    top: Reader,
) -> tuple[Schema | None, dict[str, tuple[float, float]], dict[str, float]]:
    """Take the ``[[variables]]`` of a document, with the resolutions that it states."""
    variables: list[Variable] = []
    bounds: dict[str, tuple[float, float]] = {}
    stated: dict[str, float] = {}
    for entry in top.tables("variables"):
        name, kind = entry.take("name", str), entry.convert("kind", Kind)
        try:
            if kind is Kind.CONTINUOUS:
                bounds[name] = entry.take("low", float), entry.take("high", float)
                resolution = entry.take("resolution", float, 0.0)
                if resolution:
                    stated[name] = resolution
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
        return None, bounds, stated
    if any(not (math.isfinite(r) and r > 0) for r in stated.values()):
        top.problems.append("a resolution must be a positive number")
    return schema, bounds, stated


def _take_lag(entry: Reader) -> Lag | None:
    """Take which variable this is at an earlier time step, and how many steps earlier."""
    variable, steps = entry.take("lag_of", str, ""), entry.take("lag", int, 0)
    return Lag(variable, steps) if variable or steps else None


def variable_entries(
    schema: Schema, bounds: Bounds, resolutions: Resolutions | None = None
) -> list[dict[str, object]]:
    """Return the ``[[variables]]`` of a study file."""
    entries: list[dict[str, object]] = []
    for v in schema.variables:
        entry: dict[str, object] = {"name": v.name, "kind": v.kind.value}
        if v.kind is Kind.DISCRETE:
            entry["levels"] = list(v.levels)
        elif v.name in bounds:
            low, high = bounds[v.name]
            entry |= {"low": float(low), "high": float(high)}
            if resolutions and v.name in resolutions:
                entry["resolution"] = float(resolutions[v.name])
        if v.lag is not None:
            entry |= {"lag_of": v.lag.variable, "lag": v.lag.steps}
        entries.append(entry)
    return entries
