"""Posteriors as files: arrays and one JSON text, in NumPy's ``.npz`` format."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from isthmus.errors import FormatError
from isthmus.results.disclosure import Disclosure, Release
from isthmus.results.ensemble import Ensemble
from isthmus.results.status import Ending, Status

_FORMAT = "isthmus posterior 1"
_PLAIN = ("choice", "notes", "independent", "equivalent")
_OPTIONAL = ("log_weights", "exact_edges", "exact_paths", "chain_edges")


def write_posterior(attributes: Mapping[str, Any], path: str | PathLike[str]) -> None:
    """Write the attributes of a posterior."""
    ensemble: Ensemble = attributes["ensemble"]
    header = {
        "format": _FORMAT,
        "nodes": ensemble.nodes,
        "status": asdict(attributes["status"]),
        "disclosure": [asdict(entry) for entry in attributes["disclosure"].entries],
        **{name: attributes[name] for name in _PLAIN},
    }
    arrays: dict[str, Any] = {
        "header": np.frombuffer(json.dumps(header).encode(), np.uint8),
        "parents": ensemble.parents,
        "weights": ensemble.weights,
        "chains": attributes["chains"],
    }
    if ensemble.log_scores is not None:
        arrays["log_scores"] = ensemble.log_scores
    arrays |= {name: attributes[name] for name in _OPTIONAL if attributes[name] is not None}
    with Path(path).open("wb") as file:  # a file, because NumPy would add a suffix to a name
        np.savez_compressed(file, **arrays)


def read_posterior(path: str | PathLike[str]) -> dict[str, Any]:
    """Return the attributes of the posterior in a file."""
    try:
        with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(arrays["header"].tobytes().decode())
        if header["format"] != _FORMAT:
            raise FormatError(
                f"{path} has the format {header['format']!r}; this version reads {_FORMAT!r}."
            )
        status = header["status"]
        status["ending"] = Ending(status["ending"])
        return {
            "ensemble": Ensemble(
                tuple(header["nodes"]),
                arrays["parents"],
                arrays["weights"],
                arrays.get("log_scores"),
            ),
            "chains": arrays["chains"],
            "status": Status(**status),
            "disclosure": Disclosure(tuple(Release(**e) for e in header["disclosure"])),
            "choice": header["choice"],
            "notes": tuple(header["notes"]),
            "independent": header["independent"],
            "equivalent": header["equivalent"],
            **{name: arrays.get(name) for name in _OPTIONAL},
        }
    except (zipfile.BadZipFile, KeyError, TypeError, ValueError, EOFError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(
            f"{path} is not a posterior that isthmus has written, or it is damaged: {error}"
        ) from error
