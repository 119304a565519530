"""The lock on the private folder of a site or a party: one process at a time uses it."""

from __future__ import annotations

import os
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Self, final

from isthmus.errors import FederationError
from isthmus.joint.agreement.lookalikes import printable

LONGEST_NOTE = 300
"""Maximum number of bytes to read of the note about the holder."""


@final
class FolderLock:
    """The right to write to the ledger and to the state in a folder, until `close`.

    The operating system releases the lock when the process ends, however it ends.

    Parameters
    ----------
    purpose
        Purpose of the lock, for the message to other processes: "isthmus site join".

    Raises
    ------
    FederationError
        Another process holds the lock. The message says which one.
    """

    def __init__(self, folder: str | os.PathLike[str], purpose: str) -> None:
        import fcntl  # not available on every system

        path = Path(folder) / "lock"
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._handle, LONGEST_NOTE, 0).decode("utf-8", "replace")
            os.close(self._handle)
            raise FederationError(
                f"Another process uses the folder {folder}: "
                f"{printable(holder) or 'it has not said which one'}. Wait until it ends, or stop "
                "it: only one process at a time may write to a ledger."
            ) from error
        since = datetime.now(UTC).isoformat(timespec="seconds")
        note = f"process {os.getpid()} on {socket.gethostname()}, {purpose}, since {since}"
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, note.encode()[:LONGEST_NOTE], 0)

    def close(self) -> None:
        """Release the lock."""
        os.ftruncate(self._handle, 0)
        os.close(self._handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
