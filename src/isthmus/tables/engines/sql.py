"""Sums and products as SQL, for databases behind Ibis: they do not send rows."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError
from isthmus.statistics import Kind, Level, Moments, Schema
from isthmus.statistics.base import (
    OVERFLOW,
    refuse_empty,
    refuse_infinite,
    refuse_missing,
    refuse_underflow,
)
from isthmus.statistics.tally import LARGEST, PatternBuilder, PatternRows
from isthmus.tables.engines.base import Computed, SummedPatterns, unknown_level, usable_methods

CHUNK = 1_600
"""Expressions in one query: PostgreSQL gives at most 1,664 columns back."""

TILE = 40
"""Products are requested by tiles of this many columns, so that a query reads few of them."""

SAMPLE = 10_000

CHANGED = "The table changed while it was read. Try again."


def expressions(schema: Schema) -> int:
    """Number of sums that the moments of these variables need."""
    p = schema.width
    return p * (p + 1) // 2 + p + len(schema)


def is_nan(cells: Any) -> Any:
    """A test of an Ibis column; databases without such a test have no NaN."""
    from ibis.expr.operations import IsNan

    return cells.isnan() if cells.get_backend().has_operation(IsNan) else cells != cells


def _is_infinite(cells: Any) -> Any:
    from ibis.expr.operations import IsInf

    has_test = cells.get_backend().has_operation(IsInf)
    return cells.isinf() if has_test else cells.abs() > sys.float_info.max


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

    def ask(
        self,
        chosen: Sequence[str],
        *,
        limit: int | None = None,
        among: Mapping[str, str] | None = None,
    ) -> NDArray[np.float64]:
        """Return one row of numbers.

        Parameters
        ----------
        chosen
            Aggregates of columns of the table, or of those in `among`.
        limit
            Number of rows at the top of the table to look at; None for all.
        among
            Columns computed from those of the table. Short aggregates of them keep the query
            short, which Ibis and the database have to parse.
        """
        if len(chosen) > CHUNK + 1:
            head = self.ask(chosen[:CHUNK], limit=limit, among=among)
            rest = self.ask(chosen[CHUNK:], limit=limit, among=among)
            return np.concatenate([head, rest])
        tail = "" if limit is None else f" LIMIT {limit}"
        rows = f"(SELECT {_listed(among or {'': '*'})} FROM {self._rows}{tail}) AS isthmus_table"
        answer = self._query(chosen, f"FROM {rows}")
        return np.array([_number(column[0]) for column in answer.columns])

    def ask_by(
        self, text: str, chosen: Sequence[str], among: Mapping[str, str]
    ) -> tuple[list[str], NDArray[np.float64]]:
        """Return the different values of a text, and a row of numbers for each of them."""
        rows = f"(SELECT {_listed({**among, 'isthmus_text': text})} FROM {self._rows})"
        tail = f"FROM {rows} AS isthmus_table GROUP BY isthmus_text ORDER BY isthmus_text"
        answer = self._query(chosen, tail, {"isthmus_group": "isthmus_text"})
        numbers = [[_number(cell) for cell in column] for column in answer.columns[1:]]
        return answer.column(0).to_pylist(), np.array(numbers).T

    @property
    def _rows(self) -> str:
        return f"({self._text}) AS isthmus_rows"

    def _query(
        self, chosen: Sequence[str], tail: str, texts: Mapping[str, str] | None = None
    ) -> Any:
        """Run a query for columns of text and then for numbers, as an Arrow table."""
        import ibis

        numbers = {f"c{i}": text for i, text in enumerate(chosen)}
        types = dict.fromkeys(texts or {}, "string") | dict.fromkeys(numbers, "float64")
        query = f"SELECT {_listed({**(texts or {}), **numbers})} {tail}"
        with _overflow_refused(self._backend.name):
            table = self._backend.sql(query, schema=ibis.schema(types))
            return self._backend.to_pyarrow(table)


def _listed(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{text} AS {name}" if name else text for name, text in columns.items())


def _number(cell: Any) -> float:
    value = cell.as_py()
    return np.nan if value is None else float(value)


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
    cells = {f"v{k}": writer.column(n) for k, n in enumerate(schema.names)}
    i, j = _tiled(len(z))
    among = cells | {f"z{k}": text for k, text in enumerate(z)}
    wanted = [(f"COUNT({cell})", (cell,)) for cell in cells] + _sums(len(z), i, j)
    answers, sizes = [], set()
    for start in range(0, len(wanted), CHUNK):
        part = wanted[start : start + CHUNK]
        used = {name: among[name] for _, names in part for name in names}
        answer = writer.ask(["COUNT(*)", *(text for text, _ in part)], among=used)
        sizes.add(int(answer[0]))
        answers.append(answer[1:])
    if len(sizes) > 1:
        raise DataError(CHANGED)
    n = sizes.pop()
    refuse_empty(n)
    found = np.concatenate(answers)
    d, p = len(schema), len(z)
    seen = dict(zip(schema.names, found[:d].astype(np.int64).tolist(), strict=True))
    missing = {name: n - number for name, number in seen.items()}
    if not np.isfinite(found[d:]).all():
        odd = _count_odd(table, schema, columns)
        missing = {name: number + odd[name][0] for name, number in missing.items()}
        refuse_missing(missing, n, usable_methods(schema))
        refuse_infinite({name: infinite for name, (_, infinite) in odd.items()})
        raise DataError(OVERFLOW)
    refuse_missing(missing, n, usable_methods(schema))
    _refuse_unknown(writer, schema)
    gram = np.zeros((p, p))
    gram[i, j] = gram[j, i] = found[d + p :]
    refuse_underflow(schema.column_names, found[d : d + p] != 0.0, gram.diagonal())
    moments = Moments(schema, n, shift, found[d : d + p], gram)
    there = Computed.there(moments)
    return Computed(moments, there.what, there.size + d)


def patterns_by_sql(
    backend: Any, table: Any, schema: Schema, columns: Sequence[str]
) -> SummedPatterns:
    """Sum up rows by which values are missing; one query returns one row per pattern.

    The table must have null for missing values, and not NaN.
    """
    writer = Writer(backend, table, dict(zip(schema.names, columns, strict=True)))
    shift = _shift(writer, schema)
    cells = [writer.column(n) for n in schema.names]
    pattern = " || ".join(f"CASE WHEN {c} IS NULL THEN '0' ELSE '1' END" for c in cells)
    z = [f"COALESCE({text}, {writer.real('0')})" for text in features(writer, schema, shift)]
    i, j = _tiled(len(z))
    among = {f"z{k}": text for k, text in enumerate(z)}
    wanted = _sums(len(z), i, j)
    patterns, numbers = writer.ask_by(pattern, ["COUNT(*)"], {})
    if len(patterns) * len(i) > LARGEST:
        raise DataError(
            f"The rows have {len(patterns):,} different patterns of missing values, and the sums "
            f"of {len(z)} columns for each of them are too large to transfer. Leave out the "
            "columns with the most missing values, use DropRows(), or stream the rows: "
            "Lazy(table, stream_rows=True)."
        )
    answers = [numbers]
    for start in range(0, len(wanted), CHUNK):
        part = wanted[start : start + CHUNK]
        used = {name: among[name] for _, names in part for name in names}
        found, answer = writer.ask_by(pattern, [text for text, _ in part], used)
        if found != patterns:
            raise DataError(CHANGED)
        answers.append(answer)
    numbers = np.concatenate(answers, axis=1)
    refuse_empty(len(patterns))
    if not np.isfinite(numbers).all():
        odd = _count_odd(table, schema, columns)
        refuse_infinite({name: infinite for name, (_, infinite) in odd.items()})
        raise DataError(OVERFLOW)
    builder = PatternBuilder(schema, shift)
    for text, row in zip(patterns, numbers, strict=True):
        there = np.array([c == "1" for c in text])
        whole = np.zeros((len(z) + 1, len(z) + 1))
        whole[0] = whole[:, 0] = row[: len(z) + 1]
        whole[1 + i, 1 + j] = whole[1 + j, 1 + i] = row[len(z) + 1 :]
        kept = np.flatnonzero([True, *there])
        builder.add_sums(there, int(row[0]), _factor(whole[np.ix_(kept, kept)]))
    summed = SummedPatterns.there(PatternRows(*builder.finish()))
    return SummedPatterns(summed.patterns, summed.what, numbers.size)


def _factor(products: NDArray[np.float64]) -> NDArray[np.float64]:
    """A factor F of positive semidefinite products F'F, with zeros for columns of zeros."""
    scale = np.sqrt(products.diagonal())
    unit = np.where(scale > 0.0, scale, 1.0)
    values, vectors = np.linalg.eigh(products / np.outer(unit, unit))
    root = np.sqrt(np.maximum(values, 0.0))
    return np.asarray(root[:, None] * vectors.T * scale)


def _sums(p: int, i: NDArray[np.intp], j: NDArray[np.intp]) -> list[tuple[str, tuple[str, ...]]]:
    """Sums of columns named z0, z1 and so on, then of these products, with the columns of each."""
    sums: list[tuple[str, tuple[str, ...]]] = [(f"SUM(z{k})", (f"z{k}",)) for k in range(p)]
    pairs = zip(i.tolist(), j.tolist(), strict=True)
    return sums + [(f"SUM(z{a} * z{b})", (f"z{a}", f"z{b}")) for a, b in pairs]


def _tiled(p: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Positions of the upper triangle of a matrix, tile by tile."""
    i, j = np.triu_indices(p)
    order = np.lexsort((j, i, j // TILE, i // TILE))
    return i[order], j[order]


def features(writer: Writer, schema: Schema, shift: NDArray[np.float64]) -> list[str]:
    """The feature columns, shifted, as SQL."""
    found = []
    for v, (start, _) in zip(schema.variables, schema.blocks, strict=True):
        name = writer.column(v.name)
        if v.kind is Kind.CONTINUOUS:
            found.append(f"({writer.real(name)} - ({writer.real(repr(float(shift[start])))}))")
        else:
            found += [
                writer.real(f"CASE WHEN {name} = {writer.value(level)} THEN 1 ELSE 0 END")
                for level in v.levels[1:]
            ]
    return found


def _shift(writer: Writer, schema: Schema) -> NDArray[np.float64]:
    shift = np.zeros(schema.width)
    names = schema.of_kind(Kind.CONTINUOUS)
    if names:
        cells = [writer.real(writer.column(n)) for n in names]
        wanted = [
            writer.real(f"{summary}({cell})") for summary in ("AVG", "MIN", "MAX") for cell in cells
        ]
        mean, low, high = writer.ask(wanted, limit=SAMPLE).reshape(3, -1)
        at = [schema.blocks[schema.index(n)][0] for n in names]
        # A mean is rounded: between the extremes, that of a constant is the constant.
        shift[at] = np.where(np.isfinite(mean), np.clip(mean, low, high), 0.0)
    return shift


def _count_odd(table: Any, schema: Schema, columns: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Number of NaN and of infinite values per variable; databases test for them differently."""
    odd = dict.fromkeys(schema.names, (0, 0))
    numbers = [
        (v.name, table[column].cast("float64"))
        for v, column in zip(schema.variables, columns, strict=True)
        if v.kind is Kind.CONTINUOUS
    ]
    for start in range(0, len(numbers), CHUNK // 2):
        part = numbers[start : start + CHUNK // 2]
        tests = [test for _, cells in part for test in (is_nan(cells), _is_infinite(cells))]
        asked = {f"c{i}": test.sum() for i, test in enumerate(tests)}
        answer = table.aggregate(**asked).to_pyarrow()
        counts = [int(column[0].as_py() or 0) for column in answer.columns]
        for (name, _), nan, infinite in zip(part, counts[::2], counts[1::2], strict=True):
            odd[name] = (nan, infinite)
    return odd


def _refuse_unknown(writer: Writer, schema: Schema) -> None:
    discrete = [v for v in schema.variables if v.kind is Kind.DISCRETE]
    if not discrete:
        return
    tests = []
    for v in discrete:
        known = ", ".join(writer.value(level) for level in v.levels)
        test = f"SUM(CASE WHEN {writer.column(v.name)} IN ({known}) THEN 0 ELSE 1 END)"
        tests.append(writer.real(test))
    for v, strange in zip(discrete, writer.ask(tests), strict=True):
        if strange:
            raise unknown_level(v.name, v.levels)
