"""Tables in text files: how they are written is recognised, said, and can be overridden."""

from __future__ import annotations

import codecs
import csv
import gzip
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO, StringIO, TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import IO, Any, final

from isthmus.errors import ArgumentError, DataError, counted, warn
from isthmus.tables.names import check_unique
from isthmus.tables.written_numbers import decimal_of, has_leading_zero, is_unclear, numbers_of

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
"""Separators that are recognised, besides spaces, and their names."""
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")
_ZEROS = re.compile(r"(?<![\w.])0\d")
"""What a line with a number with leading zeros has."""
_SAMPLE = 1000
"""Number of lines that tell how a text file is written."""
_CHUNK = 1 << 20
_TITLES = 20
"""Number of rows in which the names of the columns are looked for below a title."""
_MOST_LINES = 100
"""A cell with more lines than this begins with a quote that is not closed."""

MISSING_WORDS = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "None", "?")
"""Cells of text files that are read as missing."""
_MARKS_AMONG_NUMBERS = (".", "-", "--", "*", "missing", "Missing", "MISSING", "\\N", "#NULL!")
"""Cells that are read as missing if they stand among numbers, and in no column of text."""


@final
@dataclass(frozen=True)
class TextFormat:
    """How a table is written as text. What is None is recognised from the file.

    Attributes
    ----------
    separator
        Character between cells.
    decimal
        ``"."`` or ``","``.
    encoding
        Name of the encoding, such as ``"utf-8"`` or ``"cp1252"``.
    missing
        Cells that are read as missing.
    header
        Whether the first line has the names of the columns.
    skip_rows
        Number of lines above the names of the columns, such as titles; also of a workbook.
    """

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    missing: tuple[str, ...] | None = None
    header: bool = True
    skip_rows: int = 0

    def __post_init__(self) -> None:
        if self.skip_rows < 0:
            raise ArgumentError(f"skip_rows must be at least 0; got {self.skip_rows}.")
        if self.separator is not None and len(self.separator) != 1:
            raise ArgumentError(
                f"The separator must be one character, such as ';'; got {self.separator!r}."
            )
        if self.decimal not in (None, ".", ","):
            raise ArgumentError(f"The decimal mark must be '.' or ','; got {self.decimal!r}.")
        if self.decimal == "," == self.separator:
            raise ArgumentError(
                "The comma cannot both separate cells and mark decimals. Give another separator."
            )
        if self.encoding is not None:
            try:
                "".encode(self.encoding)  # which base64 and its like cannot do
            except LookupError:
                raise ArgumentError(
                    f"The encoding {self.encoding!r} is unknown. Give utf-8, cp1252 or utf-16, "
                    "for instance."
                ) from None


@final
class TextTable:
    """A text file whose format is known.

    Parameters
    ----------
    path
        The file; ``.gz`` is decompressed.
    """

    def __init__(self, path: Path, given: TextFormat) -> None:
        self._path, self._given = path, given
        self.encoding = given.encoding or _encoding(path)
        lines = list(self._lines(_SAMPLE))
        tab = ".tsv" in path.suffixes
        self.separator = given.separator or ("\t" if tab else _separator(lines))
        raw = _cells(lines, self.separator)
        if not raw:
            raise DataError(f"{path.name!r} is empty. Give a file with a line per row.")
        self._refuse_open_quote(lines, raw)
        cells = [[cell.strip() for cell in row] for row in raw]
        self._is_padded = _is_padded(raw)
        self._width = len(cells[0])
        self._refuse_other_formats(cells)
        if len(cells) == 1 and given.header:
            raise DataError(
                f"{path.name!r} has no rows below its first line. Give a file with a line per row, "
                "and names of the columns in the first line."
            )
        if given.header:
            refuse_title(cells, path.name)
        self._refuse_ragged(cells)
        self.names = _named(cells[0]) if given.header else _numbered(self._width)
        self._written_names = cells[0] if given.header else self.names
        self._has_gaps = given.header and self.names != cells[0]
        if given.header:
            self._warn_numbers()
        # The libraries rename repeated columns (a_duplicated_0, a.1) without saying so.
        check_unique(self.names)
        rows = cells[1:] if given.header else cells
        self._cells = [{row[i] for row in rows} for i in range(self._width)]
        self._mark = given.decimal or self._shown_mark()
        self.decimal = self._mark or "."
        self.missing = (
            (*MISSING_WORDS, *_marks(rows, self._width)) if given.missing is None else given.missing
        )
        used = {cell for row in rows for cell in row}
        self._marks = [mark for mark in self.missing if mark in used]

    @property
    def description(self) -> tuple[str, ...]:
        """How the file is read, one line each."""
        given = self._given

        def origin(value: object) -> str:
            return "recognised" if value is None else "as requested"

        name = SEPARATORS.get(self.separator, repr(self.separator))
        mark = {",": "comma", ".": "point"}[self.decimal]
        shown = f"decimal mark: {mark} ({origin(given.decimal)})"
        if self._mark is None and self._unclear():
            shown = "decimal mark: not clear; say it with --decimal . or --decimal ,"
        marks = ", ".join(repr(mark) for mark in self._marks) or "none in the first lines"
        return (
            f"separator: {name} ({origin(given.separator)})",
            shown,
            f"encoding: {self.encoding} ({origin(given.encoding)})",
            f"missing values: {marks} ({origin(given.missing)})",
            f"first line: {'names of the columns' if given.header else 'data'}",
        )

    def _shown_mark(self) -> str | None:
        """The decimal mark that some columns show and none contradicts, or None."""
        absent = {*MISSING_WORDS, *_MARKS_AMONG_NUMBERS}
        found = {decimal_of(cells - absent) for cells in self._cells} - {None}
        mark = found.pop() if len(found) == 1 else None
        return None if mark == self.separator else mark

    def _unclear(self) -> list[str]:
        """Columns whose numbers have points that may separate thousands."""
        if self._mark == ".":
            return []
        return [n for n, cells in zip(self.names, self._cells, strict=True) if is_unclear(cells)]

    def read(self, library: str, text: Sequence[str], numbers: Sequence[str] = ()) -> Any:
        """Return the table in a library.

        Rows without any value are left out, as blank lines are. Numbers with leading zeros stay
        text, and so do numbers whose points may mark decimals or separate thousands, as in a table
        of text in memory.

        Parameters
        ----------
        numbers
            Columns that are numbers even if they have leading zeros.
        """
        import narwhals as nw

        codes = self._codes().difference(numbers)
        unclear = [n for n in self._unclear() if n not in codes and n not in text]
        frame = self._frame(library, [*codes.union(text), *unclear])
        late = [n for n in frame.columns if self._mark is None and self._is_late(frame, n)]
        if late:
            unclear += late
            frame = self._frame(library, [*codes.union(text), *unclear])
        for name in unclear:
            column = frame.get_column(name)
            if column.dtype.is_numeric():  # a column without a name, which the library has read
                continue
            labels = column.drop_nulls().unique().to_list()
            values = numbers_of(labels, decimal=self._mark)
            if values is not None:
                read = column.replace_strict(
                    [*labels, None], [*values.tolist(), None], return_dtype=nw.Float64
                )
                frame = frame.with_columns(read.alias(name))
        return frame.to_native()

    def _codes(self) -> set[str]:
        """Columns in which some whole number has leading zeros."""
        found: set[int] = set()
        lines = self._lines(sys.maxsize)
        if self._given.header:
            next(lines, None)
        while block := list(islice(lines, 10 * _SAMPLE)):
            hits = [line for line in block if _ZEROS.search(line)]
            for row in _cells(hits, self.separator):
                if len(row) == self._width:
                    found.update(i for i, cell in enumerate(row) if has_leading_zero(cell))
        return {self.names[i] for i in found}

    def _is_late(self, frame: Any, name: str) -> bool:
        """Whether a column has points only below the first lines, as large numbers may have."""
        cells = self._cells[self.names.index(name)].difference(self.missing)
        if not frame.get_column(name).dtype.is_float() or any("." in cell for cell in cells):
            return False
        values = frame.get_column(name).drop_nulls()
        return bool((values != values.round(0)).any())

    def _frame(self, library: str, text: Sequence[str]) -> Any:
        import narwhals as nw

        read = {"polars": self._polars, "pandas": self._pandas, "pyarrow": self._arrow}[library]
        if self._has_gaps:  # the library does not know the names that were given to such columns
            text = [name for name in text if name in self._written_names]
        native = read(text)
        if self._has_gaps and library == "pyarrow":
            native = native.rename_columns(self.names)
        elif self._has_gaps:
            native.columns = self.names
        frame = nw.from_native(native, eager_only=True)
        if self._width > 1:
            frame = frame.filter(~nw.all_horizontal(nw.all().is_null(), ignore_nulls=False))
        return frame

    def _polars(self, text: Sequence[str]) -> Any:
        import polars as pl

        return pl.read_csv(
            self._content(),
            separator=self.separator,
            decimal_comma=self.decimal == ",",
            null_values=list(self.missing),
            infer_schema_length=None,
            schema_overrides=dict.fromkeys(text, pl.String),
            has_header=self._given.header,
            new_columns=None if self._given.header else list(self.names),
        )

    def _pandas(self, text: Sequence[str]) -> Any:
        import pandas as pd

        return pd.read_csv(
            self._content(),
            sep=self.separator,
            decimal=self.decimal,
            na_values=list(self.missing),
            keep_default_na=False,
            dtype=dict.fromkeys(text, str),
            header=0 if self._given.header else None,
            names=None if self._given.header else list(self.names),
        )

    def _arrow(self, text: Sequence[str]) -> Any:
        import pyarrow as pa
        from pyarrow import csv as arrow

        return arrow.read_csv(
            self._content(),
            read_options=arrow.ReadOptions(
                column_names=None if self._given.header else list(self.names)
            ),
            parse_options=arrow.ParseOptions(delimiter=self.separator),
            convert_options=arrow.ConvertOptions(
                null_values=list(self.missing),
                strings_can_be_null=True,
                decimal_point=self.decimal,
                column_types=dict.fromkeys(text, pa.string()),
            ),
        )

    def _content(self) -> Path | BytesIO:
        """The file itself if the libraries can read it, else the same table in UTF-8."""
        plain = codecs.lookup(self.encoding).name in ("utf-8", "utf-8-sig", "ascii")
        with _opened(self._path) as file:
            first = file.read(_CHUNK)
            is_old = b"\r" in first and b"\n" not in first  # lines end with a carriage return
            rewrite = is_old or self._is_padded or self.separator == " "
            rewrite |= self._given.skip_rows > 0
            if plain and not rewrite and self._path.suffix.lower() != ".gz":
                return self._path
            content = first + file.read()
        if plain and not rewrite:
            return BytesIO(content)
        text = content.decode("utf-8-sig" if plain else self.encoding)
        if not rewrite:
            return BytesIO(text.encode("utf-8"))
        written = StringIO()
        lines: Iterable[str] = StringIO(text.replace("\r", "\n") if is_old else text, newline="")
        lines = islice(lines, self._given.skip_rows, None)
        writer = csv.writer(written, delimiter=self.separator, lineterminator="\n")
        rows = _cells(lines, self.separator)
        writer.writerows([cell.strip() for cell in row] for row in rows)
        return BytesIO(written.getvalue().encode("utf-8"))

    def _lines(self, count: int) -> Iterator[str]:
        encoding = "utf-8-sig" if self.encoding == "utf-8" else self.encoding
        with _opened(self._path) as file, TextIOWrapper(file, encoding, newline="") as lines:
            try:
                skipped = self._given.skip_rows
                yield from islice(islice(lines, skipped, None), count)
            except UnicodeError as error:
                raise DataError(
                    f"{self._path.name!r} is not text in {self.encoding} ({error.reason}). Give "
                    "another encoding, such as utf-8 or cp1252."
                    if isinstance(error, UnicodeDecodeError)
                    else f"{self._path.name!r} is not text in {self.encoding}. Give another one."
                ) from None

    def _warn_numbers(self) -> None:
        """Warn if the first line may be data."""
        numbers = [name for name in self.names if _NUMBER.fullmatch(name)]
        if 2 * len(numbers) >= len(self.names):
            warn(
                f"The first line of {self._path.name!r} has numbers as names of columns: "
                f"{numbers[:3]}. If it is data, say that there is no header (--no-header)."
            )

    def _refuse_open_quote(self, lines: list[str], cells: Sequence[Sequence[str]]) -> None:
        """Raise if a quote is not closed, so that the rest of the file is one cell."""
        is_open = any(cell.count("\n") > _MOST_LINES for row in cells for cell in row)
        if not is_open and len(lines) < _SAMPLE:
            try:
                list(csv.reader(lines, delimiter=self.separator, strict=True))
            except csv.Error as error:
                is_open = "unexpected end" in str(error)
        if is_open:
            raise DataError(
                f"A quote in row {len(cells)} of {self._path.name!r}, or shortly before, is not "
                "closed. Mend the row."
            )

    def _refuse_other_formats(self, cells: Sequence[Sequence[str]]) -> None:
        first = cells[0][0][:1]
        if first in ("<", "{", "[") and (len(cells) == 1 or self._width == 1):
            kind = "a web page" if first == "<" else "JSON"
            raise DataError(
                f"{self._path.name!r} looks like {kind}, not like a table. Give a text file with a "
                "line per row."
            )

    def _refuse_ragged(self, cells: Sequence[Sequence[str]]) -> None:
        for number, row in enumerate(cells, start=1):
            if len(row) != self._width:
                advice = "Mend the row"
                if self._width == 1:
                    advice = (
                        "Skip lines above the names of the columns, such as titles (--skip-rows "
                        f"{max(number - 1, 1)})"
                    )
                raise DataError(
                    f"Row {number} of {self._path.name!r} has {counted(len(row), 'cell')}, and the "
                    f"first has {self._width}. {advice}, or say which character separates cells."
                )


def refuse_title(rows: Sequence[Sequence[Any]], name: str) -> None:
    """Raise `DataError` if a title stands above the names of the columns.

    The first row then has one cell, and a later one has text in all cells.

    Parameters
    ----------
    rows
        The first rows; empty cells are None or empty text.
    name
        Where they come from.
    """
    filled = [cell for cell in rows[0] if cell not in (None, "")]
    if len(filled) != 1 or len(rows[0]) < 2:
        return
    for place, row in enumerate(rows[1:_TITLES], start=1):
        are_names = all(isinstance(c, str) and c and not _NUMBER.fullmatch(c) for c in row)
        if are_names and len(row) == len(rows[0]):
            raise DataError(
                f"The first row of {name!r} has one cell, {filled[0]!r}, and the names of the "
                f"columns seem to be in row {place + 1}. Skip the rows above them (--skip-rows "
                f"{place}), or delete them."
            )


def _opened(path: Path) -> IO[bytes]:
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rb")  # type: ignore[return-value]
    return path.open("rb")


def _encoding(path: Path) -> str:
    """UTF-16 and UTF-32 by their first bytes, UTF-8 if the whole file is, else that of Windows."""
    with _opened(path) as file:
        first = file.read(_CHUNK)
        if first.startswith((b"\x1f\x8b", b"PK")):
            raise DataError(f"{path.name!r} is compressed. Let it end in .csv.gz, or unpack it.")
        if first.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
            return "utf-32"
        if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16"
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            while first:
                if b"\0" in first:
                    raise DataError(
                        f"{path.name!r} has NUL bytes: it is damaged, or not a text file, or its "
                        "encoding is utf-16-le or utf-16-be, which you have to say (--encoding)."
                    )
                decoder.decode(first)
                first = file.read(_CHUNK)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return "cp1252"
    return "utf-8"


def _separator(lines: list[str]) -> str:
    """The character that cuts the lines into the same and the largest number of cells."""
    widths = {}
    for mark in SEPARATORS:
        counts = {len(row) for row in csv.reader(lines, delimiter=mark) if row}
        widths[mark] = counts.pop() if len(counts) == 1 else 0
    best = max(SEPARATORS, key=lambda mark: widths[mark])
    if widths[best] <= 1 and _is_spaced(lines):
        return " "
    return best if widths[best] > 1 else ","


def _is_spaced(lines: list[str]) -> bool:
    """Whether spaces cut the lines into the same number of cells, some of which are numbers."""
    rows = _cells(lines, " ")
    if len(rows) < 2 or len(rows[0]) < 2 or len({len(row) for row in rows}) > 1:
        return False
    columns = list(zip(*rows[1:], strict=True))
    return any(all(map(_NUMBER.fullmatch, column)) for column in columns)


def _cells(lines: Iterable[str], separator: str) -> list[list[str]]:
    """The cells of lines that are not blank; several spaces separate as one does."""
    if separator == " ":
        lines = (" ".join(line.split()) for line in lines)
    return [row for row in csv.reader(lines, delimiter=separator) if row]


def _is_padded(cells: Sequence[Sequence[str]]) -> bool:
    """Whether there are spaces around names or numbers, which libraries would not remove."""
    names = any(cell != cell.strip() for cell in cells[0])
    return names or any(
        cell != cell.strip() and _NUMBER.fullmatch(cell.strip())
        for row in cells[1:]
        for cell in row
    )


def _named(given: Sequence[str]) -> list[str]:
    """Names of the columns; those without one, such as the index of pandas, get a number."""
    names = list(given)
    for place, name in enumerate(names):
        if not name:
            name = f"column_{place + 1}"
            while name in names:
                name += "_"
            names[place] = name
    return names


def _marks(rows: Sequence[Sequence[str]], width: int) -> tuple[str, ...]:
    """Marks of missing values among numbers, which are in no column of text."""
    among_numbers: set[str] = set()
    among_text: set[str] = set()
    for place in range(width):
        cells = {row[place].strip() for row in rows} - set(MISSING_WORDS)
        words = {cell for cell in cells if not _NUMBER.fullmatch(cell)}
        marks = words.intersection(_MARKS_AMONG_NUMBERS)
        only_numbers = words == marks and len(cells) > len(marks)
        (among_numbers if only_numbers else among_text).update(marks)
    return tuple(m for m in _MARKS_AMONG_NUMBERS if m in among_numbers and m not in among_text)


def _numbered(width: int) -> list[str]:
    return [f"column_{i}" for i in range(1, width + 1)]
