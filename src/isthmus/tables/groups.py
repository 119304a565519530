"""Tables whose rows belong to groups: statistics about the mean of each group."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats, Integers
from isthmus.errors import DataError, MismatchError, SchemaError, counted
from isthmus.results.reading import Disclosure, Reading
from isthmus.statistics import Basis, CountPlan, Expansion, Kind, Moments, Schema
from isthmus.statistics.base import refuse_empty
from isthmus.statistics.within import from_scatter, moments_within, sampled_rows
from isthmus.tables.base import CompleteColumns, Source
from isthmus.tables.frame import Frame, column_of
from isthmus.tables.lazy import Lazy
from isthmus.tables.missing import DropRows, MissingAsLevel
from isthmus.tables.names import as_narwhals

if TYPE_CHECKING:
    import narwhals as nw

_AT_ONCE = 100
"""Columns whose sums are asked for in one query: databases limit the width of an answer."""


class WithinGroups(Source):
    """Base class of tables with groups; the column of groups is not a variable.

    The mean of each group is subtracted from the values, indicators and basis functions of its
    rows. What differs between groups as a whole is then no dependence.
    """

    within_groups: bool = True
    timed: ClassVar[bool] = True

    def __init__(self, table: Source, name: str, schema: Schema) -> None:
        self._table, self._group, self._variables = table, name, schema
        self.group_column = name
        self.missing = table.missing
        self._moments: Moments | None = None

    def schema(self) -> Schema:
        return self._variables

    def moments(self, names: Sequence[str] | None = None) -> Moments:
        """Moments within groups of these variables; of all if not given."""
        if self._moments is None:
            if names is not None and tuple(names) != self._variables.names:
                return self._computed(self._variables.subset(names))
            self._moments = self._computed(self._variables)
        return self._moments if names is None else self._moments.select(names)

    @abstractmethod
    def _computed(self, schema: Schema) -> Moments:
        """Compute the moments of variables of the table."""

    def counts(self, plan: CountPlan) -> NoReturn:
        raise MismatchError(
            f"The table has groups={self._group!r}, and counts have no group means to remove. "
            "Learn with DegenerateGaussian(), which needs moments of indicators only. Parameters "
            "of discrete variables are those of all rows: isthmus.fit(table, dag) without groups."
        )

    def rows(self) -> NoReturn:
        raise MismatchError(
            f"The table has groups={self._group!r}, and only statistics within groups can be "
            "computed from it.",
            "Choose a score that needs moments, such as GaussianBIC() or DegenerateGaussian(). "
            "Parameters of mixed variables are those of all rows: isthmus.fit(table, dag) without "
            "groups.",
        )

    def disclosure(self) -> Disclosure:
        return self._table.disclosure()

    def record(self, what: str, size: int) -> None:
        self._table.record(what, size)

    def __repr__(self) -> str:
        return f"{self._table!r} within groups of {self._group!r}"


@final
class FrameWithinGroups(WithinGroups):
    """A table in memory with groups.

    Parameters
    ----------
    table
        The table. It has the column of groups as a continuous one: numbers of groups from zero.
    name
        The column of groups.
    schema
        The other variables; by default all of the table.
    """

    def __init__(self, table: Frame, name: str, schema: Schema | None = None) -> None:
        own = table.schema()
        rest = [n for n in own.names if n != name]
        if not rest:
            raise SchemaError(f"The table has no variable but the column of groups, {name!r}.")
        super().__init__(table, name, own.subset(rest) if schema is None else schema)
        self._frame = table
        _refuse_left_missing(table, name)
        self._columns = dict(zip(own.names, table.all_columns(), strict=True))
        self._groups: Integers = np.unique(self._columns[name], return_inverse=True)[1].ravel()

    def _computed(self, schema: Schema) -> Moments:
        return moments_within(schema, self._of(schema), self._groups)

    def _of(self, schema: Schema) -> list[NDArray[Any]]:
        return [self._columns[name] for name in schema.names]

    def reading(self) -> Reading:
        """Return how each variable was read, and why."""
        return _without(self._table.reading(), self._group)

    def expansion_of(self, basis: Basis) -> Expansion:
        """Return centres and scales from all rows: the functions are those of the values."""
        pooled = Moments.from_columns(self._variables, self._of(self._variables))
        return Expansion.standardised(basis, pooled)

    def with_features(self, expansion: Expansion) -> Source:
        return FrameWithinGroups(self._frame, self._group, expansion.widen(self._variables))

    def rows_within_groups(self) -> tuple[Floats, Floats]:
        return sampled_rows(self._variables, self._of(self._variables), self._groups)

    def complete_columns(self) -> CompleteColumns | None:
        """Return numbers about the means of their groups; None if some variables are discrete."""
        if self._variables.of_kind(Kind.DISCRETE):
            return None
        first, sizes = self._frame.complete_columns(), np.bincount(self._groups)
        centred = [
            x - (np.bincount(self._groups, x) / sizes)[self._groups]
            for x in self._of(self._variables)
        ]
        own = first.positions, first.dropped
        return CompleteColumns(self._variables, centred, *own, self._groups)


@final
class LazyWithinGroups(WithinGroups):
    """A table of an engine with groups. The engine subtracts the means.

    Parameters
    ----------
    table
        The table, whose variables do not include the column of groups.
    name
        The column of groups.
    schema
        The variables, if they have basis functions.
    """

    def __init__(self, table: Lazy, name: str, schema: Schema | None = None) -> None:
        super().__init__(table, name, table.schema() if schema is None else schema)
        self._lazy = table
        _refuse_left_missing(table, name)

    def _computed(self, schema: Schema) -> Moments:
        import narwhals as nw

        wide, group = self._lazy.wide(schema, self._group)
        columns = [c for c in wide.collect_schema().names() if c != group]
        rows, groups, mean, still = self._about_groups(wide, group, columns)
        centred = ((nw.col(c) - nw.col(c).mean().over(group)).alias(c) for c in columns)
        moments = self._lazy.sum_up(wide.select(*centred))
        scatter = moments.scatter().copy()
        scatter[still, :] = scatter[:, still] = 0.0
        return from_scatter(schema, rows, groups, mean, scatter)

    def _about_groups(
        self, wide: nw.LazyFrame[Any], group: str, columns: Sequence[str]
    ) -> tuple[int, int, Floats, NDArray[np.bool_]]:
        """Return numbers of rows and groups, pooled means, and what is constant within groups."""
        import narwhals as nw

        sums, ranges = [], []
        rows = groups = absent = 0
        for start in range(0, len(columns), _AT_ONCE):
            part = range(start, min(start + _AT_ONCE, len(columns)))
            own = [(j, nw.col(columns[j])) for j in part]
            told = wide.group_by(group).agg(
                nw.len().cast(nw.Int64).alias("n"),
                *(column.sum().cast(nw.Float64).alias(f"s{j}") for j, column in own),
                *((column.max() - column.min()).alias(f"r{j}") for j, column in own),
            )
            answer = told.select(
                nw.col("n").sum().alias("rows"),
                nw.len().cast(nw.Int64).alias("groups"),
                nw.when(nw.col(group).is_null()).then(1).otherwise(0).sum().alias("absent"),
                *(nw.col(f"s{j}").sum() for j in part),
                *(nw.col(f"r{j}").max() for j in part),
            ).collect()
            row = {c: answer.get_column(c).to_list()[0] for c in answer.columns}
            rows, groups, absent = (int(row[c] or 0) for c in ("rows", "groups", "absent"))
            sums += [float(row[f"s{j}"] or 0.0) for j in part]
            ranges += [float(row[f"r{j}"] or 0.0) for j in part]
        self.record(f"sums and ranges of {counted(len(columns), 'column')}", 2 * len(columns) + 2)
        refuse_empty(rows)
        if absent:
            raise _no_group(self._group)
        return rows, groups, np.array(sums) / rows, np.array(ranges) == 0.0

    def reading(self) -> Reading:
        """Return how each variable was read, and why."""
        return self._table.reading()

    def expansion_of(self, basis: Basis) -> Expansion:
        """Return centres and scales from all rows: the functions are those of the values."""
        return self._table.expansion_of(basis)

    def with_features(self, expansion: Expansion) -> Source:
        return LazyWithinGroups(self._lazy, self._group, expansion.widen(self._variables))


def within_groups(data: object, name: object, **options: Any) -> WithinGroups:
    """Return a table with groups, in memory or of an engine.

    Parameters
    ----------
    name
        Name of the column of groups.
    **options
        Options of `Frame` or `Lazy`, except the schema.
    """
    from isthmus.tables.engines.find import is_lazy, names_of

    if not isinstance(name, str):
        raise SchemaError(
            f"groups must be the name of a column; {name!r} was given. Write groups='site'. For "
            "groups by several columns, make a column of their combinations."
        )
    kinds = options.pop("kinds", None)
    kinds = None if kinds is None else {n: kind for n, kind in kinds.items() if n != name}
    in_engine = not isinstance(data, (np.ndarray, Mapping)) and is_lazy(data)
    columns = None if in_engine else Frame(data).raw_columns()
    names = names_of(as_narwhals(data)) if columns is None else tuple(columns)
    if name not in names:
        raise SchemaError(f"There is no column {name!r} for groups. There are: {list(names)[:20]}.")
    if columns is None:
        return LazyWithinGroups(Lazy(data, kinds=kinds, aside=(name,), **options), name)
    columns[name] = _numbers_of_groups(name, columns[name])
    if options.get("columns") is not None:
        options["columns"] = (*options["columns"], name)
    return FrameWithinGroups(
        Frame(columns, kinds={**(kinds or {}), name: Kind.CONTINUOUS}, **options), name
    )


def _numbers_of_groups(name: str, values: Any) -> Floats:
    """Number the groups of rows from zero; NaN for rows without one."""
    column = column_of(name, values)
    try:
        numbers = np.unique(column.values, return_inverse=True)[1].ravel().astype(np.float64)
    except TypeError:
        raise SchemaError(
            f"The groups in {name!r} are of different types. Make them all text, or all numbers."
        ) from None
    if column.absent is not None:
        numbers[column.absent] = np.nan
    return numbers


def _no_group(name: str) -> DataError:
    return DataError(
        f"Some rows have no group: {name!r} is missing there. Drop these rows, or give them a "
        "group of their own."
    )


def _refuse_left_missing(table: Source, name: str) -> None:
    """Refuse strategies that estimate statistics from rows with missing values."""
    if table.missing is None or isinstance(table.missing, (DropRows, MissingAsLevel)):
        return
    raise MismatchError(
        f"{table.missing!r} estimates statistics of all rows, and the table has groups={name!r}. "
        "Use DropRows() or MissingAsLevel() with groups."
    )


def _without(reading: Reading, name: str) -> Reading:
    return replace(reading, columns=tuple(c for c in reading if c.name != name))
