"""Tables in memory: pandas, Polars, PyArrow, dictionaries of arrays, NumPy arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError, MismatchError, MissingValuesError, SchemaError, counted
from isthmus.results.reading import FEW_VALUES, ColumnReading, Disclosure, ReadAs, Reading
from isthmus.statistics import (
    CountPlan,
    Counts,
    Expansion,
    Kind,
    Moments,
    Rows,
    Schema,
    Statistic,
    Summary,
    Variable,
)
from isthmus.statistics.base import refuse_empty, refuse_infinite, refuse_missing, with_advice
from isthmus.statistics.coded import CodedRows, as_codes
from isthmus.statistics.incomplete import Estimated, IncompleteCounts
from isthmus.statistics.tally import PatternRows, with_indicators
from isthmus.tables.base import CompleteColumns, Source, countable
from isthmus.tables.columns import TableColumn, column_of_array, column_of_series
from isthmus.tables.conversion import converted
from isthmus.tables.infer_kinds import Profile, decide, finished, refuse_nothing_left
from isthmus.tables.kinds import (
    AsGiven,
    CellType,
    TimeUnit,
    as_given,
    as_kind,
    check_choice,
    check_kinds,
)
from isthmus.tables.missing import (
    DropRows,
    KeepMissing,
    Missing,
    MissingAsLevel,
    Read,
    apply_strategy,
)
from isthmus.tables.names import as_narwhals, check_names, chosen

if TYPE_CHECKING:
    from isthmus.graphs import DAG

Item = TypeVar("Item")
Result = TypeVar("Result")


class Prepared(NamedTuple):
    """A table that was read.

    Attributes
    ----------
    schema
        The variables.
    columns
        Each column as numbers or codes.
    reading
        How each column was read.
    absent
        Which values are missing and left to the score, of shape (d, n); None if none is.
    """

    schema: Schema
    columns: list[NDArray[Any]]
    reading: Reading
    absent: NDArray[np.bool_] | None


@final
class Frame(Source):
    """A table in memory, as a source of statistics. Nothing leaves this process.

    Parameters
    ----------
    data
        A pandas, Polars or PyArrow table, anything else eager that narwhals knows, a dictionary
        of arrays, or a NumPy array (two-dimensional, or with named fields).
    kinds
        How to read some columns: ``"continuous"``, ``"discrete"``, or a unit for dates such as
        ``"days"``. By default floats are continuous; text, categories and Booleans are discrete;
        whole numbers with at most four different values are discrete, and others continuous; so
        are ordered categories by their number of levels, and their positions are the numbers.
        Identifiers and columns with too many levels are left out; see `reading`.
    integers
        How to read integers that ``kinds`` does not name, whatever their number of values.
    keep
        Columns that are not left out whatever they look like; None for all.
    columns
        Names of the columns to read, none of which is left out; by default all are read.
    missing
        How to handle missing values; by default they are refused.
    schema
        The variables, if they are known in advance (as in a study with several sites). It
        also chooses the columns and their order. By default levels are those that occur, sorted.
    names
        Names for the columns of a NumPy array; ``x0``, ``x1`` … if not given.

    Examples
    --------
    >>> import isthmus as ist
    >>> frame = ist.Frame({"ward": [1, 2, 3, 1] * 10}, kinds={"ward": ist.Kind.DISCRETE})
    >>> frame.schema().names
    ('ward',)
    """

    in_memory: ClassVar[bool] = True
    timed: ClassVar[bool] = True

    def __init__(
        self,
        data: object,
        *,
        kinds: Mapping[str, AsGiven | str] | None = None,
        integers: Kind | str | None = None,
        keep: Collection[str] | None = (),
        columns: Collection[str] | None = None,
        missing: Missing | None = None,
        schema: Schema | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        check_choice(kinds, schema)
        self._data = _columns(data, names)
        self._given = check_kinds(kinds, self._data)
        self._integers = None if integers is None else as_kind(integers, "integers")
        self._keep = None if keep is None or columns is not None else frozenset(keep)
        self._data = chosen(self._data, columns)
        self.missing = missing
        self._wanted = schema
        self._moments: Moments | None = None
        self._until = math.inf
        if schema is not None:
            lacking = [n for n in schema.names if n not in self._data]
            if lacking:
                raise SchemaError(
                    f"The table lacks the columns {lacking} of the schema. "
                    f"It has: {list(self._data)[:20]}."
                )

    @cached_property
    def _decided(self) -> list[tuple[TableColumn, ColumnReading]]:
        """Each column, and how it will be read."""
        names = self._wanted.names if self._wanted is not None else tuple(self._data)
        problems = Problems()
        columns = problems.without(
            names, lambda name: self._converted(column_of(name, self._data[name]))
        )
        rows = {len(c.values) for c in columns}
        if len(rows) > 1:
            sizes = {c.name: len(c.values) for c in columns[:20]}
            raise SchemaError(
                f"The columns have different lengths: {sizes}. Give one value per row in each."
            )
        refuse_empty(max(rows, default=1))
        decided = problems.without(columns, lambda column: (column, self._decide(column)))
        problems.refuse_with([pair for pair in decided if pair[1].used], self.missing)
        refuse_nothing_left([reading for _, reading in decided])
        return decided

    @cached_property
    def _prepared(self) -> Prepared:
        """The schema, each column as numbers or codes, and how they were read."""
        readings = [r for _, r in self._decided]
        rows = len(self._decided[0][0].values)
        used = [(self._listed(c), r) for c, r in self._decided if r.used]
        try:
            treated, remarks = apply_strategy(used, self.missing, rows)
        except MissingValuesError as error:
            raise Problems([error]).and_infinite(used) from None
        read = [self._read(c, r) for c, r in treated]
        schema = Schema(tuple(v for v, _ in read))
        absent = None
        if any(c.absent is not None for c, _ in treated) and not isinstance(
            self.missing, MissingAsLevel
        ):
            none = np.zeros(rows, dtype=np.bool_)
            absent = np.stack([none if c.absent is None else c.absent for c, _ in treated])
        values = {c.name: c.present for c, r in treated if r.read_as is ReadAs.CONTINUOUS}
        reading = finished(readings, schema, remarks, values)
        return Prepared(schema, [x for _, x in read], reading, absent)

    def _listed(self, column: TableColumn) -> TableColumn:
        """The column; where missing values are kept, unlisted levels are missing values."""
        wanted = None if self._wanted is None else self._wanted[column.name]
        if not isinstance(self.missing, KeepMissing) or wanted is None or not wanted.levels:
            return column
        return column.only(wanted.levels)

    def _converted(self, column: TableColumn) -> TableColumn:
        """The column, as numbers or dates if it holds them as text."""
        return converted(column, self._given_for(column), self._integers)

    def _given_for(self, column: TableColumn) -> AsGiven | None:
        """How the schema or the user wants a column to be read."""
        if self._wanted is None:
            return self._given.get(column.name)
        wanted = self._wanted[column.name]
        may_be_time = column.cells in (CellType.TEMPORAL, CellType.CATEGORY)
        return as_given(wanted.kind, wanted.time_unit if may_be_time else None)

    def _decide(self, column: TableColumn) -> ColumnReading:
        given, light = self._given_for(column), Profile(column.cells, column.dtype, 0, 0)
        reading = decide(
            column.name,
            light if given is not None else column.profile(),
            given,
            integers=self._integers,
            keep=self._keep is None or column.name in self._keep,
        )
        if column.written and reading.used and given is None and reading.reason != FEW_VALUES:
            return replace(reading, reason=f"numbers written as text, such as {column.written!r}")
        return reading

    def _read(self, column: TableColumn, reading: ColumnReading) -> tuple[Variable, NDArray[Any]]:
        wanted = None if self._wanted is None else self._wanted[column.name]
        if reading.read_as is ReadAs.DISCRETE:
            codes, levels = column.encode(None if wanted is None else wanted.levels)
            if isinstance(self.missing, MissingAsLevel) and column.absent is not None:
                level = self.missing.level
                while level in levels:
                    level += "_"
                codes = np.where(column.absent, len(levels), codes.astype(np.int64))
                levels = (*levels, level)
            return wanted or Variable(column.name, Kind.DISCRETE, levels), codes
        values, unit = column.numbers, None
        if column.cells is CellType.TEMPORAL:
            unit = self._given[column.name] if wanted is None else wanted.time_unit
            values = values / TimeUnit(unit or "").seconds
        variable = Variable(column.name, Kind.CONTINUOUS, time_unit=unit)
        return wanted or variable, values

    def reading(self) -> Reading:
        """Return how each column was read, and why; also if missing values will be refused."""
        if self.missing is None and any(c.missing for c, r in self._decided if r.used):
            return Reading(tuple(r for _, r in self._decided))
        return self._prepared.reading

    def schema(self) -> Schema:
        return self._prepared[0]

    def moments(self, names: Sequence[str] | None = None) -> Moments:
        schema, columns, _, absent = self._prepared
        if absent is not None:
            moments = self._estimated.moments
            return moments if names is None else moments.select(names)
        if self._moments is None:
            if names is not None:
                asked = schema.indices(names)
                return Moments.from_columns(schema.subset(names), [columns[i] for i in asked])
            self._moments = Moments.from_columns(schema, columns)
        return self._moments if names is None else self._moments.select(names)

    def limit_estimation(self, until: float) -> None:
        """Estimate moments of incomplete rows until this time of ``time.monotonic()`` at most."""
        self._until = until

    def estimation_remarks(self) -> tuple[str, ...]:
        """Notes on estimated moments; none if no moments were estimated."""
        return self._estimated.remarks() if "_estimated" in self.__dict__ else ()

    @cached_property
    def _estimated(self) -> Estimated:
        """Moments estimated from incomplete rows."""
        schema, _, _, absent = self._prepared
        if absent is None or self.missing is None or not self.missing.gives_moments:
            self._require_complete()
        if schema.has_features:
            raise MismatchError(
                "Basis functions of missing values cannot be estimated. Use DropRows()."
            )
        assert self.missing is not None
        rows = with_indicators(schema, self.rows_with_holes())
        return self.missing.moments(PatternRows.of(schema, [rows]), self._until)

    def rows_with_holes(self) -> NDArray[np.float64]:
        """All rows, shape (n, d), levels as codes, with NaN for missing values."""
        _, columns, _, absent = self._prepared
        values = np.stack([np.asarray(x, dtype=np.float64) for x in columns], axis=1)
        if absent is not None:
            values[absent.T] = np.nan
        return values

    def estimation(
        self,
    ) -> tuple[NDArray[np.float64], Callable[[NDArray[np.float64]], Moments]] | None:
        """Return rows with NaN for missing values and what estimates moments from such rows."""
        rows = self.incomplete_rows()
        if rows is None or self.missing is None:
            return None
        return rows, partial(_estimate, self.schema(), self.missing)

    def raw_columns(self) -> dict[str, Any]:
        """Return the columns as they were given, by name."""
        return dict(self._data)

    def incomplete_rows(self) -> NDArray[np.float64] | None:
        """Return all rows with NaN for missing values, if moments are estimated from them."""
        estimates = self.missing is not None and self.missing.gives_moments
        return self.rows_with_holes() if estimates and self.has_missing else None

    def complete_columns(self) -> CompleteColumns:
        """The columns as they were read, without the rows that lack a value."""
        schema, columns, reading, absent = self._prepared
        if absent is None:
            dropped = isinstance(self.missing, DropRows) and bool(reading.remarks)
            return CompleteColumns(schema, columns, None, dropped)
        rows = np.flatnonzero(~absent.any(axis=0))
        return CompleteColumns(schema, [x[rows] for x in columns], rows)

    @property
    def has_missing(self) -> bool:
        """Whether values are missing that were neither dropped nor given a level of their own."""
        return self._prepared.absent is not None

    def incomplete(self) -> IncompleteCounts:
        """The coded rows of discrete variables, with missing values."""
        schema, columns, _, absent = self._prepared
        codes = np.stack([np.asarray(x, dtype=np.uint16) for x in columns])
        if absent is not None:
            sizes = schema.cardinalities[:, None].astype(np.uint16)
            codes = np.where(absent, sizes, codes)
        return IncompleteCounts(schema, codes)

    def _require_complete(self) -> None:
        schema, columns, _, absent = self._prepared
        if absent is not None:
            counted = absent.sum(axis=1).tolist()
            try:
                refuse_missing(dict(zip(schema.names, counted, strict=True)), len(columns[0]))
            except MissingValuesError as error:
                raise with_advice(
                    error,
                    f"This score or method needs complete rows, which {self.missing!r} does not "
                    "give. Use DropRows(), or a score of moments such as GaussianBIC() or of "
                    "counts such as BDeu(); or leave the columns out.",
                ) from None

    def counts(self, plan: CountPlan) -> Counts:
        schema = countable(self.schema(), plan)
        self._require_complete()
        return Counts.from_rows(schema, self._coded, plan=plan)

    @cached_property
    def _coded(self) -> CodedRows:
        schema, columns, *_ = self._prepared
        return coded_rows(schema, columns)

    def rows(self) -> NDArray[np.float64]:
        self._require_complete()
        return self.rows_with_holes()

    def all_columns(self) -> Sequence[NDArray[Any]]:
        self._require_complete()
        return self._prepared.columns

    def selected(self, names: Sequence[str]) -> NDArray[np.float64]:
        """Return some columns of all rows, of shape (n, names), with levels as codes."""
        self._require_complete()
        schema, columns, *_ = self._prepared
        return np.stack([np.asarray(columns[i], np.float64) for i in schema.indices(names)], axis=1)

    def with_features(self, expansion: Expansion) -> Frame:
        """Return the same table with basis functions, which are computed together with moments."""
        schema = expansion.widen(self.schema())
        return Frame(self._data, schema=schema, missing=self.missing)

    def disclosure(self) -> Disclosure:
        """Return an empty disclosure: the table is in this process."""
        return Disclosure.none()

    def __repr__(self) -> str:
        return f"Frame({counted(len(self._data), 'column')})"


def coded_rows(schema: Schema, columns: Sequence[NDArray[Any]]) -> CodedRows:
    """Return the codes of the discrete columns, in as few bytes as they need."""
    discrete = [x for v, x in zip(schema.variables, columns, strict=True) if v.levels]
    sizes = np.array([len(v.levels) for v in schema.variables if v.levels], dtype=np.int64)
    rows = CodedRows(np.stack([as_codes(x, sizes) for x in discrete]))
    # With fewer cells than rows the distinct rows are found quickly, and are all we need.
    if math.prod(sizes.tolist()) <= rows.codes.shape[1] // 4:
        return rows.distinct(sizes)
    return rows


def column_of(name: str, data: Any) -> TableColumn:
    """Return a column as it was given, not read yet."""
    import narwhals as nw

    if not isinstance(data, (np.ndarray, list, tuple, nw.Series)):
        data = nw.from_native(data, series_only=True, pass_through=True)  # of a dictionary
    return (
        column_of_series(name, data) if isinstance(data, nw.Series) else column_of_array(name, data)
    )


def _columns(data: object, names: Sequence[str] | None) -> dict[str, Any]:
    """Columns by name, not read yet."""
    if isinstance(data, np.ndarray):
        whole = np.asarray(data) if isinstance(data, np.matrix) else data
        return _columns_of_array(whole, names)
    if names is not None:
        raise SchemaError("Give names for NumPy arrays only; this table has its own.")
    if isinstance(data, Mapping):
        if not data:
            raise DataError("The table has no columns. Give a table with a column per variable.")
        return dict(zip(check_names(data), data.values(), strict=True))
    return _columns_of_frame(data)


def _columns_of_array(data: NDArray[Any], names: Sequence[str] | None) -> dict[str, Any]:
    if data.dtype.names is not None:
        return {n: data[n] for n in data.dtype.names}
    if data.ndim != 2 or data.shape[1] == 0:
        raise SchemaError(
            f"The array has the shape {data.shape}; (rows, columns) is needed, "
            "with at least one column. Give a single column as array.reshape(-1, 1)."
        )
    columns = [f"x{i}" for i in range(data.shape[1])] if names is None else check_names(names)
    if len(columns) != data.shape[1]:
        raise SchemaError(f"{len(columns)} names were given for {data.shape[1]} columns.")
    if data.dtype.itemsize <= 2:
        data = np.asfortranarray(data)  # codes are cheap to copy, and columns slow to read apart
    return {n: data[:, i] for i, n in enumerate(columns)}


def _columns_of_frame(data: Any) -> dict[str, Any]:
    import narwhals as nw

    frame = as_narwhals(data)
    if isinstance(frame, nw.LazyFrame):
        raise DataError(
            f"A {type(data).__name__} is not in memory. Give it to Lazy, which lets its engine "
            "compute, or collect it first."
        )
    if not isinstance(frame, nw.DataFrame):
        raise DataError(
            f"A {type(data).__name__} is not a table. Give a pandas, Polars or PyArrow table, a "
            "dictionary of arrays, or a two-dimensional NumPy array with names."
        )
    names = check_names(frame.columns)
    if not names:
        raise DataError("The table has no columns. Give a table with a column per variable.")
    return {n: frame.get_column(c) for n, c in zip(names, frame.columns, strict=True)}


def _estimate(schema: Schema, missing: Missing, rows: NDArray[np.float64]) -> Moments:
    patterns = PatternRows.of(schema, [with_indicators(schema, rows)])
    return missing.moments(patterns, together=False).moments


# --- Statistics that were computed elsewhere, as a source ---------------------------------------


@final
class Precomputed(Source):
    """Statistics that were computed earlier, as a source.

    Parameters
    ----------
    statistics
        The available statistics; no others can be requested.
    """

    def __init__(self, statistics: Statistic) -> None:
        self._statistics = statistics

    @property
    def statistics(self) -> Statistic:
        """The available statistics."""
        return self._statistics

    @property
    def within_groups(self) -> bool:  # type: ignore[override]
        """Whether the statistics are moments within groups."""
        return isinstance(self._statistics, Moments) and self._statistics.groups is not None

    def schema(self) -> Schema:
        return self._statistics.schema

    def moments(self, names: Sequence[str] | None = None) -> Moments:
        """Return the moments; computed from counts if these contain every pair."""
        found = self._statistics
        if isinstance(found, Rows):
            found = found.moments()
        elif isinstance(found, Counts):
            if found.joint is None:
                raise MismatchError(
                    f"The counts at hand hold {found.plan}, from which moments are not made. "
                    "Choose a score on counts (BIC, BDeu), or ask the source of the data "
                    "for moments."
                )
            found = Moments.from_columns(
                found.schema, list(found.joint.codes), weights=found.joint.weights
            )
        if not isinstance(found, Moments):
            raise MismatchError(
                f"There are only {found.described} here, from which moments cannot be computed."
            )
        return found if names is None else found.select(names)

    def counts(self, plan: CountPlan) -> Counts:
        """Return the counts, if they cover the plan."""
        found = self._statistics
        if not isinstance(found, Counts):
            raise MismatchError(
                f"There are only {found.described} here, and counts were asked for. Choose a score "
                "on moments "
                "(GaussianBIC, BGe, DegenerateGaussian), or ask the source of the data for counts."
            )
        return found.covering(plan)

    def gather(self, needs: type[Statistic], dag: DAG | None = None) -> Summary:
        """Return the statistics at hand if they are what is needed, otherwise what they give."""
        if dag is None and isinstance(self._statistics, needs):
            # There are no other counts than those of the plan: other requests raise UnplannedError.
            return self._statistics
        return needs.gather(self, dag)

    def rows(self) -> NDArray[np.float64]:
        """Return the rows if the statistics are rows; otherwise raise `MismatchError`."""
        if isinstance(self._statistics, Rows):
            return self._statistics.values
        raise MismatchError(
            "There are only statistics here, no rows.",
            "Choose a score that needs moments or counts, or give the table itself.",
        )

    def with_features(self, expansion: Expansion) -> Source:
        raise MismatchError(
            "There are only statistics here, from which basis functions cannot be computed. Give "
            "the table itself, or the moments of WithFeatures(table, basis)."
        )

    def disclosure(self) -> Disclosure:
        """Return an empty disclosure: the statistics were released before."""
        return Disclosure.none()

    def __repr__(self) -> str:
        return f"Precomputed({self._statistics!r})"


@final
class Problems:
    """All reasons why a table cannot be read, which are raised together."""

    def __init__(self, errors: Iterable[DataError] = ()) -> None:
        self._errors = list(errors)

    def without(self, items: Iterable[Item], read: Callable[[Item], Result]) -> list[Result]:
        """Return what is read from items, without those that cannot be read."""
        results = []
        for item in items:
            try:
                results.append(read(item))
            except SchemaError as error:
                self._errors.append(error)
        return results

    def refuse_with(self, others: Sequence[Read], missing: Missing | None) -> None:
        """Raise if there are errors, with what is wrong with the cells of the other columns."""
        if not self._errors:
            return
        if others:
            try:
                apply_strategy(others, missing, len(others[0][0].values))
            except MissingValuesError as error:
                self._errors.append(error)
        raise self.and_infinite(others)

    def and_infinite(self, columns: Sequence[Read]) -> DataError:
        """Return one error of the type of the first, and name columns with infinite values."""
        floats = [c for c, _ in columns if c.cells is CellType.FLOAT]
        try:
            refuse_infinite({c.name: int(np.isinf(c.present).sum()) for c in floats})
        except DataError as error:
            self._errors.append(error)
        first = self._errors[0]
        if len(self._errors) == 1:
            return first
        return type(first)(" ".join(map(str, dict.fromkeys(self._errors))))
