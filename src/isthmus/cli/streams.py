"""Standard output and standard error, whatever they are: closed, ASCII only, or a terminal."""

from __future__ import annotations

import codecs
import os
import re
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import IO

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
