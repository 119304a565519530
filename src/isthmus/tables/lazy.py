"""Tables of an engine: Polars lazy frames, DuckDB, Spark, databases through Ibis."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from isthmus import watch
from isthmus.arrays import Integers, Work
from isthmus.errors import DataError, MismatchError, SchemaError
from isthmus.results.reading import ColumnReading, Disclosure, ReadAs, Reading, Release
from isthmus.statistics import CountPlan, Counts, Expansion, Kind, Level, Moments, Schema, Variable
from isthmus.statistics.base import Positions, planned_sets
from isthmus.statistics.coded import CodedRows, as_codes
from isthmus.statistics.incomplete import IncompleteCounts
from isthmus.statistics.requested import RequestedCounts
from isthmus.tables.base import Source, countable
from isthmus.tables.columns import TableColumn
from isthmus.tables.engines.base import batch_rows, plain_names, sample_codes
from isthmus.tables.engines.find import engine_of, names_of
from isthmus.tables.grouping import Grouped, count_distinct, count_rows, group, too_many_rows
from isthmus.tables.infer_kinds import Profile, decide, finished, refuse_nothing_left, stated
from isthmus.tables.kinds import (
    AsGiven,
    CellType,
    TimeUnit,
    as_given,
    as_kind,
    cell_type_of,
    check_choice,
    check_kinds,
    refused_type,
)
from isthmus.tables.lazy_parts import (
    LazyEstimation,
    LazyFeatures,
    feature_columns,
    incomplete_counts,
    incomplete_remarks,
    refuse_incomplete,
)
from isthmus.tables.missing import DropRows, Missing, MissingAsLevel, complete_rows
from isthmus.tables.names import as_narwhals, check_names, chosen

if TYPE_CHECKING:
    import narwhals as nw

    from isthmus.tables.engines.base import Engine

# --- Types of the columns of a table in an engine, before any row is read -----------------------


def readable_cells(dtypes: Mapping[str, nw.dtypes.DType]) -> dict[str, CellType]:
    """Return what the cells of each column are, and refuse those that are no numbers or levels."""
    cells = {name: cell_type_of(name, dtype) for name, dtype in dtypes.items()}
    for name, own in cells.items():
        if own in (CellType.EMPTY, CellType.TEMPORAL):
            raise refused_type(name, str(dtypes[name]), temporal=own is CellType.TEMPORAL)
    return cells


def check_times(
    units: Mapping[str, TimeUnit], dtypes: Mapping[str, nw.dtypes.DType], engine: Engine
) -> None:
    """Refuse columns that an engine cannot turn into numbers of a unit of time."""
    for name, unit in units.items():
        dtype = str(dtypes[name])
        decide(name, Profile(cell_type_of(name, dtypes[name]), dtype, 0, 0), unit)
        is_duration = dtype.startswith("Duration")
        if is_duration and not engine.durations:
            raise SchemaError(
                f"Column {name!r} has durations, which {engine.site} does not convert to "
                f"{unit}. Convert it to a number in the engine, and leave it out of kinds."
            )
        if not is_duration and not dtype.startswith("Date"):
            raise refused_type(name, dtype, time_of_day=True)


def fills_range(profile: Profile) -> bool:
    """Whether a column has all integers between its smallest and its largest value."""
    is_integer = profile.cells is CellType.INTEGER and profile.distinct > 0
    return is_integer and profile.distinct == profile.high - profile.low + 1


# --- Tables of an engine: Polars lazy frames, DuckDB, Spark, databases through Ibis -------------

HEAD = 10_000
"""Number of rows at the top of the table from which the cost of a query is estimated."""

MOST = 2**20
"""Number of values that are fetched as rows at most: distinct rows of a joint table with their
frequencies, or a sample. Larger tables are counted in the engine, for sets of few columns."""


@final
class Lazy(Source):
    """A table of an engine. The engine computes the statistics; rows stay where they are.

    Results are cached, so that the engine computes nothing twice. Columns may have any name,
    because they are requested from the engine by position.

    Parameters
    ----------
    table
        A Polars lazy frame, a DuckDB relation, a PySpark dataframe or an Ibis table.
    kinds
        How to read some columns, and what the default is: as for `Frame`.
    integers
        How to read integers that ``kinds`` does not name, whatever their number of values.
    keep
        Columns that are not left out whatever they look like; None for all.
    columns
        Names of the columns to read, none of which is left out; by default all are read.
    missing
        How to handle missing values: `DropRows`, `AvailableCases`, for discrete columns
        `StructuralEM`, for others `ExpectationMaximisation`; by default they are refused.
    schema
        The variables, if they are known in advance. It also selects the columns and their order,
        and makes the query for the levels unnecessary.
    stream_rows
        Whether a database behind Ibis may send its rows to this process, which adds them up and
        does not keep them. This is faster than sums in SQL for more than about a hundred columns.
        Other engines ignore it.
    aside
        Names of columns that are not variables, such as the one of ``groups``.
    """

    timed: ClassVar[bool] = True

    def __init__(
        self,
        table: object,
        *,
        kinds: Mapping[str, AsGiven | str] | None = None,
        integers: Kind | str | None = None,
        keep: Collection[str] | None = (),
        columns: Collection[str] | None = None,
        missing: Missing | None = None,
        schema: Schema | None = None,
        stream_rows: bool = False,
        aside: Collection[str] = (),
    ) -> None:
        import narwhals as nw

        check_choice(kinds, schema)
        if isinstance(missing, MissingAsLevel):
            raise MismatchError(
                f"{missing!r} needs the rows, and they are with an engine. Use DropRows(), "
                "AvailableCases(), StructuralEM() or ExpectationMaximisation(), or collect the "
                "table first."
            )
        frame = as_narwhals(table)
        if not isinstance(frame, nw.LazyFrame):
            raise DataError(
                f"A {type(table).__name__} is not a table of an engine. Give tables in memory to "
                "Frame; Lazy takes a Polars lazy frame, a DuckDB relation, a PySpark dataframe "
                "or an Ibis table."
            )
        names = check_names(names_of(frame))
        self._stream_rows = stream_rows
        self._engine = engine_of(frame, names, stream_rows=stream_rows)
        self._frame: nw.LazyFrame[Any] = as_narwhals(self._engine.table)
        self._plain = dict(zip(names, plain_names(names), strict=True))
        variables = {n: c for n, c in self._plain.items() if n not in aside}
        self._columns = chosen(variables, columns)
        stated = check_kinds(kinds, names)
        self._kinds = {name: stated[name] for name in stated if name in self._columns}
        self._integers = None if integers is None else as_kind(integers, "integers")
        self._keep = None if keep is None or columns is not None else frozenset(keep)
        self.missing = missing
        self._rows_dropped = False
        self._schema = schema
        self._reading: Reading | None = None
        self._times = self._convert_times()
        self._moments: Moments | None = None
        self._groups: list[Grouped] = []
        self._ranges: dict[str, tuple[Level, ...]] = {}
        self._small: dict[tuple[str, ...], bool] = {}
        self._releases: list[Release] = []
        self._estimation: LazyEstimation | None = None
        if missing is not None and missing.gives_moments:
            self._estimation = LazyEstimation(missing, self.record)

    def _convert_times(self) -> dict[str, str]:
        """Turn dates with a requested unit into numbers; returns the types they had."""
        units = {n: unit for n, unit in self._kinds.items() if isinstance(unit, TimeUnit)}
        if not units:
            return {}
        types = self._frame.collect_schema()
        dtypes = {n: types[self._columns[n]] for n in units}
        check_times(units, dtypes, self._engine)
        scales = {self._columns[n]: unit.seconds for n, unit in units.items()}
        self._engine = self._engine.with_times(scales)
        self._frame = as_narwhals(self._engine.table)
        return {n: str(dtype) for n, dtype in dtypes.items()}

    @cached_property
    def _cells(self) -> dict[str, CellType]:
        """Return the type of the cells of each column, without reading data."""
        types = self._frame.collect_schema()
        names = tuple(self._columns) if self._schema is None else self._schema.names
        lacking = [n for n in names if n not in self._columns]
        if lacking or not names:
            raise SchemaError(
                f"The table lacks the columns {lacking} of the schema. "
                f"It has: {list(self._columns)[:20]}."
            )
        cells = readable_cells({n: types[self._columns[n]] for n in names})
        return cells | dict.fromkeys(self._times, CellType.TEMPORAL)

    def schema(self) -> Schema:
        """Return the names, kinds and levels of the variables.

        Continuous columns are known from their types. Levels need one pass over the discrete ones,
        which gives their counts as well where the joint table is small.
        """
        cells = self._cells
        if self._schema is None:
            self._schema = self._inferred()
        elif isinstance(self.missing, DropRows) and not self._rows_dropped:
            self._drop_rows(self._schema.names)
        for v in self._schema.variables:
            decide(v.name, Profile(cells[v.name], "", 0, 0), as_given(v.kind, v.time_unit))
        return self._schema

    def reading(self) -> Reading:
        """Return how each column was read, and why."""
        schema = self.schema()
        return self._reading or stated(schema)

    def _inferred(self) -> Schema:
        readings = {n: self._decide(n, profile) for n, profile in self._profiles.items()}
        discrete = [n for n, r in readings.items() if r.read_as is ReadAs.DISCRETE]
        remarks: tuple[str, ...] = ()
        if isinstance(self.missing, DropRows):
            remarks = self._drop_rows([n for n, r in readings.items() if r.used])
        if discrete:
            self._find_levels(discrete, readings)
        remarks += incomplete_remarks(self.missing, self._groups, readings)
        refuse_nothing_left(readings.values())
        levels = self._ranges | {n: own for g in self._groups for n, own in g.levels.items()}
        schema = Schema(
            tuple(
                Variable(n, Kind.DISCRETE, levels[n])
                if n in levels
                else Variable(n, Kind.CONTINUOUS, time_unit=self._unit(n))
                for n, r in readings.items()
                if r.used
            )
        )
        self._reading = finished(readings.values(), schema, remarks)
        return schema

    def numbers(self) -> list[str]:
        """Return the columns that will be read as numbers, as far as the first rows tell."""
        decided = {n: self._decide(n, profile) for n, profile in self._profiles.items()}
        return [n for n, reading in decided.items() if reading.read_as is ReadAs.CONTINUOUS]

    def _drop_rows(self, names: Sequence[str]) -> tuple[str, ...]:
        """Drop rows in which one of these columns lacks a value, in the engine."""
        self._rows_dropped = True
        cells = {self._columns[n]: self._cells[n] for n in names}
        self._frame, remarks = complete_rows(self._frame, cells)
        self._engine = self._engine.of_table(self._frame.to_native())
        self.record("number of rows, before and after rows were dropped", 2)
        return remarks

    def _decide(self, name: str, profile: Profile) -> ColumnReading:
        given, keep = self._kinds.get(name), self._keep is None or name in self._keep
        profile = replace(profile, convertible=False)
        return decide(name, profile, given, integers=self._integers, keep=keep)

    def _unit(self, name: str) -> str | None:
        unit = self._kinds.get(name)
        return unit.value if isinstance(unit, TimeUnit) else None

    def _find_levels(self, names: list[str], readings: dict[str, ColumnReading]) -> None:
        """Group by all discrete columns at once, or by each of them where that is too large."""

        def is_discrete(column: TableColumn, rows: int) -> bool:
            if column.name not in self._kinds:  # now all of its values are known
                readings[column.name] = self._decide(column.name, column.profile(rows))
            return readings[column.name].read_as is ReadAs.DISCRETE

        used = sum(reading.used for reading in readings.values())
        whole = self.missing is not None and self.missing.left_to_score and len(names) == used
        if (whole or self._is_small(names)) and self._group(names, is_discrete) is not None:
            return
        if whole:
            raise too_many_rows(names, _most_rows(names), f"{self.missing!r} needs")
        for name in self._ranged(names, readings):
            self._group([name], is_discrete, quietly=True)
        size = sum(g.size for g in self._groups)
        self.record(f"levels of {len(names)} variables and their frequencies", size)

    def _ranged(self, names: list[str], readings: dict[str, ColumnReading]) -> list[str]:
        """Find levels of integers by their range alone; returns the columns without them.

        If all integers of the range occur in the first rows, they are the levels. So one query for
        the ranges of all columns replaces a pass over the rows for each of them.
        """
        heads = {n: self._profiles[n] for n in names if fills_range(self._profiles[n])}
        if not heads:
            return names
        for n, seen in self._profile({n: self._cells[n] for n in heads}, (), None).items():
            profile = replace(seen, distinct=heads[n].distinct)
            if profile.values == profile.rows and fills_range(profile):
                if n not in self._kinds:
                    readings[n] = self._decide(n, profile)
                if readings[n].read_as is ReadAs.DISCRETE:
                    self._ranges[n] = tuple(range(profile.low, profile.high + 1))
            else:
                del heads[n]
        return [n for n in names if n not in heads]

    @cached_property
    def _profiles(self) -> dict[str, Profile]:
        """Return profiles of the columns from the first rows, or from all rows if needed."""
        cells, kinds = self._cells, self._kinds
        counted = {
            n for n, own in cells.items() if own not in (CellType.FLOAT, CellType.TEMPORAL)
        } | {n for n, kind in kinds.items() if kind is Kind.DISCRETE}
        head = self._profile(cells, counted, HEAD)
        numbers = {n for n, p in head.items() if p.whole and n not in counted | kinds.keys()}
        if numbers:
            head |= self._profile({n: cells[n] for n in numbers}, numbers, HEAD)
        uncertain = {
            n: cells[n]
            for n, p in head.items()
            if n not in kinds and p.rows >= HEAD and p.is_uncertain(self._integers)
        }
        if uncertain:
            head |= self._profile(uncertain, uncertain, None)
        return head

    def _profile(
        self, cells: Mapping[str, CellType], counted: Collection[str], rows: int | None
    ) -> dict[str, Profile]:
        columns = {self._columns[n]: own for n, own in cells.items()}
        told = self._engine.profile(columns, {self._columns[n] for n in counted}, rows)
        where = "all rows" if rows is None else "first rows"
        self.record(f"number of values of {len(cells)} columns, {where}", len(cells))
        return {n: told[self._columns[n]] for n in cells}

    def _is_small(self, names: Sequence[str]) -> bool:
        """Whether the joint table of these columns has few distinct rows, as far as can be told."""
        if any(set(names) <= g.levels.keys() for g in self._groups):
            return True
        if self._schema is not None:
            cells = math.prod(len(self._schema[n].levels) for n in names)
        else:
            cells = math.prod(max(self._profiles[n].distinct, 1) for n in names)
        if cells <= _most_rows(names):
            return True
        key = tuple(names)
        if key not in self._small:
            self._small[key] = self._looks_small(key)
        return self._small[key]

    def _looks_small(self, names: Sequence[str]) -> bool:
        """Estimate from the first rows, and then from the number of rows."""
        columns = [self._columns[n] for n in names]
        different, rows = count_distinct(self._frame.head(HEAD), columns)
        self.record("number of distinct rows among the first rows", 2)
        # Among m draws from D equal cells about m²/2D meet one drawn before.
        most = _most_rows(names)
        if rows < HEAD or rows * rows / (2 * max(rows - different, 0.5)) <= most:
            return True
        total = count_rows(self._frame)
        self.record("number of rows", 1)
        return total <= most

    def _group(
        self,
        names: Sequence[str],
        is_discrete: Callable[[TableColumn, int], bool] | None = None,
        *,
        quietly: bool = False,
    ) -> Grouped | None:
        """Count distinct rows in the engine; None if there are too many.

        `quietly` leaves it to the caller to record what was sent.
        """
        levels = {} if self._schema is None else {n: self._schema[n].levels for n in names}
        columns = {n: self._columns[n] for n in names}
        grouped = group(
            self._frame,
            columns,
            levels=levels,
            is_discrete=is_discrete,
            allow_missing=self.missing is not None
            and (self.missing.left_to_score or self.missing.gives_moments),
            are_all=len(names) == len(self._cells),
            most=None if len(names) == 1 else _most_rows(names),
        )
        watch.check()
        if grouped is None:
            self.record("distinct rows, too many of them to be used", MOST)
            self._small[tuple(names)] = False
            return None
        self._groups.append(grouped)
        if not quietly:
            rows = grouped.rows.codes.shape[1]
            self.record(f"counts of {rows} distinct rows of {len(names)} variables", grouped.size)
        return grouped

    @property
    def has_missing(self) -> bool:
        """Whether values are missing that the strategy leaves to the score."""
        self.schema()
        return any(g.absent is not None for g in self._groups)

    def _is_incomplete(self, schema: Schema) -> bool:
        """Whether values are missing, as far as the profiles of columns and the groups tell."""
        known = (p.values < p.rows for n, p in self._known_profiles() if n in schema)
        return any(known) or self.has_missing

    def incomplete(self) -> IncompleteCounts:
        """The distinct rows of discrete variables and how often they occur, with missing values."""
        return incomplete_counts(self.schema(), self._groups)

    def _joint(self, names: Sequence[str]) -> CodedRows | None:
        """Distinct rows of these variables, from earlier results if possible; None if too many."""
        refuse_incomplete(self.missing, self._groups)
        for grouped in self._groups:
            if set(names) <= grouped.levels.keys():
                return grouped.take(names)
        if not self._is_small(names):
            return None
        found = self._group(names)
        return None if found is None else found.take(names)

    def moments(self, names: Sequence[str] | None = None) -> Moments:
        schema = self.schema()
        if self._moments is not None:
            return self._moments if names is None else self._moments.select(names)
        wanted = schema if names is None else schema.subset(names)
        estimation = self._estimation if schema.of_kind(Kind.CONTINUOUS) else None
        direct = estimation is None and not wanted.of_kind(Kind.CONTINUOUS)
        rows = self._joint(wanted.names) if direct else None
        if rows is not None:
            moments = Moments.from_columns(wanted, list(rows.codes), weights=rows.weights)
        elif estimation is not None:
            columns = [self._columns[n] for n in schema.names]
            self._moments = estimation.moments(
                self._engine, schema, columns, holes=self._is_incomplete(schema)
            )
            return self._moments if names is None else self._moments.select(names)
        else:
            computed = self._engine.moments(wanted, [self._columns[n] for n in wanted.names])
            self.record(computed.what, computed.size)
            moments = computed.moments
        if names is None:
            self._moments = moments
        return moments

    def _known_profiles(self) -> Iterable[tuple[str, Profile]]:
        """Return the profiles from reading the columns; none if the schema was given."""
        return self._profiles.items() if "_profiles" in self.__dict__ else ()

    def limit_estimation(self, until: float) -> None:
        """Estimate moments of incomplete rows until this time of ``time.monotonic()`` at most."""
        if self._estimation is not None:
            self._estimation.until = until

    def estimation_remarks(self) -> tuple[str, ...]:
        """Notes on estimated moments; none if no moments were estimated."""
        return () if self._estimation is None else self._estimation.remarks

    def moments_of(self, schema: Schema) -> Moments:
        """Moments of these variables with their basis functions, by an engine that streams."""
        computed = self._engine.moments(schema, [self._columns[n] for n in schema.names])
        self.record(computed.what, computed.size)
        return computed.moments

    def counts(self, plan: CountPlan) -> Counts:
        schema = countable(self.schema(), plan)
        rows = self._joint(schema.names)
        if rows is not None:
            return Counts.from_rows(schema, rows, plan=plan)
        if plan.is_everything:
            raise too_many_rows(schema.names, _most_rows(schema.names), "The joint table has")
        sets = planned_sets(schema, plan)
        tables = watch.completed(self._count_tables(schema, sets))
        return Counts(schema, int(tables[0].sum()), plan, dict(zip(sets, tables, strict=True)))

    def requested_counts(self) -> RequestedCounts | None:
        """Counts on request; None if the joint table is small enough to be fetched at once."""
        schema = self.schema()
        schema.require(Kind.DISCRETE, "Counts need")
        if self._joint(schema.names) is not None:
            return None
        total = count_rows(self._frame)
        self.record("number of rows", 1)
        sample = self._sample(schema, total)
        counts = RequestedCounts(schema, total, sample, partial(self._count_tables, schema))
        if self._reading is None:  # levels of a schema that was given need not occur
            watch.completed(counts.scan())
        return counts

    def _sample(self, schema: Schema, total: int) -> CodedRows:
        columns = [self._columns[n] for n in schema.names]
        rows = max(MOST // (4 * len(columns)), 1)
        codes = sample_codes(self._engine, schema, columns, rows, total)
        self.record(f"a sample of {codes.shape[1]} rows of {len(columns)} variables", codes.size)
        watch.check()
        return CodedRows(as_codes(codes, schema.cardinalities))

    def _count_tables(self, schema: Schema, sets: Sequence[Positions]) -> Work[Sequence[Integers]]:
        """Count tables over all rows in the engine, or next to it."""
        columns = [self._columns[n] for n in schema.names]
        counted = yield from self._engine.count_tables(schema, columns, sets)
        what = f"counts of {len(sets)} sets of up to {max(map(len, sets))} variables, one scan"
        self.record(what, counted.size)
        return counted.tables

    def rows(self) -> NDArray[np.float64]:
        raise MismatchError(
            f"The rows are with {self._engine.site}; only statistics come over.",
            "Choose a score that needs moments or counts, or collect the table and give that.",
        )

    def fetch(self, names: Sequence[str]) -> Iterator[dict[str, nw.Series[Any]]]:
        """Fetch columns by one query, some rows at a time."""
        import narwhals as nw

        lacking = [n for n in names if n not in self._columns]
        if lacking:
            raise SchemaError(
                f"The table has no column {lacking}. It has: {list(self._columns)[:20]}."
            )
        columns = [self._columns[n] for n in names]
        for batch in self._engine.batches(columns, batch_rows(len(columns))):
            table = nw.from_native(batch, eager_only=True)
            yield {n: table.get_column(self._columns[n]) for n in names}

    def wide(self, schema: Schema, group: str) -> tuple[nw.LazyFrame[Any], str]:
        """Return a table with one column per column of a schema, and the name of that of groups."""
        import narwhals as nw

        columns = feature_columns(schema, self._columns)
        name = "isthmus_groups"
        while name in columns:
            name += "_"
        of_groups = nw.col(self._plain[group]).alias(name)
        return self._frame.select(*(e.alias(n) for n, e in columns.items()), of_groups), name

    def sum_up(self, wide: nw.LazyFrame[Any]) -> Moments:
        """Return moments of a table of continuous columns that was made of this one."""
        schema = Schema.continuous(wide.collect_schema().names())
        table = Lazy(wide.to_native(), schema=schema, stream_rows=self._stream_rows)
        moments = table.moments()
        self._releases += table.disclosure().entries
        return moments

    def with_features(self, expansion: Expansion) -> LazyFeatures:
        """Return the same table with basis functions, computed by the engine or this process."""
        schema = expansion.widen(self.schema())
        if self._estimation is not None and self._is_incomplete(schema):
            raise MismatchError(
                "Basis functions of missing values cannot be estimated. Use DropRows()."
            )
        if self._engine.streams:
            return LazyFeatures(self, self.moments_of, None, schema)
        columns = feature_columns(schema, self._columns)
        wide = Lazy(
            self._frame.select(*(e.alias(name) for name, e in columns.items())).to_native(),
            schema=Schema.continuous(tuple(columns)),
            stream_rows=self._stream_rows,
        )
        return LazyFeatures(self, self.moments_of, wide, schema)

    def disclosure(self) -> Disclosure:
        return Disclosure(tuple(self._releases))

    def record(self, what: str, size: int) -> None:
        self._releases.append(Release(self._engine.site, what, "plain", size))

    def __repr__(self) -> str:
        return f"Lazy({self._engine.site})"


def _most_rows(names: Sequence[str]) -> int:
    """How many distinct rows of these columns are fetched at most."""
    return MOST // (len(names) + 1)
