"""Errors and warnings of the library.

Each message says what was given, what is allowed and what to do next.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from inspect import currentframe


class IsthmusError(Exception):
    """Base class of all errors that the library raises."""


class ArgumentError(IsthmusError, TypeError, ValueError):
    """An argument has a wrong type or value."""


class DataError(IsthmusError, ValueError):
    """The data cannot be used without changes."""


class MissingValuesError(DataError):
    """The data have missing values. The message names the columns."""


class SchemaError(DataError):
    """Names, types or levels of columns do not match what an operation needs."""


class UnplannedError(IsthmusError, LookupError):
    """A requested contingency table is not part of the plan."""


class MismatchError(IsthmusError, TypeError):
    """A score, a search and a source cannot be combined. The message names alternatives.

    Attributes
    ----------
    fact
        The message without its advice, for callers that have more specific advice.
    """

    def __init__(self, fact: str, advice: str = "") -> None:
        super().__init__(f"{fact} {advice}" if advice else fact)
        self.fact = fact


class GraphError(IsthmusError, ValueError):
    """A graph is invalid: it has a cycle, an unknown node or no consistent extension."""


class KnowledgeError(GraphError):
    """Background knowledge contradicts itself or names unknown nodes."""


class FormatError(IsthmusError, ValueError):
    """A file or a text does not have the expected format."""


class DownloadError(IsthmusError, OSError):
    """A file cannot be downloaded, or has another checksum than expected."""


class NoDrawsError(IsthmusError, RuntimeError):
    """A sampler was stopped before its first draw, so there is no posterior to return."""


class TimeLimitError(IsthmusError, TimeoutError):
    """The time limit ended before there was a first result, while data were read."""


class MissingExtraError(IsthmusError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str | None, purpose: str) -> None:
        # Without an extra of Isthmus, the package itself is installed.
        installed = package if extra is None else f"isthmus[{extra}]"
        super().__init__(
            f"{purpose} needs {package!r}, which is not installed. "
            f"Install it with: pip install '{installed}'"
        )


class FederationError(IsthmusError, RuntimeError):
    """A joint computation failed. What left a party before that is in its ledger."""


class RefusedError(FederationError):
    """A site refuses to answer. The message names the rule that forbids it."""


class AbortedError(FederationError):
    """Too few parties answered, or one violated the protocol. This party has no result.

    Attributes
    ----------
    silent
        Names of the sites that did not answer.
    reason
        A short name of what happened, for programs; empty where there is only one way to end.
    """

    def __init__(self, message: str, *, silent: tuple[str, ...] = (), reason: str = "") -> None:
        super().__init__(message)
        self.silent = silent
        self.reason = reason


class StudyError(FederationError, ValueError):
    """A study, a policy or one of their signatures is invalid."""


class LedgerError(FederationError):
    """A ledger or a journal was modified, or cannot be written."""


class IsthmusWarning(UserWarning):
    """Base class of all warnings of the library."""


class ModelWarning(IsthmusWarning):
    """A fitted network is simpler than the model that its graph was learned with."""


class DataWarning(IsthmusWarning):
    """The data can be used, but have a property that may affect the result."""


class NotesWarning(DataWarning):
    """A result has notes on its data or its graph, which its print and ``.notes`` contain.

    Attributes
    ----------
    notes
        The notes to read; those that only confirm what was asked for are not among them.
    """

    def __init__(self, notes: Sequence[str]) -> None:
        some = "is a note" if len(notes) == 1 else f"are {len(notes)} notes"
        super().__init__(
            f"There {some} on these data or this graph: print the result, or see its .notes."
        )
        self.notes = tuple(notes)


_CALLERS = ("isthmus", "isthmus_flower", "sklearn", "joblib")
"""Packages whose lines a warning does not point to."""


def warn(message: str | IsthmusWarning, category: type[IsthmusWarning] = DataWarning) -> None:
    """Issue a warning that points to the line of the user that called the library."""
    frame, level, place = currentframe(), 0, 1
    while frame is not None:
        level += 1
        name = frame.f_globals.get("__name__", "")
        place = level + 1 if name.partition(".")[0] in _CALLERS else place
        frame = frame.f_back
    warnings.warn(message, category, stacklevel=place)


# --- Numbers in sentences, and nouns with their numbers and articles ----------------------------


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, which gets an s in the plural: "1 study", "2 studies"."""
    if number == 1:
        return f"{number} {noun}"
    ends_in_ies = noun.endswith("y") and noun[-2:-1] not in "aeou"
    return f"{number} {noun[:-1]}ies" if ends_in_ies else f"{number} {noun}s"


def rounded(value: float, digits: int = 2) -> str:
    """Return a number with at least so many significant digits, and no exponent below 10⁷."""
    text = f"{value:.{digits}g}"
    return f"{value:,.0f}" if "e+" in text and abs(value) < 1e7 else text


def a_type(value: object) -> str:
    """Return the name of the type of a value with its article: "a dict", "an int"."""
    name = type(value).__name__
    return f"an {name}" if name[0] in "AEIOaeio" or name == "ndarray" else f"a {name}"
