"""Files that only their owner can read, and that are on disk when the functions return."""

from __future__ import annotations

import os
from pathlib import Path


def write_private(path: str | os.PathLike[str], data: bytes = b"") -> None:
    """Write a new file, or raise `FileExistsError`."""
    _write(Path(path), data, os.O_EXCL)


def replace_private(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file, which replaces an earlier one completely or not at all."""
    beside = Path(path).with_name(Path(path).name + ".new")
    _write(beside, data, os.O_TRUNC)
    beside.replace(path)
    sync_folder(beside.parent)


def _write(path: Path, data: bytes, mode: int) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | mode, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Synchronise a folder to disk, so that a new file in it survives a crash."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
