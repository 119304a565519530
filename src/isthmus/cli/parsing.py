"""The parser of the command line: `argparse`, with errors that say what to do.

`argparse` is part of Python, so that the command line works in the environments of sites and
parties, which have few packages on purpose. It also reads options with several values, which
Typer does not (``--forbidden FROM TO``, several times), and starts in a fraction of the time.
"""

from __future__ import annotations

import argparse
import difflib
import errno
import re
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any, NoReturn, TypeVar, final

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
    TimeLimitError,
    UnplannedError,
)

T = TypeVar("T")


class UsageError(IsthmusError):
    """The command line cannot be read."""


class _Formatter(argparse.HelpFormatter):
    """Wraps descriptions, and leaves examples as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("example:"):
            return text
        return super()._fill_text(text, width, indent)


@final
class Parser(argparse.ArgumentParser):
    """A parser that raises `UsageError` with a suggestion, and has an example in its help."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", _Formatter)
        # Abbreviated options would break scripts when an option is added.
        super().__init__(allow_abbrev=False, **options)
        self.example = ""

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            leaf: Parser = getattr(options, "leaf", self)
            leaf.refuse_unknown(unknown)
        return options

    def refuse_unknown(self, unknown: Sequence[str]) -> NoReturn:
        """Raise an error about arguments that no option takes."""
        name = unknown[0].partition("=")[0]
        if name.startswith("-"):
            known = [option for option in self._option_string_actions if option.startswith("--")]
            self.error(f"there is no option {name}{suggestion(name, known)}")
        self.error(f"{name!r} is one argument too many; quote a name that has spaces")

    def error(self, message: str) -> NoReturn:
        """Raise a `UsageError` instead of printing the usage and exiting."""
        sentence = message[:1].upper() + message[1:]
        if sentence[-1] not in ".?":
            sentence += "."
        example = f" For instance: {self.example}" if "required" in message else ""
        raise UsageError(f"{sentence}{example or f' See {self.prog} --help.'}")

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError:
            wanted = {int: "a whole number, such as 7", float: "a number, such as 2.5"}
            if action.type not in wanted:
                raise
            what = wanted[action.type]
            raise argparse.ArgumentError(action, f"{arg_string!r} is not {what}") from None

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            raise argparse.ArgumentError(
                action, f"{value!r} is unknown{suggestion(str(value), map(str, action.choices))}"
            )


def suggestion(given: str, known: Iterable[str]) -> str:
    """Return ``". Did you mean ...?"``, or the names that are known if none is similar."""
    names = list(known)
    by_lower = {name.lower().lstrip("-"): name for name in names}  # dashes are no similarity
    close = difflib.get_close_matches(given.lower().lstrip("-"), by_lower, 1, 0.6)
    if close:
        return f". Did you mean {by_lower[close[0]]}?"
    return f". Known are: {', '.join(names)}"


def match_name(given: str, known: Iterable[str]) -> str:
    """Return the known name that equals the given one without regard to case, ``-`` and ``_``."""
    names = list(known)
    if given in names:
        return given
    folded = {_folded(name): name for name in names}
    if _folded(given) not in folded:
        raise argparse.ArgumentTypeError(f"{given!r} is unknown{suggestion(given, names)}")
    return folded[_folded(given)]


def _folded(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")


def one_of(known: Sequence[str]) -> Callable[[str], str]:
    """Return a type of options with these values, in upper or lower case."""
    return lambda given: match_name(given, known)


def add_output_option(
    command: argparse.ArgumentParser, text: str, *, required: bool = False
) -> None:
    """Add the option for the files to write, with its help."""
    command.add_argument(
        "-o",
        "--output",
        action="append",
        default=[],
        required=required,
        type=Path,
        metavar="FILE",
        help=text,
    )


def at_least(low: int, most: int | None = None) -> Callable[[str], int]:
    """Return a type of options that are whole numbers from ``low`` to ``most``."""

    def read(given: str) -> int:
        try:
            number = int(given)
        except ValueError:
            number = low - 1
        if number < low:
            raise argparse.ArgumentTypeError(
                f"{given!r} is not a whole number of at least {low}"
            ) from None
        if most is not None and number > most:
            raise argparse.ArgumentTypeError(f"{given!r} is more than {most:,}")
        return number

    return read


def host_name(given: str) -> str:
    """Read the name or the address of a host."""
    if not re.fullmatch(r"[A-Za-z0-9._:-]{1,253}", given):
        raise argparse.ArgumentTypeError(
            f"{given!r} is not the name or address of a host, such as coordinator.example.org"
        )
    return given


def host_and_port(given: str) -> str:
    """Read an address of the form HOST:PORT."""
    host, _, port = given.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise argparse.ArgumentTypeError(
            f"{given!r} must have the form HOST:PORT, such as coordinator.example.org:9092"
        )
    host_name(host.strip("[]"))
    return given


def port(given: str) -> int:
    """Read the number of a TCP port."""
    if not given.isdecimal() or not 0 < int(given) < 65536:
        raise argparse.ArgumentTypeError(f"{given!r} is not a port, a number from 1 to 65535")
    return int(given)


def seconds(given: str) -> float:
    """Read a positive number of seconds."""
    try:
        number = float(given)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{given!r} is not a positive number of seconds")
    return number


# --- Exit codes of the command line. They are stable and documented in the reference ------------


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
        if error.errno == errno.ENOSPC:
            return f"Writing failed:{where} the disk is full. Make room, and repeat the command."
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
