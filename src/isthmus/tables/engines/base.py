"""The interface of an engine: what narwhals cannot do, above all moments in one pass."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Integers, Work
from isthmus.errors import SchemaError
from isthmus.statistics import Kind, Level, Moments, Schema
from isthmus.statistics.base import Positions, methods_for, tally
from isthmus.statistics.tally import PatternRows
from isthmus.tables.columns import column_of_series
from isthmus.tables.grouping import group, pack
from isthmus.tables.infer_kinds import Profile
from isthmus.tables.kinds import CellType

PROFILED = 200
"""Number of columns per query of profiles: PostgreSQL returns at most 1,664 columns."""


@final
@dataclass(frozen=True)
class Computed:
    """Moments, and what the engine sent to compute them."""

    moments: Moments
    what: str
    size: int

    @classmethod
    def there(cls, moments: Moments) -> Computed:
        """Computed by the engine, or next to it in this process: it sent the moments only."""
        p = moments.schema.width
        what = f"n, sums and products of {p} columns of {len(moments.schema)} variables"
        return cls(moments, what, 1 + p + p * (p + 1) // 2)


@final
@dataclass(frozen=True)
class SummedPatterns:
    """Rows with missing values summed up by pattern, and what the engine sent for them."""

    patterns: PatternRows
    what: str
    size: int

    @classmethod
    def there(cls, patterns: PatternRows) -> SummedPatterns:
        """Summed up by the engine, or next to it in this process."""
        number = len(patterns.observed)
        what = f"n, sums and products of {number} patterns of missing values"
        return cls(patterns, what, number + patterns.rows.size)

    @classmethod
    def streamed(cls, patterns: PatternRows) -> SummedPatterns:
        """Summed up in this process from rows that came over a network and were not kept."""
        rows, variables = patterns.n, len(patterns.schema)
        return cls(patterns, rows_streamed(rows, variables), rows * variables)


@final
@dataclass(frozen=True, eq=False)
class CountedTables:
    """Tables of counts, and how many numbers the engine sent for them.

    Attributes
    ----------
    tables
        One array per set, with one axis per variable, in the order of the set.
    size
        How many numbers left the engine: the cells, if it counted them itself or next to it in
        this process.
    """

    tables: Sequence[Integers]
    size: int

    @classmethod
    def there(cls, tables: Sequence[Integers]) -> CountedTables:
        """Counted by the engine, or next to it in this process: it sent the cells only."""
        return cls(tables, sum(table.size for table in tables))


def rows_streamed(rows: int, variables: int) -> str:
    """Describe rows that are streamed, for the disclosure."""
    return f"{rows} rows of {variables} variables, streamed and not kept"


class Engine(ABC):
    """The adapter of one engine.

    The columns of its table are named c0, c1 and so on. Engines quote, fold and expand names
    differently (``*``, ``a.b``, ``A`` and ``a``), so the user's names never reach a query.

    Attributes
    ----------
    table
        The table with plain column names.
    streams
        Whether moments are added up in this process, batch by batch. Basis functions are then
        computed here, too, which is faster than sending them as further columns.
    durations
        Whether `with_times` also takes durations.
    """

    table: Any
    streams: ClassVar[bool] = False
    durations: ClassVar[bool] = False

    @property
    @abstractmethod
    def site(self) -> str:
        """Name of the engine, for the disclosure."""

    @classmethod
    @abstractmethod
    def renamed(cls, table: Any, names: Sequence[str]) -> Engine:
        """Make the adapter of a native table, with its columns renamed to c0, c1 and so on.

        Parameters
        ----------
        names
            Names of its columns, in order.
        """

    def profile(
        self, columns: Mapping[str, CellType], counted: Collection[str], rows: int | None
    ) -> dict[str, Profile]:
        """Return the properties of columns that determine how they are read, by narwhals.

        Parameters
        ----------
        columns
            The columns, and what their cells are.
        counted
            Columns of which distinct values are counted.
        rows
            Number of rows at the top of the table to look at; None for all.
        """
        return _profile_by_narwhals(self.table, columns, counted, rows)

    @abstractmethod
    def of_table(self, table: Any) -> Engine:
        """The adapter of another table of the same engine and with the same columns."""

    @abstractmethod
    def with_times(self, scales: Mapping[str, float]) -> Engine:
        """The same table with dates, times and durations as numbers.

        Parameters
        ----------
        scales
            For each column the number of seconds that make one unit; dates count from 1970.
        """

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """Tables in memory with these columns, of about this many rows each, by one query.

        This default fetches all rows at once.
        """
        import narwhals as nw

        table: Any = nw.from_native(self.table).lazy().select(*columns).collect()
        for start in range(0, len(table), rows):
            yield table[start : start + rows].to_native()

    def sample(self, columns: Sequence[str], rows: int, total: int) -> Any:
        """A table in memory with about so many rows, drawn at random.

        No result depends on which rows these are: they tell which tables a search will probably
        need, and tables are counted over all rows. This default takes the first rows.

        Parameters
        ----------
        rows
            How many rows to draw; a few more or less do not matter.
        total
            How many rows the table has.
        """
        import narwhals as nw

        del total
        frame: Any = nw.from_native(self.table).lazy()
        return frame.select(*columns).head(rows).collect().to_native()

    def count_tables(
        self, schema: Schema, columns: Sequence[str], sets: Sequence[Positions]
    ) -> Work[CountedTables]:
        """Count the tables of sets of discrete variables, for a whole batch of sets at a time.

        The work yields after every query, or batch of rows, so that the caller can look at the
        clock. An engine that reads its rows in this process streams them once through the compiled
        core, which keeps the tables only; others group on their side. This default runs one query
        for sets whose common table is small, written by narwhals.

        Missing cells and values that are not levels of the schema raise errors.

        Parameters
        ----------
        schema
            The variables, all discrete.
        sets
            Positions of variables in the schema, ascending within a set.
        """
        import narwhals as nw

        frame: Any = nw.from_native(self.table).lazy()
        sizes = schema.cardinalities
        tables: dict[Positions, Integers] = {}
        size = 0
        for members, wanted in pack(sets, sizes):
            names = [schema.names[i] for i in members]
            grouped = group(
                frame,
                {n: columns[i] for n, i in zip(names, members, strict=True)},
                levels={n: schema[n].levels for n in names},
            )
            assert grouped is not None  # it has no limit but that of `pack`
            size += grouped.size
            for positions in wanted:
                within = tuple(members.index(i) for i in positions)
                tables[positions] = tally(grouped.rows, sizes[list(members)], within)
            yield
        return CountedTables([tables[s] for s in sets], size)

    @abstractmethod
    def moments(self, schema: Schema, columns: Sequence[str]) -> Computed:
        """Moments of the variables of `schema`, refusing missing and infinite cells."""

    @abstractmethod
    def patterns(self, schema: Schema, columns: Sequence[str]) -> SummedPatterns:
        """Sum up rows of continuous variables by which of their values are missing, in one pass.

        Parameters
        ----------
        schema, columns
            As for `moments`.
        """


def usable_methods(schema: Schema) -> str:
    """Name the methods for missing values that a table of an engine allows."""
    return methods_for(
        continuous=bool(schema.of_kind(Kind.CONTINUOUS)),
        level=False,
    )


def plain_names(names: Sequence[str]) -> list[str]:
    """The plain column names that stand for these names."""
    return [f"c{i}" for i in range(len(names))]


def profiles_from(
    columns: Mapping[str, CellType],
    counted: Collection[str],
    ask: Callable[[Mapping[str, CellType]], Mapping[str, Any]],
    at_once: int = PROFILED,
) -> dict[str, Profile]:
    """Profiles from answers named ``rows``, ``c0_values``, ``c0_distinct`` and so on.

    `ask` gets so many of the columns at a time: databases limit the width of an answer.
    """
    found = {}
    names = list(columns)
    for start in range(0, len(names), at_once):
        part = {c: columns[c] for c in names[start : start + at_once]}
        told = {key: value or 0 for key, value in ask(part).items()}
        rows = int(told["rows"])
        for c, cells in part.items():
            values = int(told[f"{c}_values"])
            distinct = int(told[f"{c}_distinct"]) if c in counted else 0
            numbers = (float(told.get(f"{c}_{end}", 0)) for end in ("low", "high"))
            low, high = (x if math.isfinite(x) else None for x in numbers)
            is_number = cells in (CellType.INTEGER, CellType.FLOAT)
            whole = is_number and not told.get(f"{c}_fractions") and None not in (low, high)
            words = float(told.get(f"{c}_spaces", 0)) / max(values, 1)
            bounds = (int(low or 0), int(high or 0)) if whole else (0, 0)
            found[c] = Profile(
                cells, cells.value, rows, values, distinct, whole, *bounds, words=words
            )
    return found


def _profile_by_narwhals(
    table: Any, columns: Mapping[str, CellType], counted: Collection[str], rows: int | None
) -> dict[str, Profile]:
    """Profiles by queries that narwhals writes."""
    import narwhals as nw

    frame = nw.from_native(table)
    frame = frame if rows is None else frame.head(rows)

    def ask(part: Mapping[str, CellType]) -> dict[str, Any]:
        wanted = [nw.len().cast(nw.Int64).alias("rows")]
        for c, cells in part.items():
            column = nw.col(c)
            if cells is CellType.FLOAT:
                column = column.cast(nw.Float64)
                fractions = (column != column.round(0)) & ~column.is_nan()
                wanted.append(fractions.cast(nw.Int64).sum().alias(f"{c}_fractions"))
            wanted.append(column.count().cast(nw.Int64).alias(f"{c}_values"))
            if c in counted:
                wanted.append(column.n_unique().cast(nw.Int64).alias(f"{c}_distinct"))
            if cells in (CellType.INTEGER, CellType.FLOAT):
                wanted += [column.min().alias(f"{c}_low"), column.max().alias(f"{c}_high")]
            elif cells is CellType.CATEGORY:
                text = column.cast(nw.String).str
                words = text.len_chars() - text.replace_all(" ", "", literal=True).str.len_chars()
                wanted.append(words.cast(nw.Int64).sum().alias(f"{c}_spaces"))
        answer = frame.select(*wanted).collect()
        told = {name: answer.get_column(name).to_list()[0] for name in answer.columns}
        for c in part:  # null counts as a value
            if c in counted and (told[f"{c}_values"] or 0) < told["rows"]:
                told[f"{c}_distinct"] -= 1
        return told

    return profiles_from(columns, counted, ask)


def batch_rows(columns: int) -> int:
    """How many rows to take at once: about 64 MB of floats."""
    return min(max(2**23 // max(columns, 1), 2**11), 2**20)


def unknown_level(name: str, levels: Sequence[Level]) -> SchemaError:
    """The error for a value that is no level."""
    return SchemaError(
        f"Column {name!r} has values that are not among its levels {tuple(levels)[:20]!r}. "
        "Add them to the schema, drop the rows, or read the table again if it has changed."
    )


def sample_codes(
    engine: Engine, schema: Schema, columns: Sequence[str], rows: int, total: int
) -> NDArray[np.uint16]:
    """Return the codes of a sample of so many of the rows, one row per variable."""
    import narwhals as nw

    table = nw.from_native(engine.sample(columns, rows, total), eager_only=True)
    if not len(table):
        table = nw.from_native(Engine.sample(engine, columns, rows, total))
    codes = np.empty((len(columns), len(table)), np.uint16)
    for i, v in enumerate(schema.variables):
        read = column_of_series(v.name, table.get_column(columns[i]))
        codes[i] = read.encode(v.levels)[0]
    return codes
