"""From whatever a user gives to a source."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from isthmus.errors import DataError, SchemaError
from isthmus.sources.base import Source
from isthmus.sources.tables.frame import Frame
from isthmus.sources.tables.kinds import AsGiven
from isthmus.sources.tables.missing import Missing
from isthmus.sources.tables.names import as_narwhals, check_names
from isthmus.sources.tables.precomputed import Precomputed
from isthmus.statistics import Kind, Schema, Statistic


def as_source(
    data: object,
    *,
    kinds: Mapping[str, AsGiven | str] | None = None,
    integers: Kind | str | None = None,
    keep: Collection[str] | None = (),
    columns: Collection[str] | None = None,
    missing: Missing | None = None,
    schema: Schema | None = None,
    groups: str | None = None,
) -> Source:
    """Make a source of a table, of statistics, or of a source itself.

    Parameters
    ----------
    data
        A table in memory (`Frame`), a table of an engine (`Lazy`), statistics (`Precomputed`), or a
        source.
    kinds
        How to read some columns of a table.
    integers
        How to read integers that ``kinds`` does not name; of no effect on sources and statistics.
    keep
        Columns of a table that are not left out whatever they look like; None for all.
    columns
        Names of the columns of a table to read, none of which is left out; by default all.
    missing
        How to handle missing values of a table or of the sites of a federation; by default they
        are refused.
    schema
        The variables of a table in memory, if they are known.
    groups
        The column of a table that says to which group each row belongs. Statistics are then about
        the mean of each group.
    """
    if groups is not None and isinstance(data, (Source, Statistic)):
        source = data if isinstance(data, Source) else Precomputed(data)
        raise SchemaError(
            f"groups={groups!r} names a column of a table, and {source!r} has none. "
            f"{source.grouping}"
        )
    if isinstance(data, (Source, Statistic)):
        if kinds is not None:
            raise SchemaError(
                "kinds are for tables; a source and statistics know their kinds. Say how to read "
                "columns where the table is given: Frame(..., kinds=...), Lazy(..., kinds=...), "
                "Series(..., kinds=...) or Federation.simulate(..., kinds=...). A study states the "
                "kinds of its variables."
            )
        source = data if isinstance(data, Source) else Precomputed(data)
        return source if missing is None else source.with_missing(missing)
    if isinstance(data, (str, os.PathLike)):
        raise _is_path(os.fspath(data))
    if schema is not None:
        return Frame(data, schema=schema, missing=missing)
    options: dict[str, Any] = {"kinds": kinds, "integers": integers, "keep": keep}
    options |= {"columns": columns, "missing": missing}
    if groups is not None:
        from isthmus.sources.tables.groups import within_groups

        return within_groups(data, groups, **options)
    if isinstance(data, (np.ndarray, Mapping)):
        return Frame(data, **options)
    from isthmus.sources.tables.engines.find import is_lazy
    from isthmus.sources.tables.lazy import Lazy

    place = Lazy if is_lazy(data) else Frame
    return place(data, **options)


def names_of_table(data: object) -> tuple[str, ...]:
    """Return the names of the columns of a table in memory or in an engine."""
    from isthmus.sources.tables.engines.find import is_lazy, names_of

    if not isinstance(data, (np.ndarray, Mapping)) and is_lazy(data):
        return check_names(names_of(as_narwhals(data)))
    return tuple(Frame(data).raw_columns())


def _is_path(path: str) -> DataError:
    name = path.lower().removesuffix(".gz")
    readers = {
        ".csv": "read_csv",
        ".tsv": "read_table",
        ".txt": "read_table",
        ".parquet": "read_parquet",
        ".feather": "read_feather",
        ".arrow": "read_feather",
        ".xlsx": "read_excel",
        ".xls": "read_excel",
        ".ods": "read_excel",
        ".json": "read_json",
    }
    reader = next((reader for end, reader in readers.items() if name.endswith(end)), None)
    if reader is None:
        advice = "Read it with a table library first, such as pandas.read_csv for a CSV file."
    else:
        advice = f"Read it first: pandas.{reader}({path!r})."
    return DataError(
        f"{path!r} is the name of a file, and learn takes a table. {advice} On the command line, "
        f"isthmus learn {path} reads text files, Parquet, Excel and databases by itself."
    )
