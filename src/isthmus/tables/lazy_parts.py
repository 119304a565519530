"""Tables of an engine with basis functions of their variables."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import MissingValuesError
from isthmus.results.reading import ColumnReading, Disclosure
from isthmus.statistics import CountPlan, Counts, Expansion, Kind, Moments, Schema
from isthmus.statistics.incomplete import IncompleteCounts
from isthmus.tables.base import Source
from isthmus.tables.engines.base import Engine, plain_names
from isthmus.tables.grouping import Grouped
from isthmus.tables.missing import (
    LEFT_TO_SCORES,
    Missing,
    moments_are_estimated,
    refuse_all_discrete,
    require_discrete,
)

if TYPE_CHECKING:
    import narwhals as nw


def feature_columns(schema: Schema, columns: Mapping[str, str]) -> dict[str, nw.Expr]:
    """Return an expression per column of the variables; values keep their names, others get some.

    Parameters
    ----------
    schema
        The variables. Continuous ones have a value and their basis functions, discrete ones an
        indicator per level but the first.
    """
    import narwhals as nw

    prefix = "isthmus_"
    while any(name.startswith(prefix) for name in schema.names):
        prefix += "_"
    wanted: dict[str, nw.Expr] = {}
    numbers = schema.of_kind(Kind.CONTINUOUS)
    values = {name: nw.col(columns[name]).cast(nw.Float64) for name in numbers}
    for i, v in enumerate(schema.variables):
        names = [f"{prefix}{i}_{k}" for k in range(v.width)]
        column = nw.col(columns[v.name])
        if v.kind is Kind.DISCRETE:
            indicators = (nw.when(column == level).then(1).otherwise(0) for level in v.levels[1:])
            own = [indicator.cast(nw.Float64) for indicator in indicators]
        else:
            names[0] = v.name
            functions = () if v.features is None else v.features.expressions(values[v.name], values)
            own = [column, *functions]
        wanted |= dict(zip(names, own, strict=True))
    return wanted


@final
class LazyFeatures(Source):
    """A table of an engine with basis functions of its variables.

    Parameters
    ----------
    streamed
        Computes moments of variables with basis functions from batches of the table.
    wide
        The table with one column per value and basis function, in the order of `schema`; None if
        the functions are computed from batches of the table.
    schema
        The variables, with their basis functions.
    """

    def __init__(
        self,
        table: Source,
        streamed: Callable[[Schema], Moments],
        wide: Source | None,
        schema: Schema,
    ) -> None:
        self._table, self._wide, self._schema = table, wide, schema
        self._streamed = streamed
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
            streamed = self._streamed(asked)
            if names is None:
                self._moments = streamed
            return streamed
        columns = self._wide.schema().names
        blocks = [self._schema.blocks[i] for i in self._schema.indices(asked.names)]
        flat = [name for start, stop in blocks for name in columns[start:stop]]
        found = self._wide.moments(None if tuple(flat) == columns else flat)
        return replace(found, schema=asked)

    def counts(self, plan: CountPlan) -> Counts:
        return self._table.counts(plan)

    def rows(self) -> NDArray[np.float64]:
        return self._table.rows()

    def with_features(self, expansion: Expansion) -> Source:
        expansion.widen(self._schema)
        return self

    def disclosure(self) -> Disclosure:
        """Data that the engine sent for the table itself, and for the basis functions."""
        own = self._table.disclosure()
        return own if self._wide is None else own + self._wide.disclosure()

    def __repr__(self) -> str:
        return f"{self._table!r} with basis functions"


# --- Missing values of tables that stay with an engine: estimated moments, and counted rows -----


@final
class LazyEstimation:
    """Estimates moments from the sums of one pass over a table.

    Parameters
    ----------
    release
        Records what the engine sends.
    """

    def __init__(self, missing: Missing, release: Callable[[str, int], None]) -> None:
        self._missing = missing
        self._release = release
        self.until = math.inf
        self.remarks: tuple[str, ...] = ()

    def moments(
        self, engine: Engine, schema: Schema, columns: Sequence[str], *, holes: bool
    ) -> Moments:
        """Moments of complete rows as they are, or estimated from incomplete ones.

        Parameters
        ----------
        holes
            Whether values are known to be missing, which saves the pass for complete rows.
        """
        if not holes:
            try:
                computed = engine.moments(schema, columns)
            except MissingValuesError:
                pass
            else:
                self._release(computed.what, computed.size)
                return computed.moments
        wide = schema
        if schema.of_kind(Kind.DISCRETE):
            engine, columns = _with_indicators(engine, schema, columns)
            printed = schema.column_names
            wide = Schema.continuous(printed if len(set(printed)) == len(printed) else columns)
        summed = engine.patterns(wide, columns)
        self._release(summed.what, summed.size)
        patterns = replace(summed.patterns, schema=schema)
        estimated = self._missing.moments(patterns, self.until)
        lost, cells = int(patterns.missing.sum()), patterns.n * len(schema)
        remark = moments_are_estimated(lost, cells)
        self.remarks = (remark, *estimated.remarks())
        return estimated.moments


def _with_indicators(
    engine: Engine, schema: Schema, columns: Sequence[str]
) -> tuple[Engine, list[str]]:
    """A table with a column per value and level, in the order of `Schema.columns`."""
    import narwhals as nw

    table = nw.from_native(engine.table)
    types, wanted = table.collect_schema(), []
    for variable, name in zip(schema.variables, columns, strict=True):
        column = nw.col(name)
        if variable.kind is Kind.CONTINUOUS:
            wanted.append(column)
            continue
        present = ~column.is_null()
        if types[name].is_float():
            present &= ~column.is_nan()
        for level in variable.levels[1:]:
            indicator = nw.when(column == level).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
            wanted.append(nw.when(present).then(indicator))
    names = plain_names(schema.column_names)
    aliased = [column.alias(name) for column, name in zip(wanted, names, strict=True)]
    return engine.of_table(table.select(*aliased).to_native()), names


def incomplete_counts(schema: Schema, groups: Sequence[Grouped]) -> IncompleteCounts:
    """The distinct rows of all variables and how often they occur."""
    grouped = next(g for g in groups if set(schema.names) <= g.levels.keys())
    place = [list(grouped.levels).index(n) for n in schema.names]
    codes = grouped.rows.codes[place].astype(np.uint16)
    if grouped.absent is not None:
        sizes = schema.cardinalities[:, None].astype(np.uint16)
        codes = np.where(grouped.absent[place], sizes, codes)
    return IncompleteCounts(schema, codes, grouped.rows.filled())


def incomplete_remarks(
    missing: Missing | None, groups: Sequence[Grouped], readings: Mapping[str, ColumnReading]
) -> tuple[str, ...]:
    """Return a note on missing values that are left to the score; refuse what it cannot treat."""
    if missing is None:
        return ()
    numbers = [n for n, r in readings.items() if r.used and not any(n in g.levels for g in groups)]
    if missing.left_to_score:
        require_discrete(numbers, missing)
    if numbers or not any(grouped.absent is not None for grouped in groups):
        return ()
    if not missing.left_to_score:
        raise refuse_all_discrete(missing)
    for grouped in groups:
        if grouped.absent is not None:
            lost = int((grouped.absent * grouped.rows.filled()).sum())
            cells = grouped.rows.n * len(grouped.levels)
            what = LEFT_TO_SCORES[type(missing)]
            return (f"{lost:,} of {cells:,} values are missing; {what}.",)
    return ()


def refuse_incomplete(missing: Missing | None, groups: Sequence[Grouped]) -> None:
    """Refuse counts of rows with missing values."""
    if any(grouped.absent is not None for grouped in groups):
        raise MissingValuesError(
            f"Values are missing, and {missing!r} leaves them to the score. Learn with BIC(), "
            "AIC() or EBIC(), or use DropRows()."
        )
