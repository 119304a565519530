"""The variables of a table, and the columns that belong to each of them.

A variable is what becomes a node of a graph. It has one or more columns of numbers, its block: the
value itself, one indicator per level of a category, basis functions of the value. A variable may be
another one at an earlier time step. All of this is stated here; nothing is read from the spelling
of a name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import FormatError, SchemaError
from isthmus.graphs.knowledge import Lag, lagged_names
from isthmus.options import require_choice
from isthmus.statistics.features import Features

Level: TypeAlias = str | int | float | bool
"""A value of a discrete variable."""

MAX_LEVELS = 2**16
"""Codes are stored in at most 16 bits: a column with more levels is an identifier."""


class Kind(StrEnum):
    """How a variable is read.

    Examples
    --------
    >>> import isthmus as ist
    >>> table = {"ward": [1, 2, 3, 1] * 50, "dose": [0.5, 1.5, 2.5, 3.5, 4.5] * 40}
    >>> print(ist.learn(table, kinds={"ward": ist.Kind.DISCRETE}).reading)
    ward  discrete    as requested
    dose  continuous  floating-point numbers
    """

    CONTINUOUS = "continuous"
    DISCRETE = "discrete"


class Role(StrEnum):
    """The role of a column of numbers."""

    VALUE = "value"
    LAG = "lag"
    LEVEL = "level"
    FEATURE = "basis function"


class Column(NamedTuple):
    """One column of numbers.

    Attributes
    ----------
    owner
        Name of the variable that the column belongs to.
    role
        The value of the variable (now, or at an earlier time step), the indicator of a level, or a
        basis function.
    number
        Number of the level or of the basis function, counted from 1; number of time steps for a
        lag; 0 for a value.
    name
        How the column is printed: ``x``, ``x=level``, ``x~1``, ``x@1``. Nothing is read from it,
        and a variable may have the same name.
    """

    owner: str
    role: Role
    number: int
    name: str


def plain_level(value: object, name: str) -> Level:
    """Convert a value of any engine to a plain Python level."""
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
    """Sort levels; levels of mixed types are sorted by the name of their type first."""
    levels = list(values)
    try:
        return tuple(sorted(levels))
    except TypeError:
        return tuple(sorted(levels, key=lambda v: (type(v).__name__, v)))


@final
@dataclass(frozen=True)
class Variable:
    """One variable.

    Parameters
    ----------
    name
        Its name, and that of its column in a table.
    kind
        Continuous or discrete.
    levels
        The values of a discrete variable, in the order of their codes; empty for a continuous one.
    time_unit
        Unit of time where the variable is one (``"day"``), otherwise ``None``.
    lag
        The variable of which this is an earlier time step, and how many steps; ``None`` for a
        variable of the present.
    features
        Basis functions of a continuous variable, which are further columns; ``None`` for none.
    """

    name: str
    kind: Kind
    levels: tuple[Level, ...] = ()
    time_unit: str | None = None
    lag: Lag | None = None
    features: Features | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise SchemaError(
                f"A variable was named {self.name!r}. "
                "Names are non-empty strings: rename the column."
            )
        require_choice(self, "kind", Kind)
        levels = tuple(plain_level(v, self.name) for v in self.levels)
        object.__setattr__(self, "levels", levels)
        if self.kind is Kind.CONTINUOUS and levels:
            raise SchemaError(
                f"Variable {self.name!r} is continuous but was given {len(levels)} levels. "
                "Leave the levels out, or make it discrete."
            )
        if self.kind is Kind.DISCRETE:
            self._check_levels()
        if self.kind is Kind.DISCRETE and self.features is not None:
            raise SchemaError(
                f"Variable {self.name!r} is discrete and cannot have basis functions. "
                "Read it as continuous, or leave them out."
            )
        if self.lag is not None:
            lag = Lag(*self.lag)
            if not isinstance(lag.steps, int) or lag.steps < 1 or lag.variable == self.name:
                raise SchemaError(
                    f"Variable {self.name!r} is said to be {lag.variable!r} {lag.steps} time steps "
                    "earlier. The number of steps must be 1 or more, of another variable."
                )
            object.__setattr__(self, "lag", lag)

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
        """Number of columns: one and the basis functions, or one per level but the first."""
        if self.kind is Kind.DISCRETE:
            return len(self.levels) - 1
        return 1 if self.features is None else 1 + self.features.size

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that belong to the variable, in order."""
        if self.kind is Kind.DISCRETE:
            return tuple(
                Column(self.name, Role.LEVEL, i, f"{self.name}={level}")
                for i, level in enumerate(self.levels[1:], start=1)
            )
        if self.lag is None:
            value = Column(self.name, Role.VALUE, 0, self.name)
        else:
            value = Column(self.name, Role.LAG, self.lag.steps, self.name)
        functions = range(1, self.width)
        return value, *(Column(self.name, Role.FEATURE, k, f"{self.name}~{k}") for k in functions)


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
        """Create a schema of continuous variables."""
        return cls(tuple(Variable(n, Kind.CONTINUOUS) for n in names))

    @classmethod
    def discrete(cls, levels: Mapping[str, Sequence[Level]]) -> Schema:
        """Create a schema of discrete variables with these levels."""
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
        """Return the position of a variable."""
        try:
            return self._positions[name]
        except KeyError:
            shown = ", ".join(map(repr, self.names[:20])) + (" …" if len(self) > 20 else "")
            raise SchemaError(f"There is no variable {name!r}. There are: {shown}.") from None

    def indices(self, names: Iterable[str]) -> tuple[int, ...]:
        """Return the positions of several distinct variables."""
        places = tuple(self.index(n) for n in names)
        if len(set(places)) != len(places):
            raise SchemaError(f"A variable was requested twice: {[self.names[i] for i in places]}.")
        return places

    def of_kind(self, kind: Kind) -> tuple[str, ...]:
        """Return the names of the variables of one kind."""
        return tuple(v.name for v in self.variables if v.kind is kind)

    @cached_property
    def cardinalities(self) -> NDArray[np.int64]:
        """Number of levels of each variable; all must be discrete."""
        self.require(Kind.DISCRETE, "Numbers of levels need")
        counts = np.array([len(v.levels) for v in self.variables], dtype=np.int64)
        counts.flags.writeable = False
        return counts

    @cached_property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        """Start and stop of the columns of each variable."""
        stops = np.cumsum([v.width for v in self.variables]).tolist()
        return tuple(zip([0, *stops[:-1]], stops, strict=True))

    @property
    def width(self) -> int:
        """Number of columns of all variables."""
        return self.blocks[-1][1]

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns of all variables, block by block."""
        return tuple(column for v in self.variables for column in v.columns)

    @property
    def column_names(self) -> tuple[str, ...]:
        """How the columns are printed."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def lag_of(self) -> Mapping[str, Lag]:
        """For each variable, which one it is and how many time steps earlier; 0 is the present."""
        return {v.name: Lag(v.name, 0) if v.lag is None else v.lag for v in self.variables}

    @property
    def lags(self) -> int:
        """Number of earlier time steps; 0 where all variables are of the present."""
        return max(lag.steps for lag in self.lag_of.values())

    @property
    def has_features(self) -> bool:
        """Whether any variable has basis functions."""
        return any(v.features is not None for v in self.variables)

    def require(self, kind: Kind, needs: str) -> None:
        """Raise `SchemaError` unless all variables are of this kind.

        Parameters
        ----------
        kind
            The kind.
        needs
            What needs them, with its verb, such as ``"Counts need"``.
        """
        wrong = [v.name for v in self.variables if v.kind is not kind]
        if wrong:
            shown = ", ".join(map(repr, wrong[:10])) + (" …" if len(wrong) > 10 else "")
            raise SchemaError(
                f"{needs} {kind} variables, but {len(wrong)} of {len(self)} are not: {shown}. "
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

    def with_lags(self, lags: int) -> Schema:
        """The variables now, then all of them one time step earlier, and so on.

        Parameters
        ----------
        lags
            Number of earlier time steps.
        """
        if self.lags:
            raise SchemaError("The schema has earlier time steps already.")
        return Schema(
            tuple(
                replace(self[lag.variable], name=name, lag=lag if lag.steps else None)
                for name, lag in lagged_names(self.names, lags).items()
            )
        )

    def with_features(self, features: Mapping[str, Features]) -> Schema:
        """Add basis functions to some variables, which must not have any."""
        taken = [n for n in features if self[n].features is not None]
        if taken:
            raise SchemaError(
                f"The variables {taken[:5]} have basis functions already. "
                "Give the table without them."
            )
        return Schema(
            tuple(
                replace(v, features=features[v.name]) if v.name in features else v
                for v in self.variables
            )
        )

    def without_features(self) -> Schema:
        """The same variables without their basis functions."""
        if not self.has_features:
            return self
        return Schema(tuple(replace(v, features=None) for v in self.variables))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        entries: list[dict[str, Any]] = []
        for v in self.variables:
            entry: dict[str, Any] = {"name": v.name, "kind": v.kind.value}
            if v.levels:
                entry["levels"] = list(v.levels)
            if v.time_unit is not None:
                entry["time_unit"] = v.time_unit
            if v.lag is not None:
                entry["lag"] = list(v.lag)
            if v.features is not None:
                entry["features"] = v.features.to_dict()
            entries.append(entry)
        return {"variables": entries}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Schema:
        """Read what `to_dict` wrote."""
        try:
            return cls(tuple(_variable(entry) for entry in data["variables"]))
        except FormatError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FormatError(f"This is not a schema: {error}.") from error


def _variable(entry: Mapping[str, Any]) -> Variable:
    features = entry.get("features")
    return Variable(
        entry["name"],
        Kind(entry["kind"]),
        tuple(entry.get("levels", ())),
        entry.get("time_unit"),
        None if entry.get("lag") is None else Lag(*entry["lag"]),
        None if features is None else Features.from_dict(features),
    )


def union_levels(first: Schema, second: Schema) -> Schema:
    """The schema of `first` with the levels that either has, sorted where they differ."""
    pairs = list(zip(first.variables, second.variables, strict=False))
    if first.names != second.names or any(
        (a.kind, a.lag, a.features) != (b.kind, b.lag, b.features) for a, b in pairs
    ):
        raise SchemaError(
            "Levels can only be aligned between tables of the same names and kinds "
            "in the same order; "
            f"got {list(first.names)} and {list(second.names)}."
        )
    differing = [(a, b) for a, b in pairs if a.levels != b.levels]
    for a, b in differing:
        _refuse_text_twins(a, b)
    return first.with_levels({a.name: sort_levels({*a.levels, *b.levels}) for a, b in differing})


def _refuse_text_twins(a: Variable, b: Variable) -> None:
    """Refuse 0 in one table and "0" in the other: nothing tells whether they mean the same."""
    for one, other in ((a, b), (b, a)):
        texts = {level for level in one.levels if isinstance(level, str)}
        twin = next(
            (v for v in other.levels if not isinstance(v, str) and str(v) in texts),
            None,
        )
        if twin is not None:
            raise SchemaError(
                f"Variable {a.name!r} has the level {twin!r} in one table and the text "
                f"{str(twin)!r} in the other. Convert one of the tables, so that both have text or "
                "both have numbers."
            )
