"""Read and write text files; files whose name ends in .gz are compressed."""

from __future__ import annotations

import gzip
import zlib
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.errors import FormatError

if TYPE_CHECKING:
    from os import PathLike

_GZIP = b"\x1f\x8b"


def read_text(path: str | PathLike[str]) -> str:
    """Return the text of a file, which may be compressed; line endings are not changed."""
    raw = Path(path).read_bytes()
    try:
        if raw.startswith(_GZIP):
            raw = gzip.decompress(raw)
        return raw.decode("utf-8-sig")
    except (OSError, EOFError, zlib.error) as error:
        raise FormatError(f"{fspath(path)} cannot be decompressed: {error}.") from None
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise FormatError(
            f"{fspath(path)} is not UTF-8 text (line {line}). Save it as UTF-8 first."
        ) from None


def write_text(text: str, path: str | PathLike[str]) -> None:
    """Write text as UTF-8; the same text always gives the same file."""
    raw = text.encode("utf-8")
    if fspath(path).endswith(".gz"):
        raw = gzip.compress(raw, mtime=0)
    Path(path).write_bytes(raw)
