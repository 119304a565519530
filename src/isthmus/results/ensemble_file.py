"""Ensembles as files: arrays and one JSON text, in NumPy's ``.npz`` format."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from isthmus.errors import FormatError
from isthmus.graphs.names import check_strings
from isthmus.results.disclosure import Disclosure, Release

DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    OSError,
    EOFError,
    LookupError,
    TypeError,
    ValueError,
    RuntimeError,  # also NotImplementedError: a method of compression that zipfile does not have
)


T = TypeVar("T")

FORMAT = "isthmus ensemble 1"


def write_ensemble(attributes: Mapping[str, Any], path: str | PathLike[str]) -> None:
    """Write the attributes of an ensemble."""
    header = {
        "format": FORMAT,
        "nodes": attributes["nodes"],
        "notes": attributes["notes"],
        "disclosure": [asdict(entry) for entry in attributes["disclosure"].entries],
    }
    arrays = {
        "header": np.frombuffer(json.dumps(header).encode(), np.uint8),
        "parents": attributes["parents"],
        "weights": attributes["weights"],
    }
    if attributes["log_scores"] is not None:
        arrays["log_scores"] = attributes["log_scores"]
    with Path(path).open("wb") as file:  # a file, because NumPy would add a suffix to a name
        np.savez_compressed(file, **arrays)


def read_ensemble(path: str | PathLike[str], build: Callable[..., T]) -> T:
    """Return what ``build`` makes of the attributes of the ensemble in a file."""
    with Path(path).open("rb") as stream:
        try:
            with np.load(stream, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            header = json.loads(arrays["header"].tobytes().decode())
            if header["format"] != FORMAT:
                raise FormatError(
                    f"the format is {header['format']!r}, and this version reads {FORMAT!r}."
                )
            return build(
                nodes=tuple(header["nodes"]),
                parents=arrays["parents"],
                weights=arrays["weights"],
                log_scores=arrays.get("log_scores"),
                notes=check_strings(header["notes"]),
                disclosure=Disclosure(tuple(release(**entry) for entry in header["disclosure"])),
            )
        except DAMAGE as error:
            raise FormatError(
                f"{path} is not an ensemble that isthmus has written, or it is damaged: {error}"
            ) from error


def release(site: str, what: str, form: str, size: int) -> Release:
    """Return an entry of a disclosure that was read from a file."""
    check_strings((site, what, form))
    return Release(site, what, form, int(size))
