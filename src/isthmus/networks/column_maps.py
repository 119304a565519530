"""How the values of a table became what a network was learned from: scores, levels, or numbers."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats
from isthmus.errors import ArgumentError, FormatError, SchemaError, warn
from isthmus.networks.columns import finite, is_absent, number_column

SECONDS = {
    "seconds": 1.0,
    "minutes": 60.0,
    "hours": 3600.0,
    "days": 86_400.0,
    "weeks": 604_800.0,
    "years": 31_556_952.0,
}
"""Lengths of the units of time; a year has 365.2425 days."""

SINCE = " since 1970"
"""What follows the unit of dates, but not that of durations."""


@final
@dataclass(frozen=True)
class ColumnMap:
    """A function of the numbers of one column.

    Attributes
    ----------
    at
        Increasing values: knots of a curve, or cut points between levels. The level of a cut point
        is the lower one.
    scores
        Values of the curve at the knots; it is linear between them and constant outside. None if
        numbers become levels.
    """

    at: tuple[float, ...]
    scores: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        steps = np.diff(self.at)
        if not np.isfinite(self.at).all() or (steps <= 0).any():
            raise FormatError(f"The values of a column map must increase; {self.at!r} do not.")
        if self.scores is not None and len(self.scores) != len(self.at):
            raise FormatError("A column map needs one score for each of its values.")

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of the levels between cut points, which are in their order when sorted."""
        digits = len(str(len(self.at) + 1))
        ends = [f"{value:.6g}" for value in self.at]
        if not ends:
            return ("1: all",)
        inner = [f"{low} to {high}" for low, high in itertools.pairwise(ends)]
        texts = [f"up to {ends[0]}", *inner, f"above {ends[-1]}"]
        return tuple(f"{i:0{digits}d}: {text}" for i, text in enumerate(texts, start=1))

    @property
    def described(self) -> str:
        """What the map does, for the reading of a column."""
        if self.scores is not None:
            return "normal scores of numbers"
        return f"numbers, cut at {', '.join(f'{value:.6g}' for value in self.at)}"

    def apply(self, values: Floats) -> NDArray[Any]:
        """Return scores, or levels with None for missing values."""
        if self.scores is not None:
            scores: Floats = np.interp(values, self.at, self.scores)
            return np.where(np.isnan(values), np.nan, scores)
        names = np.array([*self.levels, None], dtype=object)
        codes = np.searchsorted(self.at, values, side="left")
        return names[np.where(np.isnan(values), len(names) - 1, codes)]

    def back(self, scores: Floats) -> Floats:
        """Return the values of a column that have these scores, at most those of the last knots."""
        assert self.scores is not None
        values: Floats = np.interp(scores, self.scores, self.at)
        return values

    def observed(self, name: str, value: Any) -> Any:
        """Return the score, or the level, of a value that is given as evidence."""
        if self.scores is None and isinstance(value, str | Mapping):
            return value
        if isinstance(value, tuple):
            raise ArgumentError(
                f"{name!r} was transformed before the graph was learned, so that the error of a "
                f"measured value is not known. Give the value alone; got {value!r}."
            )
        number = finite(value, f"The value of {name!r}")
        made = self.apply(np.array([number]))[0]
        if self.scores is None:
            return made
        if not self.at[0] <= number <= self.at[-1]:
            warn(
                f"{name} = {number:g} is beyond the values that the network was learned from, "
                f"which are between {self.at[0]:g} and {self.at[-1]:g}. The nearest of them is "
                "used, because the normal score of others is not known."
            )
        return float(made)

    def read(self, name: str, column: Any) -> Any:
        """Return scores or levels of a column of a table; levels stay what they are."""
        if self.scores is None:
            cells = np.asarray(column)
            if cells.dtype.kind in "USTb" or any(isinstance(c, str) for c in cells.tolist()):
                return column
        return self.apply(number_column(name, column))


@final
@dataclass(frozen=True)
class TimeMap:
    """Dates or durations that are numbers in a network.

    Attributes
    ----------
    unit
        What the numbers count: ``"days since 1970"`` for dates, ``"days"`` for durations.
    """

    unit: str

    def __post_init__(self) -> None:
        if self.unit.removesuffix(SINCE) not in SECONDS:
            raise FormatError(f"{self.unit!r} is not a unit of time.")

    @property
    def seconds(self) -> float:
        """Length of the unit."""
        return SECONDS[self.unit.removesuffix(SINCE)]

    def observed(self, name: str, value: Any) -> Any:
        """Return the number of a date or a duration that is given as evidence."""
        if isinstance(value, tuple):
            return tuple(self.observed(name, part) for part in value)
        if isinstance(value, date | timedelta | np.datetime64 | np.timedelta64 | str):
            return float(self.read(name, [value])[0])
        return value

    def read(self, name: str, column: Any) -> Any:
        """Return a column of dates or durations as numbers; numbers stay what they are."""
        values = np.asarray(column)
        if values.dtype.kind in "fiub":
            return values
        if values.dtype.kind not in "mM":
            cells = [_plain_time(name, cell) for cell in values.ravel().tolist()]
            times = [cell for cell in cells if isinstance(cell, np.datetime64 | np.timedelta64)]
            if not times:
                return values
            absent = times[0].dtype.type("NaT")
            values = np.array([absent if cell is None else cell for cell in cells])
        micro = values.astype(f"{values.dtype.kind}8[us]")
        numbers = micro.astype(np.int64) / 1e6 / self.seconds
        return np.where(np.isnat(micro), np.nan, numbers)

    def shown(self, number: float) -> str:
        """Return a number as the date that it stands for; a duration with its unit."""
        if not self.unit.endswith(SINCE) or not np.isfinite(number):
            return f"{number:.4g} {self.unit}"
        moment = np.datetime64(0, "s") + np.timedelta64(round(number * self.seconds), "s")
        return str(moment.astype("M8[D]" if self.seconds >= SECONDS["days"] else "M8[s]"))

    def spread(self, number: float) -> str:
        """Return a difference with its unit."""
        return f"{number:.4g} {self.unit.removesuffix(SINCE)}"


def _plain_time(name: str, cell: Any) -> Any:
    """Return an object of Python, or a text with an ISO date, as a time of NumPy."""
    if isinstance(cell, str):
        try:
            return np.datetime64(cell if "-" in cell else "?", "us")
        except ValueError:
            raise SchemaError(
                f"{cell!r} in {name!r} is not a date. Write 2024-05-31, or 2024-05-31T12:30."
            ) from None
    if is_absent(cell):
        return None
    if isinstance(cell, datetime) and cell.tzinfo is not None:
        cell = cell.astimezone(UTC).replace(tzinfo=None)
    if isinstance(cell, date):
        return np.datetime64(cell, "us")
    return np.timedelta64(cell, "us") if isinstance(cell, timedelta) else cell


NetworkMaps: TypeAlias = Mapping[str, ColumnMap | TimeMap]
"""How the values of some nodes of a network became scores, levels or numbers."""


def observed_values(maps: NetworkMaps, given: Any) -> Any:
    """Return evidence or interventions, with values of a table as the network has them."""
    if not maps or not isinstance(given, Mapping):
        return given
    return {v: _observed(maps[v], v, value) if v in maps else value for v, value in given.items()}


def _observed(own: ColumnMap | TimeMap, name: str, value: Any) -> Any:
    if not isinstance(value, slice):
        return own.observed(name, value)
    low, high = (e if e is None else own.observed(name, e) for e in (value.start, value.stop))
    return slice(low, high, value.step)


def read_column(maps: NetworkMaps, name: str, column: Any) -> Any:
    """Return a column of a table as the network has it."""
    return maps[name].read(name, column) if name in maps else column


def table_values(maps: NetworkMaps, name: str, numbers: Any) -> Any:
    """Return numbers of a network as values of a table; dates stay numbers."""
    own = maps.get(name)
    return own.back(numbers) if isinstance(own, ColumnMap) and own.scores else numbers


def check_maps(nodes: tuple[str, ...], maps: NetworkMaps) -> dict[str, ColumnMap | TimeMap]:
    """Return the maps of nodes; raise if there are others."""
    others = [name for name in maps if name not in nodes]
    if others:
        raise SchemaError(f"maps has entries for {others[:5]}, which the graph does not have.")
    return dict(maps)


def scored_nodes(maps: NetworkMaps) -> tuple[str, ...]:
    """Return the nodes that are normal scores."""
    return tuple(v for v, own in maps.items() if isinstance(own, ColumnMap) and own.scores)


def described_scores(maps: NetworkMaps) -> str:
    """Say which nodes are normal scores, for the text of a network."""
    names = scored_nodes(maps)
    shown = f"{', '.join(names[:3])}{' and others' if len(names) > 3 else ''}"
    return f", normal scores of {shown}" if names else ""


ColumnMaps = Mapping[str, ColumnMap]
"""The maps of some columns."""


def plain_maps(maps: NetworkMaps) -> dict[str, dict[str, Any]]:
    """Return maps as plain data for JSON."""
    return {name: asdict(own) for name, own in maps.items()}


def read_maps(content: Mapping[str, Mapping[str, Any]]) -> dict[str, ColumnMap]:
    """Return maps of transformed columns from plain data."""
    return {
        str(name): ColumnMap(
            tuple(float(x) for x in own["at"]),
            None if own["scores"] is None else tuple(float(x) for x in own["scores"]),
        )
        for name, own in content.items()
    }


def read_network_maps(content: Mapping[str, Mapping[str, Any]]) -> dict[str, ColumnMap | TimeMap]:
    """Return maps of the nodes of a network from plain data."""
    times = {str(name): TimeMap(str(own["unit"])) for name, own in content.items() if "unit" in own}
    return times | read_maps({name: own for name, own in content.items() if name not in times})
