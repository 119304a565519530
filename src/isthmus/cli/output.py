"""What a command prints: lines for people, or with ``--json`` one JSON document for programs."""

from __future__ import annotations

import codecs
import json
import os
import re
import shlex
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any

from isthmus.tables.databases import without_secret

# --- Streams and what they can print -------------------------------------------------------------
#
# Standard output and standard error, whatever they are: closed, ASCII only, or a terminal.

_IN_ASCII = {"→": "->", "—": "--", "–": "-", "…": "...", "×": "x", "±": "+/-", "ε": "epsilon"}
_COMMANDS_OF_TERMINALS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters besides tabs and line breaks, and those that reverse what follows."""


def prepare_streams() -> None:
    """Make every text printable: replace characters that a stream cannot encode."""
    codecs.register_error("isthmus", _replace)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            stream = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the end
            setattr(sys, name, stream)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="isthmus")


def prints_unicode() -> bool:
    """Whether standard output takes every character."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return codecs.lookup(encoding).name.startswith("utf")


def data_output() -> IO[str]:
    """Return standard output for data, in UTF-8 as all files: nothing may be replaced in them."""
    if not prints_unicode() and isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    return sys.stdout


def harmless(text: str) -> str:
    """Return a text without characters that control a terminal, as names of columns may have."""
    return _COMMANDS_OF_TERMINALS.sub("�", text)


def _replace(error: UnicodeError) -> tuple[str, int]:
    """Return replacements for characters that a stream cannot encode, such as arrows."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    escaped = (_IN_ASCII.get(c) or c.encode("ascii", "backslashreplace").decode() for c in lacking)
    return "".join(escaped), error.end


# --- What a command prints: lines for people, or one JSON document -------------------------------


class Output:
    """Collects what a command says.

    Parameters
    ----------
    as_json
        Print one JSON document to standard output at the end. Lines for people then go to
        standard error.
    command_line
        The command as it was typed, without the passwords of database URLs.
    """

    def __init__(self, *, as_json: bool = False, command_line: str = "") -> None:
        self.as_json = as_json
        self.command_line = command_line
        self.table: str | None = None
        self.facts: dict[str, Any] = {}
        self.notes: list[str] = []

    def say(self, text: str) -> None:
        """Print a line for people immediately."""
        if self.as_json:
            sys.stderr.write(harmless(text) + "\n")
        else:
            _print(harmless(text))

    def note(self, text: str) -> None:
        """Print a warning, once."""
        if text in self.notes:
            return
        self.notes.append(text)
        sys.stderr.write(f"note: {harmless(text)}\n")

    def finish(self, command: str, code: int, error: str | None) -> None:
        """Print the document, if one was requested."""
        if not self.as_json:
            return
        document = {"command": command, "exit_code": code, "error": error, **self.facts}
        document["notes"] = self.notes
        text = json.dumps(document, ensure_ascii=not prints_unicode(), default=str)
        # JSON has no numbers that are not finite, which Python writes as NaN.
        finite = json.loads(text, parse_constant=lambda _: None)
        _print(json.dumps(finite, ensure_ascii=not prints_unicode(), indent=1))


def _print(text: str) -> None:
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output()  # the reader has seen enough; the rest of the command is done


def discard_output() -> None:
    """Discard what cannot be printed: Python must not flush to a closed pipe at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


_current = Output()


def begin(arguments: Sequence[str]) -> Output:
    """Begin the output of a command with these arguments."""
    global _current  # noqa: PLW0603 - there is one standard output
    words = [without_secret(word) for word in arguments]
    _current = Output(as_json="--json" in words, command_line=shlex.join(["isthmus", *words]))
    return _current


def name_table(file: str) -> None:
    """Remember which table a command reads, for reports."""
    _current.table = without_secret(file) if "://" in file else Path(file).name


def about_run() -> dict[str, str | None]:
    """Return what reports say about the run: the table and the command as it was typed."""
    return {"table": _current.table, "command": _current.command_line}


def say(text: str) -> None:
    """Print a line for people immediately."""
    _current.say(text)


def was_noted(text: str) -> bool:
    """Return whether a note was printed already."""
    return text in _current.notes


def give(**facts: Any) -> None:
    """Add facts to the JSON document of the command."""
    _current.facts.update(facts)
