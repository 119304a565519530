"""From whatever a user gives to a source."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeGuard, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError, SchemaError
from isthmus.results.reading import Disclosure
from isthmus.statistics import (
    Basis,
    Chebyshev,
    CountPlan,
    Counts,
    Expansion,
    Kind,
    Moments,
    Schema,
    Statistic,
)
from isthmus.tables.annotated import AnnotatedTable, is_annotated
from isthmus.tables.base import CompleteColumns, Source
from isthmus.tables.frame import Frame, Precomputed
from isthmus.tables.kinds import AsGiven
from isthmus.tables.missing import Missing
from isthmus.tables.names import as_narwhals, check_names


def knows_kinds(data: object) -> TypeGuard[Source | Statistic]:
    """Whether data know the kinds of their variables: a source or statistics, and no table."""
    return isinstance(data, (Source, Statistic))


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
    if groups is not None and knows_kinds(data):
        source = data if isinstance(data, Source) else Precomputed(data)
        raise SchemaError(
            f"groups={groups!r} names a column of a table, and {source!r} has none. "
            f"{source.grouping}"
        )
    if knows_kinds(data):
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
    if is_annotated(data):
        data = AnnotatedTable(data, obs=() if groups is None else (groups,))
    if schema is not None:
        return Frame(data, schema=schema, missing=missing)
    options: dict[str, Any] = {"kinds": kinds, "integers": integers, "keep": keep}
    options |= {"columns": columns, "missing": missing}
    if groups is not None:
        from isthmus.tables.groups import within_groups

        return within_groups(data, groups, **options)
    if isinstance(data, (np.ndarray, Mapping)):
        return Frame(data, **options)
    from isthmus.tables.engines.find import is_lazy
    from isthmus.tables.lazy import Lazy

    place = Lazy if is_lazy(data) else Frame
    return place(data, **options)


def names_of_table(data: object) -> tuple[str, ...]:
    """Return the names of the columns of a table in memory or in an engine."""
    if is_annotated(data):
        return tuple(AnnotatedTable(data))
    from isthmus.tables.engines.find import is_lazy, names_of

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


# --- A table or source with basis functions of its variables ------------------------------------


@final
class WithFeatures(Source):
    """Continuous variables, with basis functions of each as further columns in its block.

    Parameters
    ----------
    data
        A table or a source of continuous variables that can compute basis functions: with its rows
        at hand, with an engine, or at the sites of a federation.
    basis
        A basis, which is standardised with the moments of the data, or with the centres and scales
        that the study of a federation fixes; or an expansion.
    """

    def __init__(self, data: object, basis: Basis | Expansion = Chebyshev()) -> None:
        source = as_source(data, integers=Kind.CONTINUOUS)
        if isinstance(basis, Basis):
            basis = source.expansion_of(basis)
        self.expansion = basis
        self._source = source
        self._wide = source.with_features(basis)

    def schema(self) -> Schema:
        """The variables, with their basis functions."""
        return self._wide.schema()

    def moments(self, names: Sequence[str] | None = None) -> Moments:
        """Moments of these variables, with their basis functions; of all if not given."""
        return self._wide.moments(names)

    def counts(self, plan: CountPlan) -> Counts:
        return self._wide.counts(plan)

    def rows(self) -> NDArray[np.float64]:
        """All rows of the variables themselves, where rows are at hand."""
        return self._wide.rows()

    def with_features(self, expansion: Expansion) -> Source:
        return self._wide.with_features(expansion)

    def without_features(self) -> Source:
        return self._source

    def disclosure(self) -> Disclosure:
        """Data that were released for the standardisation, and for the basis functions."""
        return self._wide.disclosure()

    def notes(self) -> tuple[str, ...]:
        """Notes of the source without basis functions."""
        return self._source.notes()

    def realisation_of_rows(self) -> NDArray[np.int64] | None:
        return self._source.realisation_of_rows()

    @property
    def within_groups(self) -> bool:  # type: ignore[override]
        """Whether the rows belong to groups."""
        return self._source.within_groups

    def rows_within_groups(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        return self._wide.rows_within_groups()

    def complete_columns(self) -> CompleteColumns | None:
        return self._source.complete_columns()

    def __repr__(self) -> str:
        return f"WithFeatures({self._source!r}, {self.expansion.basis!r})"
