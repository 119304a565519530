"""Files that only their owner can read, and that are on disk when the functions return."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from isthmus.errors import FederationError, FormatError, LedgerError


def write_private(path: str | os.PathLike[str], data: bytes = b"") -> None:
    """Write a new file, or raise `FileExistsError`."""
    _write(Path(path), data, os.O_EXCL)


def replace_private(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file, which replaces an earlier one completely or not at all."""
    beside = Path(path).with_name(Path(path).name + ".new")
    _write(beside, data, os.O_TRUNC)
    beside.replace(path)
    sync_folder(beside.parent)


def file_locks() -> ModuleType:
    """Return the module that locks files, or raise `FederationError` where there is none."""
    try:
        import fcntl
    except ImportError:
        raise FederationError(
            "This system cannot lock files as ledgers need it. Run sites, coordinators and parties "
            "on Linux or macOS; on Windows, in WSL or a container."
        ) from None
    return fcntl


def append_bytes(handle: int, data: bytes) -> None:
    """Write at the end of an open file, completely or not at all."""
    before, left = os.fstat(handle).st_size, memoryview(data)
    try:
        while left:
            left = left[os.write(handle, left) :]
        os.fsync(handle)
    except OSError:
        os.ftruncate(handle, before)
        raise


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise `LedgerError` if what must be on disk before an answer cannot be written."""
    try:
        yield
    except OSError as error:
        raise LedgerError(
            f"{path} cannot be written ({error.strerror or error}), so nothing is sent. Free some "
            "disk space, or repair the file system."
        ) from error


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


def require_private(path: Path) -> None:
    """Raise `FormatError` if others than the owner can read or change a file."""
    mode = path.stat().st_mode & 0o777
    if os.name == "posix" and mode & 0o077:
        raise FormatError(
            f"The key {path} can be read or changed by others (mode {mode:o}). If nobody did, run "
            "chmod 600 on it. Otherwise replace it by a new one."
        )
