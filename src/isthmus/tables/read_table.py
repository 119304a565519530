"""Tables in files and databases, for programs that have no table library at hand."""

from __future__ import annotations

import logging
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any, final

from isthmus.errors import DataError, IsthmusError, MissingExtraError, SchemaError
from isthmus.tables.databases import duckdb_table, is_url, url_table, without_secret
from isthmus.tables.names import check_unique, repeated_names_refused
from isthmus.tables.text_files import TextFormat, TextTable, refuse_title

_TEXT = (".csv", ".tsv", ".txt")
_ARROW = (".arrow", ".feather", ".ipc")
_EXCEL = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
_DUCKDB = (".duckdb", ".ddb")
_JSON = (".json", ".jsonl", ".ndjson")
ENDINGS = (*_TEXT, ".csv.gz", ".parquet", *_ARROW, *_EXCEL, *_DUCKDB)
"""Extensions of the files that can be read."""
_TOP = 20
"""Number of rows of a sheet that tell whether a title stands above the names of the columns."""
_LIBRARIES = ("polars", "pandas", "pyarrow")


@final
@dataclass(frozen=True)
class TableFile:
    """A table that was opened, and how its file was read.

    Attributes
    ----------
    table
        A table of Polars, pandas, PyArrow, DuckDB or Ibis.
    description
        How the file was read, one line each.
    """

    table: Any
    description: tuple[str, ...]


def read_table(
    path: str | PathLike[str],
    *,
    drop: Sequence[str] = (),
    missing: Sequence[str] | None = None,
    text: Sequence[str] = (),
    numbers: Sequence[str] = (),
) -> Any:
    """Return the table in a file; see `open_table`."""
    given = TextFormat(missing=None if missing is None else tuple(missing))
    return open_table(path, drop=drop, text=text, numbers=numbers, text_format=given).table


def open_table(
    path: str | PathLike[str],
    *,
    drop: Sequence[str] = (),
    text: Sequence[str] = (),
    numbers: Sequence[str] = (),
    text_format: TextFormat = TextFormat(),
    table: str | None = None,
) -> TableFile:
    """Open a table in a file or a database with whichever table library is installed.

    Text files may be compressed (``.gz``). Their separator, decimal mark, encoding and marks of
    missing values are recognised.

    Parameters
    ----------
    path
        A file, whose extension tells the format, or the URL of a database.
    drop
        Columns to leave out.
    text
        Columns of a text file that are text even if they look like numbers, such as identifiers.
    numbers
        Columns of a text file that are numbers even if they have leading zeros.
    text_format
        How a text file is written, where it should not be recognised.
    table
        Name of the table in a database, or of the sheet in a workbook.
    """
    import narwhals as nw

    shown = str(path)
    if not shown:
        raise FileNotFoundError("The name of the file is empty. Name a file with a table.")
    if not shown.isascii() and shown.encode(errors="ignore").decode() != shown:
        raise DataError(f"The name {shown!r} is not text in UTF-8. Rename the file.")
    if is_url(shown):
        native, name = url_table(shown, table)
        shown = without_secret(shown)
        said: tuple[str, ...] = (f"table: {name} of {shown}",)
    else:
        file = Path(path)
        shown, ending = file.name, _ending(file)
        _refuse_table(shown, ending, table)
        try:
            with repeated_names_refused():
                native, said = _read(file, ending, table, text_format, text, numbers)
        except (IsthmusError, FileNotFoundError, PermissionError, IsADirectoryError):
            raise
        except Exception as error:
            kind, first = type(error).__name__, str(error).strip().partition("\n")[0]
            raise DataError(
                f"{shown!r} cannot be read as a table ({kind}: {first}). Check that the file is "
                "complete, and that its extension tells its format."
            ) from error
    frame: Any = nw.from_native(native)
    names = frame.collect_schema().names()
    unknown = sorted(set(drop).difference(names))
    if unknown:
        raise SchemaError(f"{shown!r} has no columns {unknown}; it has {names}.")
    return TableFile(frame.drop(drop).to_native() if drop else native, said)


def _ending(path: Path) -> str:
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder. Name a file in it.")
    if str(path) in ("-", "/dev/stdin") or (path.exists() and not path.is_file()):
        # The file is read several times, to recognise its format.
        raise FileNotFoundError(
            f"{str(path)!r} is not a file but a stream, which can be read only once. Save the "
            "table to a file first."
        )
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] == [".gz"] and suffixes[-2:-1] and suffixes[-2] in _TEXT:
        ending = suffixes[-2]
    else:
        ending = suffixes[-1] if suffixes else ""
    if ending in _JSON:
        raise DataError(
            f"{path.name!r} is JSON, and a table is needed. Convert a list of records with "
            f"pandas.read_json({path.name!r}).to_csv('{path.stem}.csv', index=False). A network in "
            "JSON is read by the commands query, simulate and compare, and by isthmus.io.read_json."
        )
    if ending not in ENDINGS:
        raise DataError(
            f"{path.name!r} does not end in {', '.join(ENDINGS)}. If it is text, give its columns "
            f"names in the first line and save it as {path.stem + '.csv'!r}; or read it in Python "
            "with a library for its format and give the table to isthmus.learn."
        )
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {str(path)!r}. Check the name and the folder.")
    return ending


def _refuse_table(shown: str, ending: str, table: str | None) -> None:
    if table is not None and ending not in (*_EXCEL, *_DUCKDB):
        raise SchemaError(
            f"{shown!r} holds one table, so that no name of a table is needed: leave {table!r} out."
        )


def _read(
    path: Path,
    ending: str,
    table: str | None,
    given: TextFormat,
    text: Sequence[str],
    numbers: Sequence[str],
) -> tuple[Any, tuple[str, ...]]:
    """Return the table in a file, and how the file was read."""
    if ending in _DUCKDB:
        native, name = duckdb_table(path, table)
        return native, (f"table: {name}",)
    library = _library(path)
    if ending in _EXCEL:
        return _excel(path, library, table, given.skip_rows)
    if ending in _TEXT:
        file = TextTable(path, given)
        return file.read(library, text, numbers), file.description
    import narwhals as nw

    if ending == ".parquet":
        return nw.read_parquet(str(path), backend=library).to_native(), ()
    return _arrow(path, library), ()


def _library(path: Path) -> Any:
    library = next((name for name in _LIBRARIES if find_spec(name) is not None), None)
    if library is None:
        raise MissingExtraError("polars", "cli", f"Reading {path.name!r}")
    return library


def _arrow(path: Path, library: str) -> Any:
    if library == "polars":
        import polars as pl

        return pl.read_ipc(path)
    try:
        from pyarrow import feather
    except ImportError:
        raise MissingExtraError("polars", "cli", f"Reading {path.name!r}") from None
    return feather.read_table(path)


def _excel(
    path: Path, library: str, sheet: str | None, skip_rows: int
) -> tuple[Any, tuple[str, ...]]:
    if library != "polars" or find_spec("fastexcel") is None:
        raise MissingExtraError("fastexcel", "cli", f"Reading {path.name!r}")
    if path.suffix.lower() != ".xls" and not zipfile.is_zipfile(path):
        raise DataError(f"{path.name!r} is not a workbook, or it is damaged. Save it again.")
    import fastexcel

    logging.getLogger("fastexcel").setLevel(logging.ERROR)  # it tells of columns without values
    book = fastexcel.read_excel(path)
    names = book.sheet_names
    if sheet is not None and sheet not in names:
        raise SchemaError(f"{path.name!r} has no sheet {sheet!r}. Its sheets: {', '.join(names)}.")
    chosen = sheet or names[0]
    first = book.load_sheet(chosen, header_row=None, skip_rows=skip_rows, n_rows=_TOP).to_polars()
    header = first.row(0) if first.height else ()
    _refuse_cover(path, chosen, names, first.rows())
    # Repeated names would get numbers without a word.
    check_unique([name for name in header if name is not None])
    more = "" if len(names) == 1 or sheet else f", the first of {len(names)}"
    native = book.load_sheet(chosen, header_row=skip_rows).to_polars()
    unnamed = {
        old: f"column_{i}" for i, old in enumerate(native.columns, 1) if header[i - 1] is None
    }
    return native.rename(unnamed), (f"sheet: {chosen}{more}",)


def _refuse_cover(path: Path, sheet: str, sheets: list[str], rows: list[tuple[Any, ...]]) -> None:
    """Raise `DataError` if a sheet is empty, or if a title stands above the names of columns."""
    if not rows:
        raise DataError(
            f"The sheet {sheet!r} of {path.name!r} is empty. Name another one (--table); it has: "
            f"{', '.join(sheets)}."
        )
    refuse_title(rows, f"{path.name}, sheet {sheet}")
