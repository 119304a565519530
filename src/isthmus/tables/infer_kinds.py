"""The one place that decides how a column is read, whatever holds the table."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import SchemaError
from isthmus.networks.column_maps import SINCE
from isthmus.results.reading import FEW_VALUES, NO_VALUES, ORDERED, ColumnReading, ReadAs, Reading
from isthmus.statistics import Kind, Schema
from isthmus.statistics.schema import MAX_LEVELS
from isthmus.tables.kinds import CellType, TimeUnit, refused_type
from isthmus.tables.written_numbers import is_bound, is_unclear, is_year_first

NUMBERS = 5
"""Whole numbers with at least this many different values, and ordered categories with at least this
many levels, are read as numbers. As nominal categories, answers on a scale lost all edges in
`tests/tables/test_counts_and_scales.py`."""
FEW = 20
"""A note names whole numbers that are read as numbers and have at most this many values."""
_MANY = 1_000
"""Text with more distinct values than this in the first rows may be an identifier."""
_COLLISIONS = 10.0
"""Measured integers of which this many pairs should be equal by chance, and none is, number the
rows: by chance that happens with a probability of exp(-10)."""
_WORDS = 3.0
"""Text with at least this many spaces per cell is free text."""
_NUMBERED = "patient|subject|person|participant|case|record|customer|client|user|sample|row"
_IDENTIFIER = re.compile(
    r"(^|[\W_])(id|ids|uuid|guid|identifier|rowid|rownum|mrn|pid"
    rf"|({_NUMBERED})[\W_]?(id|no|nr|number))($|[\W_])|^record$"
)
"""Names of columns that number their rows, in lower case: ``id``, ``patient_id``, ``case_no``."""
_CAPITAL_ID = re.compile(r"[a-z]ID$")
"""The same for names such as ``orderID``; the end of ``paid`` and ``solid`` is none."""
_TIMES = {
    CellType.TEMPORAL.value: CellType.TEMPORAL.value,  # as engines say
    "duration": "durations",
    "timedelta": "durations",
    "interval": "durations",
    "datetime": "dates with times",
    "timestamp": "dates with times",
    "date": "dates",
}
"""What types hold whose names begin like this; the first that fits counts."""
_NINES = re.compile(r"-?9{2,5}")
"""Numbers that surveys and instruments write for a missing value."""
_MISSING_WORDS = frozenset(
    {"", "NA", "N/A", "n/a", "na", "NaN", "nan", "null", "NULL", "None", "?", "#N/A", "-", "--"}
)
_MISSING_IN_ANY_CASE = frozenset({"unknown", "missing", "not available", "not known"})
_NAMED = 5
"""Columns that a note names."""


@final
@dataclass(frozen=True)
class Profile:
    """What has to be known about a column before it is decided how to read it.

    Attributes
    ----------
    cells
        What its cells are.
    dtype
        How its library calls the type.
    rows
        Number of rows.
    values
        Number of cells that are not missing.
    distinct
        Number of distinct values; of ordered categories, number of levels. For floats that are
        not whole it need not be counted.
    whole
        Whether all values of a numeric column are whole numbers.
    low, high
        Smallest and largest value of a column of whole numbers.
    words
        Number of spaces per cell of text.
    written
        What most cells of text look like: ``"numbers"``, ``"dates"`` or None.
    examples
        A cell of text that looks so and, if there is one, a cell that does not.
    convertible
        Whether text can be read as dates on request, as in a table in memory.
    strangers
        Texts among cells that are numbers.
    odd
        Texts that are not numbers, in a column of text most of which are, the most frequent first.
    odd_cells
        Number of cells with such a text; 0 if they were not counted.
    """

    cells: CellType
    dtype: str
    rows: int
    values: int
    distinct: int = 0
    whole: bool = False
    low: int = 0
    high: int = 0
    words: float = 0.0
    written: str | None = None
    examples: tuple[str, ...] = ()
    convertible: bool = True
    strangers: tuple[str, ...] = ()
    odd: tuple[str, ...] = ()
    odd_cells: int = 0

    @property
    def are_codes(self) -> bool:
        """Whether whole numbers are read as categories: there are fewer than five of them."""
        return self.whole and self.distinct < NUMBERS

    def is_uncertain(self, integers: Kind | None) -> bool:
        """Whether first rows do not tell if a column is empty, constant or an identifier."""
        if self.values == 0:
            return True
        if self.cells is CellType.CATEGORY or integers is Kind.DISCRETE:
            return self.distinct > _MANY
        is_constant = self.cells is CellType.FLOAT and self.distinct == 1
        return self.whole and (is_constant or self.distinct == self.values)

    @property
    def numbers_rows(self) -> bool:
        """Whether whole numbers are all different although measured ones would repeat."""
        n = self.values
        if not self.whole or self.distinct < n or self.are_codes:
            return False
        return n * (n - 1) / 2 >= _COLLISIONS * (self.high - self.low + 1)


def sentinel(values: NDArray[Any]) -> tuple[int, int] | None:
    """A value such as -999 that is repeated far from all others, and how often it occurs."""
    if not len(values) or values.dtype.kind not in "iuf":
        return None
    for value in (values.min(), values.max()):
        if not np.isfinite(value) or not _NINES.fullmatch(f"{value:.17g}"):
            continue
        others = values[values != value]
        count = len(values) - len(others)
        if count < 2 or not len(others):
            continue
        low, high = float(others.min()), float(others.max())
        if max(low - value, value - high) > high - low:
            return int(value), count
    return None


def teachable(levels: int, rows: int) -> bool:
    """Whether a category of so many levels can have an edge at all.

    An edge to a binary variable adds ``levels - 1`` parameters, each of which costs
    ``log(rows) / 2`` in BIC, and gains at most ``rows * log(2)``. Edges to variables with more
    levels cost more in relation to what they gain.
    """
    if levels > MAX_LEVELS:
        return False
    return (levels - 1) * math.log(max(rows, 1)) <= 2 * rows * math.log(2)


def decide(
    name: str,
    profile: Profile,
    given: Kind | TimeUnit | None,
    *,
    integers: Kind | None = None,
    keep: bool = False,
) -> ColumnReading:
    """Decide how to read a column.

    Parameters
    ----------
    given
        What the user says about this column, or None.
    integers
        How the score wants integers, or None.
    keep
        Whether the column must not be left out, because the user gave a graph with it.
    """
    if profile.cells is CellType.TEMPORAL or isinstance(given, TimeUnit):
        return _decide_time(name, profile, given)
    if given is not None:
        if given is Kind.CONTINUOUS and profile.cells is CellType.CATEGORY:
            raise SchemaError(
                f"Column {name!r} holds {profile.cells.value} and cannot be continuous. "
                "Convert it to numbers, or leave it discrete."
            )
        return ColumnReading(name, ReadAs(given.value), "as requested")
    if profile.cells is CellType.EMPTY or profile.values == 0 < profile.rows:
        return ColumnReading(name, ReadAs.LEFT_OUT, NO_VALUES)
    if profile.cells is CellType.BOOLEAN:
        return ColumnReading(name, ReadAs.DISCRETE, "Booleans")
    if profile.cells is CellType.ORDERED and _are_numbers(profile, integers):
        return ColumnReading(name, ReadAs.CONTINUOUS, ORDERED)
    if profile.cells in (CellType.CATEGORY, CellType.ORDERED):
        return _decide_category(name, profile, integers, keep=keep)
    return _decide_number(name, profile, integers, keep=keep)


def _decide_time(name: str, profile: Profile, given: Kind | TimeUnit | None) -> ColumnReading:
    if profile.cells is not CellType.TEMPORAL:
        raise SchemaError(
            f"Column {name!r} holds {profile.cells.value}, not dates or times, and cannot be read "
            f"in {given}. Leave it out of kinds, or convert it to dates."
        )
    if not isinstance(given, TimeUnit):
        raise refused_type(name, _in_words(profile.dtype), temporal=True)
    words = _in_words(profile.dtype)
    since = SINCE if words.startswith("dates") and words != CellType.TEMPORAL.value else ""
    reason = f"{words}, in {given} as requested"
    return ColumnReading(name, ReadAs.DATE, reason, unit=f"{given}{since}")


def _in_words(dtype: str) -> str:
    """What a library's type of dates or times holds."""
    for start, words in _TIMES.items():
        if dtype.lower().startswith(start):
            return words
    return "dates or times"


def _decide_category(
    name: str, profile: Profile, integers: Kind | None, *, keep: bool
) -> ColumnReading:
    levels, rows = profile.distinct, profile.values
    shown, advice = "", None
    if profile.strangers:
        shown = f"numbers with texts among them, such as {profile.strangers[0]!r}"
    elif profile.written is not None:
        like, *unlike = profile.examples
        but = f" but not {unlike[0]!r}" if unlike else ""
        shown = f"text that looks like {profile.written}, such as {like!r}{but}"
        if profile.odd:
            some = f"{profile.odd_cells:,} of {rows:,}" if profile.odd_cells else "some"
            are = "is not a number" if profile.odd_cells == 1 else "are not numbers"
            shown = f"text that looks like numbers, but {some} cells {are}, such as"
            shown = f"{shown} {profile.odd[0]!r}"
    if keep or teachable(levels, rows):
        plural = "level" if levels == 1 else "levels"
        reason = f"{profile.cells.value}, {levels:,} {plural}"
        if shown and not keep and integers is not Kind.DISCRETE:
            advice = (
                f"Column {name!r} is {shown}, and was read as {levels:,} categories without an "
                f"order. {_conversion(name, profile)} If these are categories, say so: "
                f"kinds={{{name!r}: 'discrete'}}."
            )
        return ColumnReading(name, ReadAs.DISCRETE, reason, advice)
    counted = f"{levels:,} different values in {rows:,} rows"
    if shown:
        return ColumnReading(name, ReadAs.LEFT_OUT, shown, _conversion(name, profile))
    if profile.words >= _WORDS:
        return ColumnReading(name, ReadAs.FREE_TEXT, counted)
    if not profile.convertible:  # the texts themselves are not fetched from an engine
        advice = (
            f"If column {name!r} holds numbers or dates that are written as text, cast it first: "
            f"an engine does not convert text. To keep the column as categories, say "
            f"kinds={{{name!r}: 'discrete'}}."
        )
    if 2 * levels > rows:
        return ColumnReading(name, ReadAs.IDENTIFIER, counted, advice)
    many = f"{counted} are too many to learn an edge"
    return ColumnReading(name, ReadAs.LEFT_OUT, many, advice)


def _conversion(name: str, profile: Profile) -> str:
    """What to do about numbers and dates that are written as text."""
    if profile.strangers:
        words = ", ".join(map(repr, profile.strangers[:5]))
        means = "means" if len(profile.strangers) == 1 else "mean"
        return f"If {words} in column {name!r} {means} a missing value, replace such cells by NaN."
    if profile.odd:
        limit = next((text for text in profile.odd if is_bound(text)), None)
        means = (
            ""
            if limit is None
            else f" For a limit of detection such as {limit!r}, half of the limit is usual; it is "
            "an assumption."
        )
        return (
            f"Convert column {name!r} to numbers if it should be used as such, with these cells "
            f"replaced by numbers or NaN.{means}"
        )
    if not profile.convertible:
        return (
            f"An engine does not convert text: cast column {name!r} to {profile.written} first if "
            "it should be used as such."
        )
    if profile.written == "dates" and is_year_first(profile.examples):
        return f"To use column {name!r} as dates, choose a unit: kinds={{{name!r}: 'days'}}."
    if profile.written == "numbers" and is_unclear(profile.examples):
        return (
            f"The point in {profile.examples[0]!r} may mark decimals or separate thousands: "
            f"convert column {name!r} to numbers, or on the command line say which mark is the "
            "decimal one (--decimal . or --decimal ,)."
        )
    form = " (2024-05-31)" if profile.written == "dates" else ""
    return f"Convert column {name!r} to {profile.written}{form} if it should be used as such."


def _decide_number(
    name: str, profile: Profile, integers: Kind | None, *, keep: bool
) -> ColumnReading:
    counted = f"{profile.distinct:,} different values in {profile.values:,} rows"
    # One value tells nothing, so that it is what its type suggests.
    is_constant = profile.distinct <= 1 and profile.cells is CellType.FLOAT
    if not profile.whole or is_constant:
        return ColumnReading(name, ReadAs.CONTINUOUS, "floating-point numbers")
    if integers is None and profile.are_codes:
        reason = f"whole numbers from {profile.low} to {profile.high}"
        return ColumnReading(name, ReadAs.DISCRETE, reason)
    named = bool(_IDENTIFIER.search(name.lower()) or _CAPITAL_ID.search(name))
    each_once = profile.distinct == profile.values > 2
    if not keep and not profile.are_codes and (profile.numbers_rows or (named and each_once)):
        return ColumnReading(name, ReadAs.IDENTIFIER, f"whole numbers, {counted}")
    few = profile.distinct <= FEW
    if integers is Kind.DISCRETE and (profile.cells is CellType.INTEGER or few):
        if profile.distinct > MAX_LEVELS and not keep:
            return ColumnReading(name, ReadAs.LEFT_OUT, f"{counted} are too many levels")
        return ColumnReading(name, ReadAs.DISCRETE, "whole numbers, as the score needs")
    if integers is Kind.CONTINUOUS:
        return ColumnReading(name, ReadAs.CONTINUOUS, "whole numbers, as the score needs")
    reason = FEW_VALUES if few else "whole numbers with many different values"
    return ColumnReading(name, ReadAs.CONTINUOUS, reason)


def _are_numbers(profile: Profile, integers: Kind | None) -> bool:
    """Whether ordered categories are read as numbers, by the same rule as whole numbers."""
    return integers is Kind.CONTINUOUS or (integers is None and profile.distinct >= NUMBERS)


def finished(
    columns: Iterable[ColumnReading],
    schema: Schema,
    remarks: tuple[str, ...] = (),
    values: Mapping[str, NDArray[Any]] | None = None,
) -> Reading:
    """The reading of a table, with cautions about levels and numbers that may mean missing.

    Parameters
    ----------
    values
        The cells of continuous columns, where they are in memory.
    """
    read = tuple(columns)
    numbers, words = {}, {}
    for column in read:
        number = sentinel((values or {}).get(column.name, np.empty(0)))
        if number is not None:
            numbers[column.name] = number
        levels = schema[column.name].levels if column.used else ()
        word = next((level for level in levels if _means_missing(level)), None)
        if word is not None:
            words[column.name] = word
    return Reading(read, (*_of_numbers(numbers), *_of_words(words), *remarks))


def _means_missing(level: object) -> bool:
    """Whether a level is a text that often stands for a missing value."""
    if not isinstance(level, str):
        return False
    text = level.strip()
    return text in _MISSING_WORDS or text.casefold() in _MISSING_IN_ANY_CASE


def _of_numbers(found: Mapping[str, tuple[int, int]]) -> tuple[str, ...]:
    """Return a note on numbers that may stand for missing values, by column."""
    if not found:
        return ()
    has = [f"{name!r} has the value {x} in {n:,} rows" for name, (x, n) in found.items()]
    note = (
        f"Column{'' if len(found) == 1 else 's'} {_shortened(has, ', ')}, far from all others. If "
        "it means that the value is missing, replace it by NaN."
    )
    return (note,)


def _of_words(found: Mapping[str, object]) -> tuple[str, ...]:
    """Return a note on levels that may stand for missing values, by column."""
    if not found:
        return ()
    different = [repr(level) for level in dict.fromkeys(found.values())]
    if len(found) == 1:
        note = (
            f"Column {next(iter(found))!r} has the level {different[0]}, which is counted as a "
            "value like any other. If it means that the value is missing, replace it by None."
        )
    else:
        note = (
            f"Columns {_shortened([repr(name) for name in found], ', ')} have "
            f"{'the level' if len(different) == 1 else 'levels such as'} "
            f"{_shortened(different, ', ')}, which {'is' if len(different) == 1 else 'are'} "
            "counted as a value like any other. If it means that the value is missing, replace it "
            "by None."
        )
    return (note,)


def _shortened(parts: list[str], separator: str) -> str:
    more = len(parts) - _NAMED
    return separator.join(parts[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def refuse_nothing_left(columns: Iterable[ColumnReading]) -> None:
    """Raise `SchemaError` if every column was left out."""
    given = list(columns)
    if given and not any(column.used for column in given):
        shown = "; ".join(str(column) for column in given[:5])
        raise SchemaError(
            f"No column of the table can be used: {shown}. Say how to read some of them, for "
            f"instance kinds={{{given[0].name!r}: 'discrete'}}, or give other columns."
        )


def stated(schema: Schema) -> Reading:
    """The reading of data whose variables were known beforehand."""
    return Reading(
        tuple(
            ColumnReading(v.name, ReadAs(v.kind.value), "as the source states")
            for v in schema.variables
        )
    )
