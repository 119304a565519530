"""The variables of several tables that are simulated as sites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from isthmus.errors import MissingValuesError
from isthmus.results.reading import Reading
from isthmus.sources.base import Source
from isthmus.sources.dispatch import as_source
from isthmus.sources.tables.engines.find import is_lazy
from isthmus.sources.tables.frame import Frame
from isthmus.sources.tables.infer_kinds import NUMBERS, stated
from isthmus.sources.tables.missing import Missing
from isthmus.sources.tables.names import as_narwhals
from isthmus.statistics import Kind, Schema
from isthmus.statistics.checks import with_advice
from isthmus.statistics.schema import union_levels


def common_reading(
    tables: Sequence[object],
    kinds: Mapping[str, Kind | str] | None,
    missing: Missing | None,
) -> tuple[Schema, Reading]:
    """Return the variables of all tables together, and how their columns were read.

    Tables in memory are read as one table of all rows is: what that leaves out is left out. Sources
    and tables of an engine keep all columns, and so do tables that cannot be joined.
    """
    whole = _joined(tables)
    try:
        if whole is None:
            schema = _united(tables, kinds, missing)
            return schema, stated(schema)
        frame = Frame(whole, kinds=kinds, missing=missing)
        return frame.schema(), replace(frame.reading(), read_by="Federation.simulate")
    except MissingValuesError as error:
        estimated = "ExpectationMaximisation()" in str(error)  # offered for continuous variables
        methods = "DropRows()" + (" or ExpectationMaximisation()" if estimated else "")
        advice = (
            f"Say what to do: Federation.simulate(..., missing=...) with {methods}; or leave the "
            "columns out."
        )
        raise with_advice(error, advice) from None


def _joined(tables: Sequence[object]) -> object | None:
    """Return one table of all rows; None if the tables differ in their columns or their type."""
    first = tables[0]
    if isinstance(first, Mapping):
        return _joined_columns(tables)
    if any(type(table) is not type(first) for table in tables) or isinstance(first, Source):
        return None
    if isinstance(first, np.ndarray):
        arrays = [table for table in tables if isinstance(table, np.ndarray)]
        alike = len({(a.dtype.names, a.shape[1:]) for a in arrays}) == 1
        return np.concatenate(arrays) if alike else None
    if is_lazy(first):
        return None
    import narwhals as nw

    frames = [as_narwhals(table) for table in tables]
    if not all(isinstance(f, nw.DataFrame) and f.schema == frames[0].schema for f in frames):
        return None
    whole: object = nw.concat(frames, how="vertical")
    return whole


def _joined_columns(tables: Sequence[object]) -> dict[Any, Any] | None:
    """Join dictionaries of arrays and lists; None if there are others."""
    joined: dict[Any, Any] = {}
    parts = [table for table in tables if isinstance(table, Mapping)]
    if len(parts) < len(tables) or any(list(part) != list(parts[0]) for part in parts):
        return None
    for name in parts[0]:
        columns = [part[name] for part in parts]
        if all(isinstance(column, list | tuple) for column in columns):
            joined[name] = [cell for column in columns for cell in column]
        elif all(type(column) is np.ndarray for column in columns):
            if len({"f" if c.dtype.kind in "iuf" else c.dtype.kind for c in columns}) > 1:
                return None
            joined[name] = np.concatenate(columns)
        else:
            return None
    return joined


def _united(
    tables: Sequence[object],
    kinds: Mapping[str, Kind | str] | None,
    missing: Missing | None,
) -> Schema:
    """Return the variables of tables that are read one by one, with the levels of all of them.

    Whole numbers are read as they would be in one table of all rows: five or more different values
    in all tables together are numbers.
    """

    def read(table: object, numbers: Sequence[str]) -> Schema:
        own = kinds
        if numbers and not isinstance(table, Source):  # a source has decided already
            own = {**dict.fromkeys(numbers, Kind.CONTINUOUS), **(kinds or {})}
        return as_source(table, kinds=own, keep=None, missing=missing).schema()

    schemas = [read(table, ()) for table in tables]
    numbers = _numbers(schemas)
    if numbers:
        schemas = [read(table, numbers) for table in tables]
    names = schemas[0].names
    ordered = [
        # Tables are read by name, so the order of their columns is that of the first.
        schema.subset(names)
        if not isinstance(table, Source) and {*schema.names} == {*names}
        else schema
        for table, schema in zip(tables, schemas, strict=True)
    ]
    return reduce(union_levels, ordered)


def _numbers(schemas: Sequence[Schema]) -> list[str]:
    """Whole numbers that some table reads as codes, and all rows together would not."""
    found = []
    for name in schemas[0].names:
        variables = [schema[name] for schema in schemas if name in schema]
        levels = {level for v in variables for level in v.levels}
        are_whole = bool(levels) and all(type(level) is int for level in levels)
        continuous = any(v.kind is Kind.CONTINUOUS for v in variables)
        if are_whole and (continuous or len(levels) >= NUMBERS):
            found.append(name)
    return found
