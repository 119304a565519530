"""Posteriors as files: arrays and one JSON text, in NumPy's ``.npz`` format."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np

from isthmus.errors import FormatError
from isthmus.graphs.names import check_strings
from isthmus.results.disclosure import Disclosure
from isthmus.results.ensemble import Ensemble
from isthmus.results.ensemble_file import DAMAGE, release
from isthmus.results.provenance import read_provenance
from isthmus.results.status import Ending, Status

T = TypeVar("T")

_FORMAT = "isthmus posterior 1"
_PLAIN = {"choice": str, "notes": list, "independent": bool, "equivalent": bool}
_OPTIONAL = ("log_weights", "exact_edges", "exact_paths", "chain_edges")


def write_posterior(attributes: Mapping[str, Any], path: str | PathLike[str]) -> None:
    """Write the attributes of a posterior."""
    ensemble: Ensemble = attributes["ensemble"]
    header = {
        "format": _FORMAT,
        "nodes": ensemble.nodes,
        "status": asdict(attributes["status"]),
        "disclosure": [asdict(entry) for entry in attributes["disclosure"].entries],
        "provenance": asdict(attributes["provenance"]),
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


def read_posterior(path: str | PathLike[str], build: Callable[..., T]) -> T:
    """Return what ``build`` makes of the attributes of the posterior in a file."""
    with Path(path).open("rb") as stream:
        try:
            return build(**_read(stream))
        except DAMAGE as error:
            raise FormatError(
                f"{path} is not a posterior that isthmus has written, or it is damaged: {error}"
            ) from error


def _read(stream: BinaryIO) -> dict[str, Any]:
    with np.load(stream, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    header = json.loads(arrays["header"].tobytes().decode())
    if header["format"] != _FORMAT:
        raise FormatError(
            f"the format is {header['format']!r}, and this version reads {_FORMAT!r}."
        )
    for name, kind in _PLAIN.items():
        if not isinstance(header[name], kind):
            raise FormatError(f"{name} is {header[name]!r}.")
    status = header["status"]
    status["ending"] = Ending(status["ending"])
    scores = arrays.get("log_scores")
    return {
        "ensemble": Ensemble(tuple(header["nodes"]), arrays["parents"], arrays["weights"], scores),
        "chains": arrays["chains"],
        "status": Status(**status),
        "disclosure": Disclosure(tuple(release(**entry) for entry in header["disclosure"])),
        "choice": header["choice"],
        "notes": check_strings(header["notes"]),
        "independent": header["independent"],
        "equivalent": header["equivalent"],
        "provenance": read_provenance(header["provenance"]),
        **{name: arrays.get(name) for name in _OPTIONAL},
    }
