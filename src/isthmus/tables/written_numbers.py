"""Numbers and dates that a table holds as text."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:  # help texts import this module, and NumPy takes a tenth of a second
    import numpy as np
    from numpy.typing import NDArray

_AFFIXED = re.compile(r"([$€£¥]?)\s?([^$€£¥%\s](?:.*[^$€£¥%\s])?)\s?([%€$£¥]?)")
_NAMES = (
    "kg g mg µg μg ug ng lb lbs oz km m cm mm µm μm nm ft mi l L ml mL dl dL s sec ms min h hr hrs "
    "hours d day days weeks months yr yrs years °C °F K bpm mmHg Pa kPa hPa mol mmol W kW kWh V mV "
    "Hz kHz MHz J kJ kcal ha m² kg/m² mg/dl mg/dL mmol/l mmol/L g/l g/L g/dl g/dL km/h mph m/s "
    "EUR USD GBP CHF"
)
_UNITS = frozenset(_NAMES.split())
"""Units that are read if every cell has the same one; other letters may be part of a code."""
_UNIT = re.compile(r"(.*[\d.,)])\s?([^\W\d_]+(?:/[^\W\d_]+)?²?|°[CF])")
_NEGATIVE = re.compile(r"\(([^()+-]+)\)")
"""Accountants write negative numbers in parentheses."""
_SPACES = re.compile("[ '\u00a0\u202f\u2019]")
"""What separates thousands besides commas and points: spaces and apostrophes."""
_PLAIN = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_COMMA = re.compile(r"[+-]?(\d+(,\d+)?|,\d+)([eE][+-]?\d+)?")
_GROUPED = re.compile(r"[+-]?([1-9]\d{0,2}(,\d{3})+|\d{1,3})(\.\d+)?")
_POINTS = re.compile(r"[+-]?([1-9]\d{0,2}(\.\d{3})+|\d{1,3})(,\d+)?")
_SPACED = re.compile(r"[+-]?([1-9]\d{0,2}( \d{3})+|\d{1,3})([.,]\d+)?")
_PIECES = re.compile(r"[<>≤≥~]=?\s?([\d.,]+)|(\d+)/(\d+)")
"""A bound such as ``<0.3``, or two numbers such as ``120/80``: the user has to decide."""
_LEADING_ZERO = re.compile(r"[+-]?0\d+")
_DIGITS = re.compile(r"[+-]?\d+")
_DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}\b.*|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}\b.*")
_YEAR_FIRST = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(.*)", re.DOTALL)
"""No other order is read: nobody can tell whether 03/04/2024 is in March or in April."""
_MOST = 0.9
"""Share of the different texts of a column that have to look like numbers or dates."""

_STYLES: tuple[tuple[re.Pattern[str], Callable[[str], str], str], ...] = (
    (_PLAIN, lambda text: text, "."),
    (_GROUPED, lambda text: text.replace(",", ""), "."),
    (_POINTS, lambda text: text.replace(".", "").replace(",", "."), ","),
    (_SPACED, lambda text: text.replace(" ", "").replace(",", "."), ".,"),
    (_COMMA, lambda text: text.replace(",", "."), ","),
)
"""Ways to write a number, how each becomes one that Python reads, and its decimal marks."""
_UNCLEAR = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}")
"""Decimals or thousands."""


@final
@dataclass(frozen=True)
class Writing:
    """How the numbers of a column are written.

    Attributes
    ----------
    style
        Which of the ways to write a number.
    before, after
        Currency, percent sign or unit of all cells.
    """

    style: int
    before: str = ""
    after: str = ""

    def read(self, texts: Sequence[str]) -> NDArray[np.float64] | str:
        """The numbers that texts stand for, or a text that is not written in this way."""
        import numpy as np

        pattern, convert, _ = _STYLES[self.style]
        numbers = []
        for text in texts:
            bare, before, after = _bare(text)
            fits = pattern.fullmatch(bare) or _DIGITS.fullmatch(bare)
            if not fits or (before, after) != (self.before, self.after):
                return text
            numbers.append(float(convert(bare)))
        return np.array(numbers)


def writing_of(
    texts: Sequence[str], *, decimal: str | None = None, zeros: bool = False
) -> Writing | None:
    """How texts are written as numbers; None if some text is no number, or if they are ambiguous.

    Texts may be plain numbers, have separators of thousands, a decimal comma, parentheses or a
    typographic minus for negative numbers, and the same currency, percent sign or unit everywhere.
    They are ambiguous if two ways of writing numbers fit all of them and do not give proportional
    numbers, such as ``"950"`` and ``"1.250"``. Commas before three digits separate thousands if
    there are also numbers without a comma. Codes with leading zeros are no numbers.

    Parameters
    ----------
    decimal
        The decimal mark, if it is known.
    zeros
        Whether texts with leading zeros are numbers, too.
    """
    import numpy as np

    parts = [_bare(text) for text in texts]
    bare = [text for text, _, _ in parts]
    if len({(before, after) for _, before, after in parts}) != 1:
        return None
    if not zeros and any(map(_LEADING_ZERO.fullmatch, bare)):
        return None
    if all(_NEGATIVE.fullmatch(text.strip()) for text in texts):
        return None  # numbers of paragraphs, for instance
    readings: list[tuple[int, NDArray[np.float64]]] = []
    for place, (pattern, convert, marks) in enumerate(_STYLES):
        if decimal is not None and pattern is _SPACED and _has_other(bare, decimal):
            continue
        if (decimal or marks) in marks and all(map(pattern.fullmatch, bare)):
            readings.append((place, np.array([float(convert(text)) for text in bare])))
            if pattern is _GROUPED and any("," in text for text in bare):
                break  # "950" and "1,250": nobody writes decimals like this
    if not readings or not np.isfinite(readings[0][1]).all():
        return None
    first = readings[0][1]
    if not all(_are_proportional(first, other) for _, other in readings[1:]):
        return None
    return Writing(readings[0][0], *parts[0][1:])


def _has_other(texts: Sequence[str], decimal: str) -> bool:
    """Whether texts have the mark that does not mark decimals."""
    other = "." if decimal == "," else ","
    return any(other in text for text in texts)


def numbers_of(texts: Sequence[str], *, decimal: str | None = None) -> NDArray[np.float64] | None:
    """The numbers that texts stand for; None if there is no single way to read them."""
    writing = writing_of(texts, decimal=decimal)
    numbers = None if writing is None else writing.read(texts)
    return None if isinstance(numbers, str) else numbers


def decimal_of(texts: Iterable[str]) -> str | None:
    """The decimal mark that numbers show, such as the comma in ``"1,5"`` or ``"1.234.567"``.

    None if no text shows it, if they contradict each other, or if most texts are no numbers.
    ``"1.250"`` shows nothing: the point may mark decimals or separate thousands.
    """
    bare = [_bare(text)[0] for text in texts]
    found: set[str] = set()
    numbers = 0
    for text in bare:
        marks = {m for pattern, _, m in _STYLES if m in (".", ",") and pattern.fullmatch(text)}
        numbers += bool(marks)
        if len(marks) == 1 and not _UNCLEAR.fullmatch(text) and ("," in text or "." in text):
            found |= marks
    return found.pop() if len(found) == 1 and numbers >= _MOST * len(bare) else None


def is_unclear(texts: Iterable[str]) -> bool:
    """Whether numbers have points that may separate thousands as well as mark decimals."""
    bare = [_bare(text)[0] for text in texts]
    return any("." in text and _UNCLEAR.fullmatch(text) for text in bare)


def has_leading_zero(text: str) -> bool:
    """Whether a text is a whole number with leading zeros, as codes have."""
    return _LEADING_ZERO.fullmatch(text.strip()) is not None


def _bare(text: str) -> tuple[str, str, str]:
    """A text as a number without its currency, percent sign or unit, and these."""
    text = text.strip().replace("\u2212", "-")
    united = _UNIT.fullmatch(text)
    if united is not None and united[2] in _UNITS:
        return _SPACES.sub(" ", united[1]), "", united[2]
    negative = _NEGATIVE.fullmatch(text)
    affixed = _AFFIXED.fullmatch(text if negative is None else negative[1])
    if affixed is None:
        return text, "", ""
    before, middle, after = affixed.groups()
    return ("" if negative is None else "-") + _SPACES.sub(" ", middle), before, after


def _are_proportional(first: NDArray[np.float64], second: NDArray[np.float64]) -> bool:
    """Whether two readings differ only in their unit, which no result depends on."""
    import numpy as np

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
            # What makes numbers ambiguous is the best example.
            telling = [text for text in alike if not others and is_unclear([text])]
            return what, ((telling or alike)[0], *others[:1])
    return None, ()


def _is_number(text: str) -> bool:
    pieces = _PIECES.fullmatch(text.strip())
    parts = [text] if pieces is None else [piece for piece in pieces.groups() if piece]
    return all(any(p.fullmatch(_bare(part)[0]) for p, _, _ in _STYLES) for part in parts)


def is_bound(text: str) -> bool:
    """Whether a text is a bound of a number, such as ``<0.1``."""
    return text.strip()[:1] in "<>≤≥" and _PIECES.fullmatch(text.strip()) is not None


def not_numbers(texts: Iterable[str]) -> list[str]:
    """Return the texts that are not written as one number."""
    return [t for t in texts if not any(p.fullmatch(_bare(t)[0]) for p, _, _ in _STYLES)]


def _is_date(text: str) -> bool:
    return _DATE.fullmatch(text.strip()) is not None


def is_year_first(texts: Sequence[str]) -> bool:
    """Whether texts are dates that can be read."""
    return all(_moment(text.strip()) is not None for text in texts)


def seconds_of(texts: Sequence[str]) -> NDArray[np.float64] | str:
    """Dates that begin with the year as seconds since 1970, or a text that is no such date."""
    import numpy as np

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
