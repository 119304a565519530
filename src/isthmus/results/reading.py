"""How each column of a table was read, and why."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, final

from isthmus.frames import table_of
from isthmus.models.column_maps import ColumnMap, TimeMap


class ReadAs(StrEnum):
    """How a column was read."""

    CONTINUOUS = "continuous"
    DISCRETE = "discrete"
    DATE = "date"
    CONSTANT = "constant"
    IDENTIFIER = "identifier"
    FREE_TEXT = "free text"
    LEFT_OUT = "left out"


LEFT_OUT = frozenset({ReadAs.IDENTIFIER, ReadAs.FREE_TEXT, ReadAs.LEFT_OUT})
"""Columns read like this are not part of the graph."""

NO_VALUES = "it has no values"
"""Why a column without values is left out; there is no way to keep it."""

FEW_VALUES = "whole numbers with 5 to 20 different values, such as counts or answers on a scale"
"""Why whole numbers that could also be codes are continuous."""

ORDERED = "ordered categories, as numbers by their position"
"""Why ordered categories are continuous."""

_NAMED = 5
"""Number of columns that a note names."""


@final
@dataclass(frozen=True)
class ColumnReading:
    """How one column was read.

    Attributes
    ----------
    name
        Name of the column.
    read_as
        How the column was read.
    reason
        Why it was read in this way.
    caution
        A sentence about something to check, or None.
    unit
        What the numbers of dates or durations count, such as ``"days since 1970"``; None for
        other columns.
    """

    name: str
    read_as: ReadAs
    reason: str
    caution: str | None = None
    unit: str | None = None

    @property
    def used(self) -> bool:
        """Whether the column is a variable of the graph."""
        return self.read_as not in LEFT_OUT

    def __str__(self) -> str:
        if self.read_as is ReadAs.LEFT_OUT:
            return f"{self.name} ({self.reason})"
        return f"{self.name}: {self.read_as} ({self.reason})"

    __repr__ = __str__


@final
@dataclass(frozen=True)
class Reading:
    """How the columns of a table were read, in their order.

    Attributes
    ----------
    columns
        One record per column.
    remarks
        Sentences about the table as a whole, such as how many rows were dropped.
    read_by
        The call that takes ``kinds``, if it is not the one that a note is about.
    maps
        What a transform did to the numbers of some columns before.
    """

    columns: tuple[ColumnReading, ...] = ()
    remarks: tuple[str, ...] = ()
    read_by: str = ""
    maps: Mapping[str, ColumnMap] = field(default_factory=dict)

    def __iter__(self) -> Iterator[ColumnReading]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __getitem__(self, name: str) -> ColumnReading:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Names of the columns that are not part of the graph."""
        return tuple(c.name for c in self.columns if not c.used)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the reading of columns: columns left out, and cautions."""
        out = [c for c in self.columns if not c.used]
        notes: list[str] = []
        if out:
            shown = "; ".join(str(c) for c in out[:10])
            more = f"; and {len(out) - 10} more" if len(out) > 10 else ""
            columns = "Column" if len(out) == 1 else "Columns"
            keepable = [c for c in out if c.reason != NO_VALUES and c.caution is None]
            advice = ""
            if keepable:
                example = keepable[0]
                continuous = " or 'continuous'" if "whole numbers" in example.reason else ""
                advice = (
                    " To keep a column, say how to read it: "
                    f"{self._kinds(example.name)}{continuous}."
                )
            notes.append(f"{columns} left out: {shown}{more}.{advice}")
        few = [c.name for c in self.columns if c.reason in (FEW_VALUES, ORDERED)]
        notes += _few_values(few, self._kinds(few[0])) if few else []
        cautions = (c.caution for c in self.columns if c.caution is not None)
        return (*notes, *cautions, *self.remarks)

    @property
    def cautions(self) -> tuple[str, ...]:
        """The notes that nobody asked for, as a strategy for missing values asks for remarks."""
        return tuple(note for note in self.notes if note not in self.remarks)

    def _kinds(self, name: str) -> str:
        """How to say that a column is discrete."""
        kinds = f"kinds={{{name!r}: 'discrete'}}"
        return f"{self.read_by}(..., {kinds})" if self.read_by else kinds

    def network_maps(self, nodes: Collection[str]) -> dict[str, ColumnMap | TimeMap]:
        """Return what a network of these nodes needs to know about their columns."""
        own: dict[str, ColumnMap | TimeMap] = {
            c.name: TimeMap(c.unit) for c in self.columns if c.unit is not None
        }
        own |= self.maps
        return {v: own[v] for v in own if v in nodes}

    def with_maps(self, maps: Mapping[str, ColumnMap]) -> Reading:
        """The same reading of a table whose numbers were transformed before."""
        columns = tuple(
            replace(c, reason=maps[c.name].described) if c.name in maps and c.used else c
            for c in self.columns
        )
        return replace(self, columns=columns, maps=maps)

    def with_constants(
        self, names: Collection[str], reason: str = "all rows have the same value"
    ) -> Reading:
        """The same reading, with these columns named as constant."""
        return replace(
            self,
            columns=tuple(
                replace(c, read_as=ReadAs.CONSTANT, reason=reason)
                if c.name in names and c.used
                else c
                for c in self.columns
            ),
        )

    def to_frame(self, like: object = None) -> Any:
        """Return one row per column: how it was read, and why; see :func:`isthmus.to_frame`."""
        columns = {
            "column": [column.name for column in self.columns],
            "read_as": [str(column.read_as) for column in self.columns],
            "reason": [column.reason for column in self.columns],
        }
        return table_of(columns, like)

    def __str__(self) -> str:
        wide = max((len(c.name) for c in self.columns), default=0)
        return "\n".join(f"{c.name:<{wide}}  {c.read_as:<10}  {c.reason}" for c in self.columns)

    __repr__ = __str__


def _few_values(names: list[str], kinds: str) -> list[str]:
    """Say which whole numbers and ordered categories became numbers, and how to change that."""
    shown = ", ".join(repr(name) for name in names[:_NAMED])
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    columns, have, were = "Columns", "have", "were"
    if len(names) == 1:
        columns, have, were = "Column", "has", "was"
    note = (
        f"{columns} {shown}{more} {have} whole numbers with 5 to 20 different values, or ordered "
        f"categories, and {were} read as numbers. To read codes as categories, say so: "
        f"{kinds}."
    )
    return [note]
