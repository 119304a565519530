"""Tables in files, for those who have no table library at hand in their program."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any

from isthmus.errors import DataError, MissingExtraError, SchemaError

_READERS = {".csv": "read_csv", ".tsv": "read_csv", ".parquet": "read_parquet"}
_LIBRARIES = ("polars", "pandas", "pyarrow")


def read_table(path: str | PathLike[str], *, drop: Sequence[str] = ()) -> Any:
    """Read a CSV, TSV or Parquet file with whichever table library is installed.

    Parameters
    ----------
    path
        Its ending says what it is.
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
            "Python with the library that knows it and give the table to isthmus.learn."
        )
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    library = next((name for name in _LIBRARIES if find_spec(name) is not None), None)
    if library is None:
        raise MissingExtraError("polars", "cli", f"Reading {path.name!r}")
    import narwhals as nw

    options = {"separator": "\t"} if ending == ".tsv" else {}
    try:
        table = getattr(nw, _READERS[ending])(str(path), backend=library, **options)
    except Exception as error:
        kind = type(error).__name__
        raise DataError(f"{path.name!r} cannot be read as a table ({kind}: {error}).") from error
    unknown = sorted(set(drop).difference(table.columns))
    if unknown:
        raise SchemaError(f"{path.name!r} has no columns {unknown}; it has {table.columns}.")
    return table.drop(drop).to_native()
