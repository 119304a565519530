"""Files that are there as a whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a place to write to, which becomes the file at the end.

    If writing fails or is interrupted, an earlier file of this name stays as it was, and half of a
    new one is not left behind.
    """
    if path.exists() and not path.is_file():
        yield path  # a device or a pipe
        return
    target = path.resolve()  # not the link that leads to it
    place = target.with_name(f".part-{target.name}")
    try:
        yield place
        if target.exists():
            shutil.copymode(target, place)
        place.replace(target)
    except OSError as error:
        if error.filename is not None and Path(error.filename).name == place.name:
            error.filename = str(path)
        raise
    finally:
        place.unlink(missing_ok=True)
