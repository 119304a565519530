"""Posteriors as files: arrays and one JSON text, in NumPy's ``.npz`` format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from isthmus.errors import FormatError, IsthmusError
from isthmus.graphs.names import check_strings
from isthmus.report import Measure
from isthmus.results.ensemble import Ensemble
from isthmus.results.ensemble_file import (
    read_arrays,
    read_disclosure,
    read_rows,
    write_arrays,
)
from isthmus.results.reading import read_provenance
from isthmus.watch import Ending, Status

if TYPE_CHECKING:
    from isthmus.results.posterior import Posterior

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


# --- Content of the report of a posterior -------------------------------------------------------

PATH = Measure(
    "path", "Path: probability of any directed path from the first variable to the second."
)


def chain_diagnostics(posterior: Posterior) -> list[tuple[str, str]]:
    """Return how far the draws can be trusted."""
    rows: list[tuple[str, str]] = []
    if posterior.log_weights is not None:
        rows.append(("importance weights", str(posterior.importance())))
    if posterior.independent:
        return [*rows, ("draws", "independent: there are no chains to compare")]
    if len(posterior.chains) > 1:
        rows.append(("agreement of the chains", str(posterior.agreement())))
    try:
        figures = posterior.diagnostics()
    except IsthmusError as error:
        return [*rows, ("effective sample sizes", f"not computed: {error}")]
    if not figures.edges:
        return [*rows, ("effective sample sizes", "all edges are certain or impossible")]
    worst = int(np.argmin(figures.ess))
    edge = " → ".join(figures.edges[worst])
    return [
        *rows,
        ("effective sample size", f"median {np.median(figures.ess):.0f} over uncertain edges"),
        ("smallest effective sample size", f"{figures.ess[worst]:.0f}, of {edge}"),
        ("largest R-hat", f"{np.max(figures.rhat):.3f} (close to 1 if the chains agree)"),
    ]
