"""Exit codes of the command line. They are stable and documented in the reference."""

from __future__ import annotations

import re
from enum import IntEnum

from isthmus.cli.parsing import UsageError
from isthmus.errors import (
    AbortedError,
    ArgumentError,
    DataError,
    DownloadError,
    FederationError,
    FormatError,
    GraphError,
    LedgerError,
    MismatchError,
    MissingExtraError,
    MissingValuesError,
    NoDrawsError,
    RefusedError,
    SchemaError,
    StudyError,
    TimeLimitError,
    UnplannedError,
)


class ExitCode(IntEnum):
    """Exit code of the command line."""

    DONE = 0
    BUG = 1
    USAGE = 2
    FILE = 10
    DATA = 11
    MISSING_VALUES = 12
    SCHEMA = 13
    MISMATCH = 14
    GRAPH = 15
    FORMAT = 16
    MISSING_EXTRA = 17
    UNPLANNED = 18
    ARGUMENT = 19
    FEDERATION = 20
    REFUSED = 21
    ABORTED = 22
    STUDY = 23
    LEDGER = 24
    PAUSED = 25
    NO_DRAWS = 26
    MEMORY = 27
    INTERRUPTED = 130


_CODES: tuple[tuple[type[Exception], ExitCode], ...] = (
    # Subclasses come before their base classes.
    (UsageError, ExitCode.USAGE),
    (ArgumentError, ExitCode.ARGUMENT),
    (MissingValuesError, ExitCode.MISSING_VALUES),
    (SchemaError, ExitCode.SCHEMA),
    (DataError, ExitCode.DATA),
    (DownloadError, ExitCode.FILE),
    (MismatchError, ExitCode.MISMATCH),
    (GraphError, ExitCode.GRAPH),
    (FormatError, ExitCode.FORMAT),
    (MissingExtraError, ExitCode.MISSING_EXTRA),
    (UnplannedError, ExitCode.UNPLANNED),
    (RefusedError, ExitCode.REFUSED),
    (AbortedError, ExitCode.ABORTED),
    (StudyError, ExitCode.STUDY),
    (LedgerError, ExitCode.LEDGER),
    (FederationError, ExitCode.FEDERATION),
    (NoDrawsError, ExitCode.NO_DRAWS),
    (TimeLimitError, ExitCode.NO_DRAWS),
    (OSError, ExitCode.FILE),
    (MemoryError, ExitCode.MEMORY),
)

_AS_OPTIONS = (
    (r"learn\(data, missing=\.\.\.\) with", "--missing with"),
    (r"kinds=\{'([^']*)': '(continuous|discrete)'\}", r"--\2 '\1'"),
    (r"(--discrete '[^']*') or 'continuous'", r"\1 or --continuous"),
    (r"kinds=\{'([^']*)': '(days)'\}", r"--dates '\1' \2"),
    (r"kinds=\{'([^']*)': Kind\.CONTINUOUS\}", r"--continuous '\1'"),
    (r"kinds=\{'([^']*)': Kind\.DISCRETE\}", r"--discrete '\1'"),
    (r"kinds names (\[.*?\]), which", r"--continuous, --discrete or --dates names \1, which"),
    (r"as JSON with isthmus\.io\.", "as .json."),
    (r"Leave it out of kinds, or", "Leave --dates out for it, or"),
    (r"learn\(\w+, transform=([A-Z]\w*\([^()]*\))\)", r"--transform '\1'"),
    (r"(?<!\()\b(score|search|missing)=([A-Z]\w*\([^()]*\))", r"--\1 '\2'"),
    (r"hidden=\['([^',]*)'[^\]]*\]", r"--hidden \1"),
    (r"\bUse (Boss\([^()]*\))", r"Use --search '\1'"),
    (r"\bisthmus\.(bootstrap|sample)\b", r"isthmus \1"),
    (r" ?solution\.standardised_refit\(\) [^.]*\.", ""),
    (r", in pandas for instance with df\.columns = df\.columns\.astype\(str\)", ""),
)
"""Patterns of Python code in messages, and their replacements on the command line."""


def sentence_of(error: Exception) -> str:
    """Return what an error says, in the words of the command line."""
    if isinstance(error, MemoryError):
        return f"There is not enough memory ({error}). Use fewer rows or columns."
    if isinstance(error, FileNotFoundError) and error.filename:
        return f"There is no file or folder {str(error.filename)!r}. Check the name."
    if isinstance(error, NotADirectoryError) and error.filename:
        return f"A part of {str(error.filename)!r} is a file and not a folder. Name a folder."
    if isinstance(error, FileExistsError) and error.filename:
        return f"There is a file {str(error.filename)!r} already. Give another name."
    if isinstance(error, OSError) and error.strerror:
        where = "" if error.filename is None else f" {str(error.filename)!r}:"
        return f"Reading or writing failed:{where} {error.strerror}."
    return in_options(str(error))


def in_options(text: str) -> str:
    """Return a message in which options of the command line replace arguments in Python."""
    for pattern, option in _AS_OPTIONS:
        text = re.sub(pattern, option, text)
    return text


def code_of(error: Exception) -> ExitCode:
    """Return the exit code of an error."""
    if isinstance(error, AbortedError) and getattr(error, "silent", False):
        return ExitCode.PAUSED
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code
    return ExitCode.BUG
