"""Tables of an engine: Polars lazy frames, DuckDB, Spark, databases through Ibis."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError, MismatchError, SchemaError
from isthmus.results.disclosure import Disclosure, Release
from isthmus.sources.base import Source, countable
from isthmus.sources.tables.engines.base import Engine, plain_names
from isthmus.sources.tables.grouping import NUMBER, Grouped, group, pack
from isthmus.sources.tables.kinds import (
    FEW,
    CellType,
    as_kind,
    cell_type_of,
    check_choice,
    check_kinds,
    chosen_kind,
    refused_type,
)
from isthmus.sources.tables.names import as_narwhals, check_names, repeated_names_refused
from isthmus.statistics import CodedRows, Counts, Expansion, Kind, Moments, Plan, Schema, Variable
from isthmus.statistics.blocks import Block, Positions, count_set, planned_sets

if TYPE_CHECKING:
    import narwhals as nw

HEAD = 10_000
"""Number of rows at the top of the table from which the cost of a query is estimated."""

SMALL = 2**22
"""A joint table of at most this many distinct rows is fetched at once."""


@final
class Lazy(Source):
    """A table of an engine. The engine computes the statistics; rows stay where they are.

    Results are cached, so that the engine computes nothing twice. Any column names work: the engine
    is asked for columns by position.

    Parameters
    ----------
    table
        A Polars lazy frame, a DuckDB relation, a PySpark dataframe or an Ibis table.
    kinds
        How to read some columns. By default floats are continuous; text, categories and Booleans
        are discrete; integers are discrete when they have at most 20 distinct values that repeat,
        or lie within ten of each other.
    integers
        How to read integers that ``kinds`` does not name, whatever their number of values.
    schema
        What the columns are, where that is known beforehand. It also selects the columns and
        their order, and saves the query for the levels.
    """

    def __init__(
        self,
        table: object,
        *,
        kinds: Mapping[str, Kind | str] | None = None,
        integers: Kind | str | None = None,
        schema: Schema | None = None,
    ) -> None:
        import narwhals as nw

        check_choice(kinds, schema)
        frame = as_narwhals(table)
        if not isinstance(frame, nw.LazyFrame):
            raise DataError(
                f"A {type(table).__name__} is not a table of an engine. Give tables in memory to "
                "Frame; Lazy takes a Polars lazy frame, a DuckDB relation, a PySpark dataframe "
                "or an Ibis table."
            )
        names = check_names(_names(frame))
        self._engine = engine_of(frame, names)
        self._frame: nw.LazyFrame[Any] = nw.from_native(self._engine.table)
        self._columns = dict(zip(names, plain_names(names), strict=True))
        self._kinds = check_kinds(kinds, names)
        self._integers = None if integers is None else as_kind(integers, "integers")
        self._schema = schema
        self._moments: Moments | None = None
        self._groups: list[Grouped] = []
        self._small: dict[tuple[str, ...], bool] = {}
        self._releases: list[Release] = []

    @cached_property
    def _cells(self) -> dict[str, CellType]:
        """What the cells of each column are; no data are read for this."""
        types = self._frame.collect_schema()
        names = tuple(self._columns) if self._schema is None else self._schema.names
        lacking = [n for n in names if n not in self._columns]
        if lacking or not names:
            raise SchemaError(
                f"The table lacks the columns {lacking} of the schema. "
                f"It has: {list(self._columns)[:20]}."
            )
        cells = {n: cell_type_of(n, types[self._columns[n]]) for n in names}
        for name, own in cells.items():
            if own is CellType.EMPTY:
                raise refused_type(name, str(types[self._columns[name]]), temporal=False)
        return cells

    def schema(self) -> Schema:
        """Names, kinds and levels of the variables.

        Continuous columns are known from their types. Levels need one pass over the discrete ones,
        which gives their counts as well where the joint table is small.
        """
        cells = self._cells
        if self._schema is None:
            self._schema = self._inferred()
        for v in self._schema.variables:
            chosen_kind(v.name, cells[v.name], v.kind, few=False)
        return self._schema

    def _inferred(self) -> Schema:
        cells = self._cells
        given = self._kinds
        integers = {n for n, own in cells.items() if own is CellType.INTEGER}
        if self._integers is not None:
            given = dict.fromkeys(integers, self._integers) | given
        uncertain = integers - given.keys()
        kinds = {
            n: chosen_kind(n, own, given.get(n), few=n in uncertain and self._in_head[n] <= FEW)
            for n, own in cells.items()
        }
        discrete = [n for n, k in kinds.items() if k is Kind.DISCRETE]
        if discrete:
            self._find_levels(discrete, uncertain)
        levels = {n: own for g in self._groups for n, own in g.levels.items()}
        return Schema(
            tuple(
                Variable(n, Kind.DISCRETE, levels[n])
                if n in levels
                else Variable(n, Kind.CONTINUOUS)
                for n in cells
            )
        )

    def _find_levels(self, names: list[str], uncertain: set[str]) -> None:
        """Group by all discrete columns at once, or by a few at a time where that is too large."""
        if self._is_small(names):
            self._group(names, uncertain)
            return
        sizes = np.array([max(self._in_head[n], 1) for n in names], dtype=np.int64)
        for members, _ in pack([(i,) for i in range(len(names))], sizes):
            self._group([names[i] for i in members], uncertain)

    @cached_property
    def _in_head(self) -> dict[str, int]:
        """Distinct values of each column that may be discrete, in the first rows."""
        names = [
            n
            for n, own in self._cells.items()
            if own is not CellType.FLOAT or self._kinds.get(n) is Kind.DISCRETE
        ]
        if not names:
            return {}
        distinct = self._engine.distinct([self._columns[n] for n in names], HEAD)
        self._release(f"number of distinct values of {len(names)} columns, first rows", len(names))
        return dict(zip(names, distinct, strict=True))

    def _is_small(self, names: Sequence[str]) -> bool:
        """Whether the joint table of these columns has few distinct rows, as far as can be told."""
        if any(set(names) <= g.levels.keys() for g in self._groups):
            return True
        if self._schema is not None:
            cells = math.prod(len(self._schema[n].levels) for n in names)
        else:
            cells = math.prod(max(self._in_head[n], 1) for n in names)
        if cells <= SMALL:
            return True
        key = tuple(names)
        if key not in self._small:
            self._small[key] = self._looks_small(key)
        return self._small[key]

    def _looks_small(self, names: Sequence[str]) -> bool:
        """Estimate from the first rows, and then from the number of rows."""
        import narwhals as nw

        columns = [self._columns[n] for n in names]
        groups = self._frame.head(HEAD).group_by(*columns).agg(nw.len().alias(NUMBER))
        sizes = groups.select(
            nw.len().cast(nw.Int64).alias("groups"), nw.col(NUMBER).sum().alias("rows")
        ).collect()
        self._release("number of distinct rows among the first rows", 2)
        different, rows = (int(sizes.get_column(c).to_list()[0] or 0) for c in ("groups", "rows"))
        # Among m draws from D equal cells about m²/2D meet one drawn before.
        if rows < HEAD or rows * rows / (2 * max(rows - different, 0.5)) <= SMALL:
            return True
        total = self._frame.select(nw.len().cast(nw.Int64).alias("rows")).collect()
        self._release("number of rows", 1)
        return int(total.get_column("rows").to_list()[0]) <= SMALL

    def _group(self, names: Sequence[str], uncertain: set[str] | None = None) -> Grouped:
        levels = {} if self._schema is None else {n: self._schema[n].levels for n in names}
        columns = {n: self._columns[n] for n in names}
        grouped = group(self._frame, columns, levels=levels, uncertain=uncertain or set())
        self._groups.append(grouped)
        rows = grouped.rows.codes.shape[1]
        self._release(f"counts of {rows} distinct rows of {len(names)} variables", grouped.size)
        return grouped

    def _joint(self, names: Sequence[str]) -> CodedRows:
        """Distinct rows of these variables, from earlier results if possible."""
        for grouped in self._groups:
            if set(names) <= grouped.levels.keys():
                return grouped.take(names)
        return self._group(names).take(names)

    def moments(self, names: Sequence[str] | None = None) -> Moments:
        """Moments of these variables, in the order asked; of all if not given."""
        schema = self.schema()
        if self._moments is not None:
            return self._moments if names is None else self._moments.select(names)
        wanted = schema if names is None else schema.subset(names)
        if not wanted.of_kind(Kind.CONTINUOUS) and self._is_small(wanted.names):
            rows = self._joint(wanted.names)
            moments = Moments.from_columns(wanted, list(rows.codes), weights=rows.weights)
        else:
            computed = self._engine.moments(wanted, [self._columns[n] for n in wanted.names])
            self._release(computed.what, computed.size)
            moments = computed.moments
        if names is None:
            self._moments = moments
        return moments

    def moments_of(self, schema: Schema) -> Moments:
        """Moments of these variables with their basis functions, by an engine that streams."""
        computed = self._engine.moments(schema, [self._columns[n] for n in schema.names])
        self._release(computed.what, computed.size)
        return computed.moments

    def counts(self, plan: Plan) -> Counts:
        """Counts over the planned sets of discrete variables."""
        schema = countable(self.schema(), plan)
        if plan.is_everything or self._is_small(schema.names):
            return Counts.from_rows(schema, self._joint(schema.names), plan=plan)
        sizes = schema.cardinalities
        held: dict[Positions, Block] = {}
        n = 0
        for members, wanted in pack(planned_sets(schema, plan), sizes):
            rows = self._joint([schema.names[i] for i in members])
            n = rows.n
            for positions in wanted:
                places = tuple(members.index(i) for i in positions)
                held[positions] = count_set(rows, places, sizes[list(members)])
        return Counts(schema, n, plan, held)

    def rows(self) -> NDArray[np.float64]:
        """Not at hand."""
        raise MismatchError(
            f"The rows are with {self._engine.site}; only statistics come over. Choose a score "
            "that needs moments or counts, or collect the table and give that."
        )

    def fetch(self, names: Sequence[str]) -> dict[str, nw.Series[Any]]:
        """Fetch columns by one query into memory."""
        table = self._frame.select(*(self._columns[n] for n in names)).collect()
        return {n: table.get_column(self._columns[n]) for n in names}

    def with_features(self, expansion: Expansion) -> LazyFeatures:
        """The same table, with basis functions that the engine computes, or this process."""
        import narwhals as nw

        schema = expansion.widen(self.schema())
        if self._engine.streams:
            return LazyFeatures(self, None, schema)
        prefix = "isthmus_"
        while any(name.startswith(prefix) for name in schema.names):
            prefix += "_"
        wanted: list[nw.Expr] = []
        names: list[str] = []
        for i, v in enumerate(schema.variables):
            assert v.features is not None
            column = nw.col(self._columns[v.name])
            functions = v.features.expressions(column.cast(nw.Float64))
            wanted += [column, *functions]
            names += [v.name, *(f"{prefix}{i}_{k}" for k in range(1, v.width))]
        renamed = [e.alias(name) for e, name in zip(wanted, names, strict=True)]
        wide = Lazy(self._frame.select(*renamed).to_native(), schema=Schema.continuous(names))
        return LazyFeatures(self, wide, schema)

    def disclosure(self) -> Disclosure:
        """What the engine has sent so far."""
        return Disclosure(tuple(self._releases))

    def _release(self, what: str, size: int) -> None:
        self._releases.append(Release(self._engine.site, what, "plain", size))

    def __repr__(self) -> str:
        return f"Lazy({self._engine.site})"


def _names(frame: nw.LazyFrame[Any]) -> Sequence[str]:
    """Names of the columns, repeated ones included: a narwhals schema would drop those."""
    if frame.implementation.is_polars():
        with repeated_names_refused():
            return frame.collect_schema().names()
    return list(frame.to_native().columns)


@final
class LazyFeatures(Source):
    """A table of an engine with basis functions of its variables.

    Parameters
    ----------
    table
        The table itself.
    wide
        The table with one column per value and basis function, in the order of `schema`; None if
        the functions are computed from batches of the table.
    schema
        The variables, with their basis functions.
    """

    def __init__(self, table: Lazy, wide: Lazy | None, schema: Schema) -> None:
        self._table, self._wide, self._schema = table, wide, schema
        self._moments: Moments | None = None

    def schema(self) -> Schema:
        """The variables, with their basis functions."""
        return self._schema

    def moments(self, names: Sequence[str] | None = None) -> Moments:
        """Moments of these variables, with their basis functions; of all if not given."""
        asked = self._schema if names is None else self._schema.subset(names)
        if self._moments is not None:
            return self._moments if names is None else self._moments.select(names)
        if self._wide is None:
            streamed = self._table.moments_of(asked)
            if names is None:
                self._moments = streamed
            return streamed
        columns = self._wide.schema().names
        blocks = [self._schema.blocks[i] for i in self._schema.indices(asked.names)]
        flat = [name for start, stop in blocks for name in columns[start:stop]]
        found = self._wide.moments(None if tuple(flat) == columns else flat)
        return replace(found, schema=asked)

    def counts(self, plan: Plan) -> Counts:
        """Raise an error: continuous variables have no counts."""
        return self._table.counts(plan)

    def rows(self) -> NDArray[np.float64]:
        """Raise an error: the rows stay with the engine."""
        return self._table.rows()

    def with_features(self, expansion: Expansion) -> Source:
        """Raise an error: the variables have basis functions."""
        expansion.widen(self._schema)
        return self

    def disclosure(self) -> Disclosure:
        """What the engine sent for the table itself, and for the basis functions."""
        own = self._table.disclosure()
        return own if self._wide is None else own + self._wide.disclosure()

    def __repr__(self) -> str:
        return f"{self._table!r} with basis functions"


def is_lazy(data: object) -> bool:
    """Whether this is a table of an engine."""
    import narwhals as nw

    return isinstance(as_narwhals(data), nw.LazyFrame)


def engine_of(frame: nw.LazyFrame[Any], names: Sequence[str]) -> Engine:
    """The adapter for the engine behind a table, with its columns renamed to c0, c1 and so on."""
    native, kind = frame.to_native(), frame.implementation
    if kind.is_duckdb():
        from isthmus.sources.tables.engines.duckdb import DuckDBEngine

        return DuckDBEngine.renamed(native, names)
    if kind.is_polars():
        from isthmus.sources.tables.engines.polars import PolarsEngine

        return PolarsEngine.renamed(native, names)
    if kind.is_pyspark() or kind.is_pyspark_connect():
        from isthmus.sources.tables.engines.spark import SparkEngine

        return SparkEngine.renamed(native, names)
    if kind.is_ibis():
        from isthmus.sources.tables.engines.ibis import IbisEngine

        return IbisEngine.renamed(native, names)
    raise DataError(
        f"Tables of {kind} are not supported. Give a Polars lazy frame, a DuckDB relation, "
        "a PySpark dataframe or an Ibis table, or collect the table first."
    )
