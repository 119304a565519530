"""Exit codes of the command line. They are stable and documented in the reference."""

from __future__ import annotations

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
    IsthmusError,
    LedgerError,
    MismatchError,
    MissingExtraError,
    MissingValuesError,
    NoDrawsError,
    RefusedError,
    SchemaError,
    StudyError,
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
    (OSError, ExitCode.FILE),
)


def code_of(error: IsthmusError | OSError) -> ExitCode:
    """Return the exit code of an error."""
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code
    return ExitCode.BUG
