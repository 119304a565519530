"""Tables of an engine with basis functions of their variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from isthmus.results.disclosure import Disclosure
from isthmus.sources.base import Source
from isthmus.statistics import CountPlan, Counts, Expansion, Kind, Moments, Schema

if TYPE_CHECKING:
    import narwhals as nw


def feature_columns(schema: Schema, columns: Mapping[str, str]) -> dict[str, nw.Expr]:
    """Return an expression per column of the variables; values keep their names, others get some.

    Parameters
    ----------
    schema
        The variables. Continuous ones have a value and their basis functions, discrete ones an
        indicator per level but the first.
    columns
        The column of each variable.
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
    table
        The table itself.
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
