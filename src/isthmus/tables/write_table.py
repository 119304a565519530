"""Tables written to files, for programs that have no table library at hand."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from isthmus.errors import FormatError, MissingExtraError

if TYPE_CHECKING:
    from numpy.typing import NDArray

WRITTEN = (".csv", ".csv.gz", ".tsv", ".parquet", ".arrow", ".feather")
"""Extensions of the files that can be written."""


def check_written(path: Path) -> None:
    """Raise `FormatError` if the extension is unknown, or an error if there is no folder."""
    if not path.name.lower().endswith(WRITTEN):
        raise FormatError(
            f"The format of {path.name!r} is unknown here. Give a name that ends in one of "
            f"{', '.join(WRITTEN)}."
        )
    check_place(path)


def check_place(path: Path) -> None:
    """Raise an error if there is no folder for a file, or if a folder has its name."""
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"There is no folder {str(path.parent)!r} for {path.name!r}. Create it first."
        )
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder. Give the name of a file.")


def write_table(columns: Mapping[str, NDArray[Any]], path: Path) -> None:
    """Write columns to a file, whose extension determines the format."""
    check_written(path)
    name = path.name.lower()
    if name.endswith(".gz"):
        with gzip.open(path, "wt", newline="", encoding="utf-8") as file:
            write_text(columns, file)
    elif name.endswith((".csv", ".tsv")):
        with path.open("w", newline="", encoding="utf-8") as file:
            write_text(columns, file, "\t" if name.endswith(".tsv") else ",")
    else:
        try:
            import polars as pl
        except ImportError:
            raise MissingExtraError("polars", "cli", f"Writing {path.name!r}") from None
        frame = pl.DataFrame({key: column.tolist() for key, column in columns.items()})
        frame.write_parquet(path) if name.endswith(".parquet") else frame.write_ipc(path)


def write_text(columns: Mapping[str, NDArray[Any]], file: IO[Any], separator: str = ",") -> None:
    """Write columns as text."""
    writer = csv.writer(file, delimiter=separator, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
