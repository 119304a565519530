"""The file format of statistics: one ``.npz`` of plain arrays and a JSON header; never a pickle."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import FormatError

Path: TypeAlias = str | os.PathLike[str]

HEADER = "header"


def write(
    path: Path, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], *, compress: bool
) -> None:
    """Write a header and arrays under exactly this name."""
    text = json.dumps(header, ensure_ascii=False, allow_nan=False)
    packed = {HEADER: np.frombuffer(text.encode(), dtype=np.uint8), **arrays}
    method = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    # Not np.savez: only new versions of it can be told to refuse pickles.
    with zipfile.ZipFile(path, "w", method, allowZip64=True) as archive:
        for name, values in packed.items():
            entry = zipfile.ZipInfo(f"{name}.npy")  # a fixed date: the same content, the same bytes
            entry.compress_type = method
            with archive.open(entry, "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asanyarray(values), allow_pickle=False)


def read(path: Path, expected: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read a header and arrays; refuse everything that is not `expected`."""
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            raise FormatError(f"{path} is a single array, not a file of {expected!r}.")
        with loaded as file:
            arrays = {name: file[name] for name in file.files}
    except (ValueError, zipfile.BadZipFile, EOFError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(
            f"{path} is not a file of statistics ({error}). "
            "Give one that Moments.save or Counts.save wrote."
        ) from error
    header = _header(path, arrays)
    if header.get("format") != expected:
        raise FormatError(
            f"{path} has the format {header.get('format')!r}; here {expected!r} is needed. "
            "Moments.load reads moments and Counts.load reads counts; "
            "a newer file needs a newer isthmus."
        )
    return header, arrays


def _header(path: Path, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    try:
        header = json.loads(arrays.pop(HEADER).astype(np.uint8).tobytes().decode())
    except (KeyError, ValueError) as error:
        raise FormatError(f"{path} has no readable header ({error}): it is not ours.") from error
    if not isinstance(header, dict):
        raise FormatError(f"{path} has a header that is not an object: it is not ours.")
    return header
