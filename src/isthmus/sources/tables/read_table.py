"""Tables in files, for programs that have no table library at hand."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

from isthmus.errors import DataError, MissingExtraError, SchemaError
from isthmus.sources.tables.names import check_unique, repeated_names_refused

_ENDINGS = (".csv", ".tsv", ".parquet")
_LIBRARIES = ("polars", "pandas", "pyarrow")

_SEPARATORS = (",", ";", "\t", "|")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_DECIMAL_POINT = re.compile(r"[+-]?\d+\.\d+")
_SAMPLE = 100
"""Number of lines that tell how a text file is written."""

MISSING_WORDS = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "None", "?")
"""Cells of text files that are read as missing."""


def read_table(
    path: str | PathLike[str],
    *,
    drop: Sequence[str] = (),
    missing: Sequence[str] = MISSING_WORDS,
    text: Sequence[str] = (),
) -> Any:
    """Read a CSV, TSV or Parquet file with whichever table library is installed.

    The separator (comma, semicolon, tab or bar) and decimal commas are recognised.

    Parameters
    ----------
    path
        The file; its extension tells the format.
    drop
        Columns to leave out.
    missing
        Cells of text files that are read as missing.
    text
        Columns of a CSV or TSV file that are text even if they look like numbers, such as
        identifiers with leading zeros.

    Returns
    -------
    object
        A table of Polars, pandas or PyArrow.
    """
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in _ENDINGS:
        raise DataError(
            f"{path.name!r} does not end in {', '.join(_ENDINGS)}. Convert it, or read it in "
            "Python with a library for its format and give the table to isthmus.learn."
        )
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    library: Any = next((name for name in _LIBRARIES if find_spec(name) is not None), None)
    if library is None:
        raise MissingExtraError("polars", "cli", f"Reading {path.name!r}")
    import narwhals as nw

    try:
        with repeated_names_refused():
            if ending == ".parquet":
                table: Any = nw.read_parquet(str(path), backend=library)
            else:
                table = nw.from_native(_read_text(path, library, ending, list(missing), text))
    except SchemaError:
        raise
    except Exception as error:
        kind = type(error).__name__
        raise DataError(f"{path.name!r} cannot be read as a table ({kind}: {error}).") from error
    unknown = sorted(set(drop).difference(table.columns))
    if unknown:
        raise SchemaError(f"{path.name!r} has no columns {unknown}; it has {table.columns}.")
    return table.drop(drop).to_native()


def _read_text(
    path: Path, library: str, ending: str, missing: list[str], text: Sequence[str]
) -> Any:
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        lines = list(islice(file, _SAMPLE))
    separator = "\t" if ending == ".tsv" else _separator(lines)
    cells = list(csv.reader(lines, delimiter=separator))
    # The libraries rename repeated columns (a_duplicated_0, a.1) without saying so.
    check_unique(cells[0] if cells else [])
    comma = separator != "," and _has_decimal_commas(cells[1:])
    if library == "polars":
        import polars as pl

        return pl.read_csv(
            path,
            separator=separator,
            decimal_comma=comma,
            null_values=missing,
            infer_schema_length=None,
            schema_overrides=dict.fromkeys(text, pl.String),
        )
    decimal = "," if comma else "."
    if library == "pandas":
        import pandas as pd

        return pd.read_csv(
            path,
            sep=separator,
            decimal=decimal,
            na_values=missing,
            keep_default_na=False,
            dtype=dict.fromkeys(text, str),
        )
    import pyarrow as pa
    from pyarrow import csv as arrow

    return arrow.read_csv(
        path,
        parse_options=arrow.ParseOptions(delimiter=separator),
        convert_options=arrow.ConvertOptions(
            null_values=missing,
            strings_can_be_null=True,
            decimal_point=decimal,
            column_types=dict.fromkeys(text, pa.string()),
        ),
    )


def _separator(lines: list[str]) -> str:
    """The character that cuts the lines into the same and the largest number of cells."""
    widths = {}
    for mark in _SEPARATORS:
        counts = {len(row) for row in csv.reader(lines, delimiter=mark) if row}
        widths[mark] = counts.pop() if len(counts) == 1 else 0
    best = max(_SEPARATORS, key=lambda mark: widths[mark])
    return best if widths[best] > 1 else ","


def _has_decimal_commas(rows: list[list[str]]) -> bool:
    cells = [cell.strip() for row in rows for cell in row]
    return any(map(_DECIMAL_COMMA.fullmatch, cells)) and not any(
        map(_DECIMAL_POINT.fullmatch, cells)
    )
