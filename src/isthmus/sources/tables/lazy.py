"""Tables of an engine: Polars lazy frames, DuckDB, Spark, databases through Ibis."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError, MismatchError, SchemaError
from isthmus.results.disclosure import Disclosure, Release
from isthmus.sources.base import Source, countable
from isthmus.sources.tables.engines.base import Engine
from isthmus.sources.tables.grouping import Grouped, group, pack
from isthmus.sources.tables.kinds import (
    FEW,
    Shape,
    check_choice,
    check_kinds,
    chosen_kind,
    refused_type,
    shape_of,
)
from isthmus.statistics import CodedRows, Counts, Kind, Moments, Plan, Schema, Variable
from isthmus.statistics.blocks import Block, Positions, count_set, planned_sets

if TYPE_CHECKING:
    import narwhals as nw

HEAD = 10_000
"""Rows at the top of the table from which it is guessed what a query will cost."""

SMALL = 2**22
"""A joint table of so many distinct rows is fetched at once."""


@final
class Lazy(Source):
    """A table of an engine. The engine computes; only statistics come over.

    What has been computed is kept, so nothing is asked of the engine twice.

    Parameters
    ----------
    table
        A Polars lazy frame, a DuckDB relation, a PySpark dataframe or an Ibis table.
    kinds
        How to read some columns. By default floats are continuous; text, categories and booleans
        are discrete; integers are discrete when they have at most 20 distinct values.
    integers
        How to read integers that ``kinds`` does not name, whatever their number of values.
    schema
        What the columns are, where that is known beforehand. It also chooses the columns and
        their order, and saves the query for the levels.
    """

    def __init__(
        self,
        table: object,
        *,
        kinds: Mapping[str, Kind] | None = None,
        integers: Kind | None = None,
        schema: Schema | None = None,
    ) -> None:
        import narwhals as nw

        check_choice(kinds, schema)
        frame: Any = nw.from_native(table, pass_through=True)
        if not isinstance(frame, nw.LazyFrame):
            raise DataError(
                f"A {type(table).__name__} is not a table of an engine. Give tables in memory to "
                "Frame; Lazy takes a Polars lazy frame, a DuckDB relation, a PySpark dataframe "
                "or an Ibis table."
            )
        self._frame: nw.LazyFrame[Any] = frame
        self._engine = engine_of(frame)
        self._kinds = kinds
        self._integers = integers
        self._schema = schema
        self._moments: Moments | None = None
        self._groups: list[Grouped] = []
        self._small: dict[tuple[str, ...], bool] = {}
        self._releases: list[Release] = []

    @cached_property
    def _shapes(self) -> dict[str, Shape]:
        """What the cells of each column are; no data are read for this."""
        types = self._frame.collect_schema()
        names = tuple(types) if self._schema is None else self._schema.names
        lacking = [n for n in names if n not in types]
        if lacking or not names:
            raise SchemaError(
                f"The table lacks the columns {lacking} of the schema. It has: {list(types)[:20]}."
            )
        found = {n: shape_of(n, types[n]) for n in names}
        for name, shape in found.items():
            if shape is Shape.EMPTY:
                raise refused_type(name, str(types[name]), temporal=False)
        return found

    def schema(self) -> Schema:
        """Names, kinds and levels of the variables.

        Continuous columns are known from their types. Levels need one pass over the discrete ones,
        which gives their counts as well where the joint table is small.
        """
        shapes = self._shapes
        if self._schema is None:
            self._schema = self._inferred()
        for v in self._schema.variables:
            chosen_kind(v.name, shapes[v.name], v.kind, few=False)
        return self._schema

    def _inferred(self) -> Schema:
        shapes = self._shapes
        given = check_kinds(self._kinds, shapes)
        if self._integers is not None:
            whole = {n: self._integers for n, s in shapes.items() if s is Shape.WHOLE}
            given = whole | given
        open_ = {n for n, s in shapes.items() if s is Shape.WHOLE and n not in given}
        kinds = {
            n: chosen_kind(n, s, given.get(n), few=n in open_ and self._in_head[n] <= FEW)
            for n, s in shapes.items()
        }
        discrete = [n for n, k in kinds.items() if k is Kind.DISCRETE]
        if discrete:
            self._find_levels(discrete, open_)
        levels = {n: known for g in self._groups for n, known in g.levels.items()}
        return Schema(
            tuple(
                Variable(n, Kind.DISCRETE, levels[n])
                if n in levels
                else Variable(n, Kind.CONTINUOUS)
                for n in shapes
            )
        )

    def _find_levels(self, names: list[str], uncertain: set[str]) -> None:
        """Group by all discrete columns at once, or by a few at a time where that is too much."""
        if self._is_small(names):
            self._group(names, uncertain)
            return
        sizes = np.array([max(self._in_head[n], 1) for n in names], dtype=np.int64)
        for members, _ in pack([(i,) for i in range(len(names))], sizes):
            self._group([names[i] for i in members], uncertain)

    @cached_property
    def _in_head(self) -> dict[str, int]:
        """Distinct values of each column that may be discrete, in the first rows."""
        given = self._kinds or {}
        names = [
            n
            for n, s in self._shapes.items()
            if s is not Shape.REAL or given.get(n) is Kind.DISCRETE
        ]
        if not names:
            return {}
        found = self._engine.distinct(names, HEAD)
        self._release(f"number of distinct values of {len(names)} columns, first rows", len(names))
        return dict(zip(names, found, strict=True))

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
        """Judge by the first rows, and then by the number of rows."""
        import narwhals as nw

        number = "isthmus_n"
        while number in names:
            number += "_"
        groups = self._frame.head(HEAD).group_by(*names).agg(nw.len().alias(number))
        found = groups.select(
            nw.len().cast(nw.Int64).alias("groups"), nw.col(number).sum().alias("rows")
        ).collect()
        self._release("number of distinct rows among the first rows", 2)
        different, rows = (int(found.get_column(c).to_list()[0] or 0) for c in ("groups", "rows"))
        # Among m draws from D equal cells about m²/2D meet one drawn before.
        if rows < HEAD or rows * rows / (2 * max(rows - different, 0.5)) <= SMALL:
            return True
        found = self._frame.select(nw.len().cast(nw.Int64).alias("rows")).collect()
        self._release("number of rows", 1)
        return int(found.get_column("rows").to_list()[0]) <= SMALL

    def _group(self, names: Sequence[str], uncertain: set[str] | None = None) -> Grouped:
        known = {} if self._schema is None else {n: self._schema[n].levels for n in names}
        found = group(self._frame, names, levels=known, uncertain=uncertain or set())
        self._groups.append(found)
        rows = found.rows.codes.shape[1]
        self._release(f"counts of {rows} distinct rows of {len(names)} variables", found.size)
        return found

    def _joint(self, names: Sequence[str]) -> CodedRows:
        """Distinct rows of these variables, from what is at hand if possible."""
        for held in self._groups:
            if set(names) <= held.levels.keys():
                return held.take(names)
        return self._group(names).take(names)

    def moments(self, names: Sequence[str] | None = None) -> Moments:
        """Moments of these variables, in the order asked; of all if not given."""
        schema = self.schema()
        if self._moments is not None:
            return self._moments if names is None else self._moments.select(names)
        wanted = schema if names is None else schema.subset(names)
        if not wanted.of_kind(Kind.CONTINUOUS) and self._is_small(wanted.names):
            rows = self._joint(wanted.names)
            found = Moments.from_columns(wanted, list(rows.codes), weights=rows.weights)
        else:
            computed = self._engine.moments(wanted)
            self._release(computed.what, computed.size)
            found = computed.moments
        if names is None:
            self._moments = found
        return found

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

    def derive(self, columns: Sequence[Any], schema: Schema) -> Lazy:
        """The same table with more columns, which the engine computes.

        Parameters
        ----------
        columns
            Narwhals expressions with names.
        schema
            Of the new table.
        """
        return Lazy(self._frame.with_columns(*columns).to_native(), schema=schema)

    def disclosure(self) -> Disclosure:
        """What came over from the engine so far."""
        return Disclosure(tuple(self._releases))

    def _release(self, what: str, size: int) -> None:
        self._releases.append(Release(self._engine.site, what, "plain", size))

    def __repr__(self) -> str:
        return f"Lazy({self._engine.site})"


def is_lazy(data: object) -> bool:
    """Whether this is a table of an engine."""
    import narwhals as nw

    return isinstance(nw.from_native(data, pass_through=True), nw.LazyFrame)


def engine_of(frame: nw.LazyFrame[Any]) -> Engine:
    """The adapter for the engine behind a table."""
    native, kind = frame.to_native(), frame.implementation
    if kind.is_duckdb():
        from isthmus.sources.tables.engines.duckdb import DuckDBEngine

        return DuckDBEngine(native)
    if kind.is_polars():
        from isthmus.sources.tables.engines.polars import PolarsEngine

        return PolarsEngine(native)
    if kind.is_pyspark() or kind.is_pyspark_connect():
        from isthmus.sources.tables.engines.spark import SparkEngine

        return SparkEngine(native)
    if kind.is_ibis():
        from isthmus.sources.tables.engines.ibis import IbisEngine

        return IbisEngine(native)
    raise DataError(
        f"Tables of {kind} are not supported. Give a Polars lazy frame, a DuckDB relation, "
        "a PySpark dataframe or an Ibis table, or collect the table first."
    )
