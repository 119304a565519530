"""Tables in files, for programs that have no table library at hand."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any

from isthmus.errors import DataError, MissingExtraError, SchemaError
from isthmus.sources.tables.names import check_unique, repeated_names_refused

_READERS = {".csv": "read_csv", ".tsv": "read_csv", ".parquet": "read_parquet"}
_LIBRARIES = ("polars", "pandas", "pyarrow")


def read_table(path: str | PathLike[str], *, drop: Sequence[str] = ()) -> Any:
    """Read a CSV, TSV or Parquet file with whichever table library is installed.

    Parameters
    ----------
    path
        The file; its extension tells the format.
    drop
        Columns to leave out.

    Returns
    -------
    object
        A table of Polars, pandas or PyArrow.
    """
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in _READERS:
        raise DataError(
            f"{path.name!r} does not end in {', '.join(_READERS)}. Convert it, or read it in "
            "Python with a library for its format and give the table to isthmus.learn."
        )
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    library = next((name for name in _LIBRARIES if find_spec(name) is not None), None)
    if library is None:
        raise MissingExtraError("polars", "cli", f"Reading {path.name!r}")
    import narwhals as nw

    separator = "\t" if ending == ".tsv" else ","
    if ending != ".parquet":
        # The libraries rename repeated columns (a_duplicated_0, a.1) without saying so.
        check_unique(_first_line(path, separator))
    options = {"separator": separator} if ending == ".tsv" else {}
    try:
        with repeated_names_refused():
            table = getattr(nw, _READERS[ending])(str(path), backend=library, **options)
    except SchemaError:
        raise
    except Exception as error:
        kind = type(error).__name__
        raise DataError(f"{path.name!r} cannot be read as a table ({kind}: {error}).") from error
    unknown = sorted(set(drop).difference(table.columns))
    if unknown:
        raise SchemaError(f"{path.name!r} has no columns {unknown}; it has {table.columns}.")
    return table.drop(drop).to_native()


def _first_line(path: Path, separator: str) -> list[str]:
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        return next(csv.reader(file, delimiter=separator), [])
