"""The variables of several tables that are simulated as sites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from isthmus.sources.base import Source
from isthmus.sources.dispatch import as_source
from isthmus.sources.tables.decisions import NUMBERS
from isthmus.sources.tables.missing import Missing
from isthmus.statistics import Kind, Schema
from isthmus.statistics.schema import union_levels


def common_schema(
    tables: Sequence[object],
    kinds: Mapping[str, Kind | str] | None,
    missing: Missing | None,
) -> Schema:
    """Return the variables of all tables together, with the levels that any of them has.

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
    return reduce(union_levels, schemas)


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
