"""Numbers and dates that a table holds as text."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

_AFFIXED = re.compile(r"([$€£¥]?)\s?([^$€£¥%\s](?:.*[^$€£¥%\s])?)\s?([%€$£¥]?)")
_SPACES = re.compile("[ '\u00a0\u202f\u2019]")
"""What separates thousands besides commas and points: spaces and apostrophes."""
_PLAIN = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_COMMA = re.compile(r"[+-]?(\d+(,\d+)?|,\d+)([eE][+-]?\d+)?")
_GROUPED = re.compile(r"[+-]?([1-9]\d{0,2}(,\d{3})+|\d{1,3})(\.\d+)?")
_POINTS = re.compile(r"[+-]?([1-9]\d{0,2}(\.\d{3})+|\d{1,3})(,\d+)?")
_SPACED = re.compile(r"[+-]?([1-9]\d{0,2}( \d{3})+|\d{1,3})([.,]\d+)?")
_LEADING_ZERO = re.compile(r"[+-]?0\d+")
_DIGITS = re.compile(r"[+-]?\d+")
_DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}\b.*|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}\b.*")
_YEAR_FIRST = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(.*)", re.DOTALL)
"""No other order is read: nobody can tell whether 03/04/2024 is in March or in April."""
_MOST = 0.9
"""Share of the different texts of a column that have to look like numbers or dates."""

_STYLES: tuple[tuple[re.Pattern[str], Callable[[str], str]], ...] = (
    (_PLAIN, lambda text: text),
    (_GROUPED, lambda text: text.replace(",", "")),
    (_POINTS, lambda text: text.replace(".", "").replace(",", ".")),
    (_SPACED, lambda text: text.replace(" ", "").replace(",", ".")),
    (_COMMA, lambda text: text.replace(",", ".")),
)
"""Ways to write a number, and how each becomes one that Python reads."""


def numbers_of(texts: Sequence[str]) -> NDArray[np.float64] | None:
    """The numbers that texts stand for; None if some text is no number, or if they are ambiguous.

    Texts may be plain numbers, have separators of thousands, a decimal comma, and the same
    currency or percent sign everywhere. They are ambiguous if two ways of writing numbers fit all
    of them and do not give proportional numbers, such as ``"950"`` and ``"1.250"``. Commas before
    three digits separate thousands if there are also numbers without a comma. Codes with leading
    zeros are no numbers.
    """
    bare = _without_signs(texts)
    if bare is None or any(_LEADING_ZERO.fullmatch(text) for text in bare):
        return None
    readings = []
    for pattern, convert in _STYLES:
        if all(pattern.fullmatch(text) for text in bare):
            readings.append(np.array([float(convert(text)) for text in bare]))
            if pattern is _GROUPED and any("," in text for text in bare):
                break  # "950" and "1,250": nobody writes decimals like this
    if not readings or not np.isfinite(readings[0]).all():
        return None
    first = readings[0]
    return first if all(_are_proportional(first, other) for other in readings[1:]) else None


def _without_signs(texts: Sequence[str]) -> list[str] | None:
    """The texts without the currency or percent sign that all of them have."""
    found = [_AFFIXED.fullmatch(text.strip()) for text in texts]
    if not found or None in found:
        return None
    parts = [match.groups() for match in found if match is not None]
    if len({(before, after) for before, _, after in parts}) > 1:
        return None
    return [_SPACES.sub(" ", middle) for _, middle, _ in parts]


def _are_proportional(first: NDArray[np.float64], second: NDArray[np.float64]) -> bool:
    """Whether two readings differ only in their unit, which no result depends on."""
    largest = int(np.argmax(np.abs(first)))
    if second[largest] == 0:
        return bool((first == second).all())
    return bool(np.allclose(first, second * (first[largest] / second[largest]), rtol=1e-12))


def are_digits(texts: Iterable[str]) -> bool:
    """Whether all texts are whole numbers without any other mark, as identifiers are, too."""
    return all(_DIGITS.fullmatch(text.strip()) for text in texts)


def looks_written(texts: Iterable[str]) -> tuple[str | None, tuple[str, ...]]:
    """Whether most of the texts are numbers or dates, with examples of those that are and are not.

    Codes with leading zeros are neither.
    """
    given = list(texts)
    if any(_LEADING_ZERO.fullmatch(text.strip()) for text in given):
        return None, ()
    for what, fits in (("numbers", _is_number), ("dates", _is_date)):
        alike = [text for text in given if fits(text)]
        if alike and len(alike) >= _MOST * len(given):
            others = [text for text in given if not fits(text)]
            return what, (alike[0], *others[:1])
    return None, ()


def _is_number(text: str) -> bool:
    bare = _without_signs([text])
    return bare is not None and any(pattern.fullmatch(bare[0]) for pattern, _ in _STYLES)


def _is_date(text: str) -> bool:
    return _DATE.fullmatch(text.strip()) is not None


def is_year_first(texts: Sequence[str]) -> bool:
    """Whether texts are dates that can be read."""
    return all(_moment(text.strip()) is not None for text in texts)


def seconds_of(texts: Sequence[str]) -> NDArray[np.float64] | str:
    """Dates that begin with the year as seconds since 1970, or a text that is no such date."""
    seconds = []
    for text in texts:
        moment = _moment(text.strip())
        if moment is None:
            return text
        seconds.append(moment)
    return np.array(seconds)


def _moment(text: str) -> float | None:
    found = _YEAR_FIRST.fullmatch(text)
    if found is None:
        return None
    year, month, day, rest = found.groups()
    try:
        moment = dt.datetime.fromisoformat(f"{year}-{month:0>2}-{day:0>2}{rest}")
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).timestamp()
