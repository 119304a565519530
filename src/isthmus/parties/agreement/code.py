"""The hash of the installed package, by which a study names the versions that may take part."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from isthmus.parties.identity import digest


@lru_cache(maxsize=1)
def code_hash() -> str:
    """Return the SHA-256 of the source files of this package as installed.

    It depends on the paths of the files within the package and on their contents, and not on where
    the package is installed.
    """
    return hash_of_package(Path(str(files("isthmus"))))


def hash_of_package(root: Path) -> str:
    """Return the SHA-256 of all source files below a folder."""
    parts: list[bytes] = []
    for path in sorted(root.rglob("*.py"), key=lambda path: path.relative_to(root).as_posix()):
        parts += [path.relative_to(root).as_posix().encode(), path.read_bytes()]
    return "sha256:" + digest(*parts).hex()
