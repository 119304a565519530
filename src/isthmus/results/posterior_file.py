"""Posteriors as files: arrays and one JSON text, in NumPy's ``.npz`` format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from os import PathLike
from typing import Any, TypeVar

from isthmus.errors import FormatError
from isthmus.graphs.names import check_strings
from isthmus.results.ensemble import Ensemble
from isthmus.results.ensemble_file import read_arrays, read_disclosure, read_rows, write_arrays
from isthmus.results.provenance import read_provenance
from isthmus.results.status import Ending, Status

T = TypeVar("T")

_FORMAT = "isthmus posterior 1"
_PLAIN = {"choice": str, "notes": list, "independent": bool, "equivalent": bool}
_OPTIONAL = ("log_weights", "log_prior", "exact_edges", "exact_paths", "chain_edges")


def write_posterior(attributes: Mapping[str, Any], path: str | PathLike[str]) -> None:
    """Write the attributes of a posterior."""
    ensemble: Ensemble = attributes["ensemble"]
    header = {
        "format": _FORMAT,
        "nodes": ensemble.nodes,
        "rows": ensemble.rows,
        "status": asdict(attributes["status"]),
        "disclosure": [asdict(entry) for entry in attributes["disclosure"].entries],
        "provenance": asdict(attributes["provenance"]),
        **{name: attributes[name] for name in _PLAIN},
    }
    arrays = {
        "parents": ensemble.parents,
        "weights": ensemble.weights,
        "chains": attributes["chains"],
        "log_scores": ensemble.log_scores,
        **{name: attributes[name] for name in _OPTIONAL},
    }
    write_arrays(path, header, arrays)


def read_posterior(path: str | PathLike[str], build: Callable[..., T]) -> T:
    """Return what ``build`` makes of the attributes of the posterior in a file."""
    return read_arrays(
        path, "a posterior", _FORMAT, lambda header, arrays: build(**_attributes(header, arrays))
    )


def _attributes(header: dict[str, Any], arrays: dict[str, Any]) -> dict[str, Any]:
    for name, kind in _PLAIN.items():
        if not isinstance(header[name], kind):
            raise FormatError(f"{name} is {header[name]!r}.")
    status = header["status"]
    status["ending"] = Ending(status["ending"])
    return {
        "ensemble": Ensemble(
            tuple(header["nodes"]),
            arrays["parents"],
            arrays["weights"],
            arrays.get("log_scores"),
            rows=read_rows(header),
        ),
        "chains": arrays["chains"],
        "status": Status(**status),
        "disclosure": read_disclosure(header["disclosure"]),
        "choice": header["choice"],
        "notes": check_strings(header["notes"]),
        "independent": header["independent"],
        "equivalent": header["equivalent"],
        "provenance": read_provenance(header["provenance"]),
        **{name: arrays.get(name) for name in _OPTIONAL},
    }
