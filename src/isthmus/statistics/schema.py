"""What the columns are: names, kinds, levels, units of time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import FormatError, SchemaError

Level: TypeAlias = str | int | float | bool
"""A value of a discrete variable."""

MAX_LEVELS = 2**16
"""Codes are stored in at most 16 bits: a column with more levels is an identifier."""


class Kind(StrEnum):
    """How a variable is read."""

    CONTINUOUS = "continuous"
    DISCRETE = "discrete"


def plain_level(value: object, name: str) -> Level:
    """Give `value` as a plain Python level, whatever engine it came from."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise SchemaError(
        f"Variable {name!r} has the level {value!r} of type {type(value).__name__}. "
        "Levels are strings, booleans, integers or finite floats: convert the column first."
    )


def sort_levels(values: Iterable[Level]) -> tuple[Level, ...]:
    """Sort levels; those of mixed types go by the name of their type first."""
    found = list(values)
    try:
        return tuple(sorted(found))
    except TypeError:
        return tuple(sorted(found, key=lambda v: (type(v).__name__, v)))


@final
@dataclass(frozen=True)
class Variable:
    """One variable.

    Parameters
    ----------
    name
        Name of the column.
    kind
        Continuous or discrete.
    levels
        The values of a discrete variable, in the order of their codes; empty for a continuous one.
    time_unit
        Unit of time where the variable is one (``"day"``), otherwise ``None``.
    """

    name: str
    kind: Kind
    levels: tuple[Level, ...] = ()
    time_unit: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise SchemaError(
                f"A variable was named {self.name!r}. "
                "Names are non-empty strings: rename the column."
            )
        object.__setattr__(self, "kind", Kind(self.kind))
        levels = tuple(plain_level(v, self.name) for v in self.levels)
        object.__setattr__(self, "levels", levels)
        if self.kind is Kind.CONTINUOUS and levels:
            raise SchemaError(
                f"Variable {self.name!r} is continuous but was given {len(levels)} levels. "
                "Leave the levels out, or make it discrete."
            )
        if self.kind is Kind.DISCRETE:
            self._check_levels()

    def _check_levels(self) -> None:
        count = len(self.levels)
        if count == 0:
            raise SchemaError(
                f"Variable {self.name!r} is discrete but has no levels. "
                "Give the values it may take."
            )
        if len(set(self.levels)) != count:
            raise SchemaError(f"Variable {self.name!r} has repeated levels: {self.levels!r}.")
        if count > MAX_LEVELS:
            raise SchemaError(
                f"Variable {self.name!r} has {count:,} levels; at most {MAX_LEVELS:,} are allowed. "
                "It looks like an identifier: leave it out, group its values, "
                "or read it as continuous."
            )

    @property
    def width(self) -> int:
        """Number of feature columns: one, or a one-hot column for each level but the first."""
        return 1 if self.kind is Kind.CONTINUOUS else len(self.levels) - 1


@final
@dataclass(frozen=True)
class Schema:
    """The variables of a table, in order."""

    variables: tuple[Variable, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", tuple(self.variables))
        if not self.variables:
            raise SchemaError("A schema needs at least one variable; none was given.")
        names = [v.name for v in self.variables]
        if len(set(names)) != len(names):
            repeated = sorted({n for n in names if names.count(n) > 1})
            raise SchemaError(f"Names must be unique; repeated: {repeated}. Rename the columns.")

    @classmethod
    def continuous(cls, names: Iterable[str]) -> Schema:
        """All variables continuous."""
        return cls(tuple(Variable(n, Kind.CONTINUOUS) for n in names))

    @classmethod
    def discrete(cls, levels: Mapping[str, Sequence[Level]]) -> Schema:
        """All variables discrete, with these levels."""
        return cls(tuple(Variable(n, Kind.DISCRETE, tuple(ls)) for n, ls in levels.items()))

    def __len__(self) -> int:
        return len(self.variables)

    def __getitem__(self, name: str) -> Variable:
        return self.variables[self.index(name)]

    def __contains__(self, name: object) -> bool:
        return name in self._positions

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names in order."""
        return tuple(v.name for v in self.variables)

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    def index(self, name: str) -> int:
        """Position of a variable."""
        try:
            return self._positions[name]
        except KeyError:
            shown = ", ".join(map(repr, self.names[:20])) + (" …" if len(self) > 20 else "")
            raise SchemaError(f"There is no variable {name!r}. There are: {shown}.") from None

    def indices(self, names: Iterable[str]) -> tuple[int, ...]:
        """Positions of several different variables."""
        found = tuple(self.index(n) for n in names)
        if len(set(found)) != len(found):
            raise SchemaError(f"A variable was asked for twice: {[self.names[i] for i in found]}.")
        return found

    def of_kind(self, kind: Kind) -> tuple[str, ...]:
        """Names of the variables of one kind."""
        return tuple(v.name for v in self.variables if v.kind is kind)

    @cached_property
    def cardinalities(self) -> NDArray[np.int64]:
        """Number of levels of each variable; all must be discrete."""
        self.require(Kind.DISCRETE, "Numbers of levels")
        counts = np.array([len(v.levels) for v in self.variables], dtype=np.int64)
        counts.flags.writeable = False
        return counts

    @cached_property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        """Start and stop of the feature columns of each variable."""
        stops = np.cumsum([v.width for v in self.variables]).tolist()
        return tuple(zip([0, *stops[:-1]], stops, strict=True))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the feature columns: ``name``, or ``name=level`` for levels but the first."""
        found: list[str] = []
        for v in self.variables:
            found += (
                [v.name] if v.kind is Kind.CONTINUOUS else [f"{v.name}={x}" for x in v.levels[1:]]
            )
        return tuple(found)

    def require(self, kind: Kind, what: str) -> None:
        """Raise `SchemaError` unless all variables are of this kind."""
        wrong = [v.name for v in self.variables if v.kind is not kind]
        if wrong:
            shown = ", ".join(map(repr, wrong[:10])) + (" …" if len(wrong) > 10 else "")
            raise SchemaError(
                f"{what} need {kind} variables, but {len(wrong)} of {len(self)} are not: {shown}. "
                f"Leave them out, or say kinds={{name: Kind.{kind.name}}} to the source"
                + (" after cutting them into levels." if kind is Kind.DISCRETE else ".")
            )

    def subset(self, names: Iterable[str]) -> Schema:
        """Some of the variables, in the order asked."""
        return Schema(tuple(self.variables[i] for i in self.indices(names)))

    def with_levels(self, levels: Mapping[str, Sequence[Level]]) -> Schema:
        """Replace the levels of some discrete variables."""
        for name in levels:
            self.index(name)
        return Schema(
            tuple(
                replace(v, levels=tuple(levels[v.name])) if v.name in levels else v
                for v in self.variables
            )
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        found: list[dict[str, Any]] = []
        for v in self.variables:
            entry: dict[str, Any] = {"name": v.name, "kind": v.kind.value}
            if v.levels:
                entry["levels"] = list(v.levels)
            if v.time_unit is not None:
                entry["time_unit"] = v.time_unit
            found.append(entry)
        return {"variables": found}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Schema:
        """Read what `to_dict` wrote."""
        try:
            return cls(
                tuple(
                    Variable(
                        e["name"], Kind(e["kind"]), tuple(e.get("levels", ())), e.get("time_unit")
                    )
                    for e in data["variables"]
                )
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FormatError(f"This is not a schema: {error}.") from error


def union_levels(first: Schema, second: Schema) -> Schema:
    """The schema of `first` with the levels that either has, sorted where they differ."""
    if first.names != second.names or any(
        a.kind is not b.kind for a, b in zip(first.variables, second.variables, strict=True)
    ):
        raise SchemaError(
            "Levels can only be aligned between tables of the same names and kinds "
            "in the same order; "
            f"got {list(first.names)} and {list(second.names)}."
        )
    joined = {
        a.name: sort_levels(set(a.levels) | set(b.levels))
        for a, b in zip(first.variables, second.variables, strict=True)
        if a.levels != b.levels
    }
    return first.with_levels(joined)
