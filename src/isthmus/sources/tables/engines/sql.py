"""Sums and products as SQL, for databases behind Ibis that should not send rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError
from isthmus.sources.tables.engines.base import Computed, unknown_level, usable_methods
from isthmus.statistics import Kind, Level, Moments, Schema
from isthmus.statistics.checks import (
    OVERFLOW,
    refuse_empty,
    refuse_infinite,
    refuse_missing,
    refuse_underflow,
)

CHUNK = 1_600
"""Expressions in one query: PostgreSQL gives at most 1,664 columns back."""

QUERIES = 4
"""With more scans of the table than this, streaming its rows is faster."""

SAMPLE = 10_000


def expressions(schema: Schema) -> int:
    """Number of sums that the moments of these variables need."""
    p = schema.width
    return p * (p + 1) // 2 + p + len(schema)


class Writer:
    """Writes SQL in the dialect of one database over one table."""

    def __init__(self, backend: Any, table: Any, columns: Mapping[str, str]) -> None:
        self._backend = backend
        self._columns = columns
        self._text = backend.compile(table)
        self._dialect = backend.dialect
        self._cast = self._cast_text()

    def _cast_text(self) -> tuple[str, str]:
        """Return the text before and after a cell that casts it; made once, as it is slow."""
        from sqlglot import expressions as sge

        double = sge.Cast(this=sge.Var(this="isthmus_cell"), to=sge.DataType.build("double"))
        before, _, after = double.sql(self._dialect).partition("isthmus_cell")
        return before, after

    def column(self, name: str) -> str:
        """The quoted column of a variable."""
        import sqlglot as sg

        return str(sg.to_identifier(self._columns[name], quoted=True).sql(self._dialect))

    def real(self, text: str) -> str:
        """A cast to double precision."""
        return text.join(self._cast)

    def value(self, level: Level) -> str:
        """A literal."""
        from sqlglot import expressions as sge

        if isinstance(level, bool):
            return "TRUE" if level else "FALSE"
        if isinstance(level, str):
            return str(sge.Literal.string(level).sql(self._dialect))
        return repr(level)

    def ask(self, chosen: Sequence[str], *, limit: int | None = None) -> NDArray[np.float64]:
        """Return one row of numbers."""
        import ibis

        names = [f"c{i}" for i in range(len(chosen))]
        listed = ", ".join(
            f"{self.real(text)} AS {name}" for text, name in zip(chosen, names, strict=True)
        )
        tail = "" if limit is None else f" LIMIT {limit}"
        inner = f"SELECT * FROM ({self._text}) AS isthmus_rows{tail}"
        query = f"SELECT {listed} FROM ({inner}) AS isthmus_table"
        schema = ibis.schema(dict.fromkeys(names, "float64"))
        with _overflow_refused(self._backend.name):
            table = self._backend.to_pyarrow(self._backend.sql(query, schema=schema))
        row = [column[0].as_py() for column in table.columns]
        return np.array([np.nan if v is None else v for v in row], dtype=np.float64)


@contextmanager
def _overflow_refused(backend: str) -> Iterator[None]:
    """PostgreSQL fails where others give infinity."""
    if backend != "postgres":
        yield
        return
    from psycopg.errors import NumericValueOutOfRange

    try:
        yield
    except NumericValueOutOfRange as error:
        raise DataError(OVERFLOW) from error


def sums_by_sql(backend: Any, table: Any, schema: Schema, columns: Sequence[str]) -> Computed:
    """Moments by queries that return one row each."""
    writer = Writer(backend, table, dict(zip(schema.names, columns, strict=True)))
    shift = _shift(writer, schema)
    z = features(writer, schema, shift)
    wanted = [f"COUNT({writer.column(n)})" for n in schema.names]
    wanted += [f"SUM({a})" for a in z]
    pairs = [(i, j) for i in range(len(z)) for j in range(i, len(z))]
    wanted += [f"SUM({z[i]} * {z[j]})" for i, j in pairs]
    answers, sizes = [], set()
    for start in range(0, len(wanted), CHUNK):
        answer = writer.ask(["COUNT(*)", *wanted[start : start + CHUNK]])
        sizes.add(int(answer[0]))
        answers.append(answer[1:])
    if len(sizes) > 1:
        raise DataError(f"The table changed while it was read: {sorted(sizes)} rows. Try again.")
    n = sizes.pop()
    refuse_empty(n)
    found = np.concatenate(answers)
    d, p = len(schema), len(z)
    seen = dict(zip(schema.names, found[:d].astype(np.int64).tolist(), strict=True))
    _refuse(writer, schema, {k: n - v for k, v in seen.items()}, found[d:], n)
    gram = np.zeros((p, p))
    i, j = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    gram[i, j] = gram[j, i] = found[d + p :]
    refuse_underflow(schema.column_names, found[d : d + p] != 0.0, gram.diagonal())
    moments = Moments(schema, n, shift, found[d : d + p], gram)
    there = Computed.there(moments)
    return Computed(moments, there.what, there.size + d)


def features(writer: Writer, schema: Schema, shift: NDArray[np.float64]) -> list[str]:
    """The feature columns, shifted, as SQL."""
    found = []
    for v, (start, _) in zip(schema.variables, schema.blocks, strict=True):
        name = writer.column(v.name)
        if v.kind is Kind.CONTINUOUS:
            found.append(f"({writer.real(name)} - ({writer.real(repr(float(shift[start])))}))")
        else:
            found += [
                f"(CASE WHEN {name} = {writer.value(level)} THEN 1.0 ELSE 0.0 END)"
                for level in v.levels[1:]
            ]
    return found


def _shift(writer: Writer, schema: Schema) -> NDArray[np.float64]:
    shift = np.zeros(schema.width)
    names = schema.of_kind(Kind.CONTINUOUS)
    if names:
        cells = [writer.real(writer.column(n)) for n in names]
        wanted = [f"{summary}({cell})" for summary in ("AVG", "MIN", "MAX") for cell in cells]
        mean, low, high = writer.ask(wanted, limit=SAMPLE).reshape(3, -1)
        at = [schema.blocks[schema.index(n)][0] for n in names]
        # A mean is rounded: between the extremes, that of a constant is the constant.
        shift[at] = np.where(np.isfinite(mean), np.clip(mean, low, high), 0.0)
    return shift


def _refuse(
    writer: Writer, schema: Schema, missing: dict[str, int], sums: NDArray[np.float64], n: int
) -> None:
    """Refuse nulls, which were counted, and infinite sums, whose reason is counted now."""
    names = schema.of_kind(Kind.CONTINUOUS)
    infinite: dict[str, int] = {}
    finite = bool(np.isfinite(sums).all())
    if not finite and names:
        nan, inf = (writer.real(f"'{text}'") for text in ("NaN", "Infinity"))
        cells = [writer.real(writer.column(name)) for name in names]
        tests = [f"{c} = {nan}" for c in cells]
        tests += [f"({c} = {inf} OR {c} = -{inf})" for c in cells]
        counted = writer.ask([f"SUM(CASE WHEN {t} THEN 1 ELSE 0 END)" for t in tests])
        for i, name in enumerate(names):
            missing[name] += int(np.nan_to_num(counted[i]))
            infinite[name] = int(np.nan_to_num(counted[len(names) + i]))
    refuse_missing(missing, n, usable_methods(schema))
    refuse_infinite(infinite)
    if not finite:
        raise DataError(OVERFLOW)
    _refuse_unknown(writer, schema)


def _refuse_unknown(writer: Writer, schema: Schema) -> None:
    discrete = [v for v in schema.variables if v.kind is Kind.DISCRETE]
    if not discrete:
        return
    tests = []
    for v in discrete:
        known = ", ".join(writer.value(level) for level in v.levels)
        tests.append(f"SUM(CASE WHEN {writer.column(v.name)} IN ({known}) THEN 0 ELSE 1 END)")
    for v, strange in zip(discrete, writer.ask(tests), strict=True):
        if strange:
            raise unknown_level(v.name, v.levels)
