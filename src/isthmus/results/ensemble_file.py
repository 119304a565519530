"""Ensembles as files: arrays and one JSON text, in NumPy's ``.npz`` format."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import FormatError
from isthmus.graphs import DAG
from isthmus.graphs.names import check_strings
from isthmus.results.directions import edge_rows
from isthmus.results.reading import Disclosure, Release, header_facts, write_exports

if TYPE_CHECKING:
    from isthmus.report import Measure
    from isthmus.report.page import Page, RunAgain
    from isthmus.results.ensemble import Ensemble
    from isthmus.results.posterior import Posterior

T = TypeVar("T")

FORMAT = "isthmus ensemble 1"
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
"""What reading a damaged archive can raise."""


def write_arrays(
    path: str | PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, Any]
) -> None:
    """Write a header and arrays; those that are None are left out."""
    packed: dict[str, Any] = {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)}
    packed |= {name: values for name, values in arrays.items() if values is not None}
    with Path(path).open("wb") as file:  # a file, because NumPy would add a suffix to a name
        np.savez_compressed(file, **packed)


def read_arrays(
    path: str | PathLike[str],
    what: str,
    format_name: str,
    build: Callable[[dict[str, Any], dict[str, Any]], T],
) -> T:
    """Return what ``build`` makes of the header and the arrays in a file.

    Parameters
    ----------
    what
        The thing in it, with its article, for the message of an error.
    format_name
        The format that the header must name.
    build
        Makes a thing of the header and the arrays.
    """
    with Path(path).open("rb") as stream:
        try:
            with np.load(stream, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            header = json.loads(arrays["header"].tobytes().decode())
            if header["format"] != format_name:
                raise FormatError(
                    f"the format is {header['format']!r}, and this version reads {format_name!r}."
                )
            return build(header, arrays)
        except DAMAGE as error:
            raise FormatError(
                f"{path} is not {what} that isthmus has written, or it is damaged: {error}"
            ) from error


def write_ensemble(attributes: Mapping[str, Any], path: str | PathLike[str]) -> None:
    """Write the attributes of an ensemble."""
    header = {
        "format": FORMAT,
        "nodes": attributes["nodes"],
        "notes": attributes["notes"],
        "disclosure": [asdict(entry) for entry in attributes["disclosure"].entries],
        "rows": attributes["rows"],
    }
    write_arrays(path, header, {k: attributes[k] for k in ("parents", "weights", "log_scores")})


def read_ensemble(path: str | PathLike[str], build: Callable[..., T]) -> T:
    """Return what ``build`` makes of the attributes of the ensemble in a file."""

    def built(header: dict[str, Any], arrays: dict[str, Any]) -> T:
        return build(
            nodes=tuple(header["nodes"]),
            parents=arrays["parents"],
            weights=arrays["weights"],
            log_scores=arrays.get("log_scores"),
            notes=check_strings(header["notes"]),
            disclosure=read_disclosure(header["disclosure"]),
            rows=read_rows(header),
        )

    return read_arrays(path, "an ensemble", FORMAT, built)


def read_disclosure(entries: list[dict[str, Any]]) -> Disclosure:
    """Return a disclosure that was read from a file."""
    return Disclosure(tuple(_release(**entry) for entry in entries))


def read_rows(header: Mapping[str, Any]) -> int | None:
    """Return the number of rows of the data; None for files of versions that did not write it."""
    match header.get("rows"):
        case int() | None as rows:
            return rows
        case other:
            raise FormatError(f"rows is {other!r}.")


def _release(site: str, what: str, form: str, size: int) -> Release:
    check_strings((site, what, form))
    return Release(site, what, form, int(size))


# --- Content of the reports of a bootstrap and of other weighted graphs -------------------------

_NO_PARAMETERS = (
    "There are many graphs here, each with parameters of its own. To get the parameters of one of "
    "them, fit it to the data."
)


def graphs_page(
    ensemble: Ensemble | Posterior,
    graph: DAG,
    *,
    measures: tuple[Measure, ...],
    matrices: tuple[NDArray[np.float64], ...] = (),
    title: str,
    threshold: float,
    reference: DAG | None,
    table: str | None,
    again: RunAgain,
    notes: tuple[str, ...],
    diagnostics: tuple[tuple[str, str], ...] = (),
) -> Page:
    """Return the content of a report of many graphs, with the share or probability of each edge."""
    from isthmus.plots.svg import svg_graph
    from isthmus.report import compare
    from isthmus.report.page import Page

    edges = ensemble.edge_probabilities()
    either = np.minimum(edges + edges.T, 1.0)
    strengths = {(a, b): float(either[graph.index(a), graph.index(b)]) for a, b in graph.edges}
    summary = str(ensemble).splitlines()
    return Page(
        title=title,
        nodes=ensemble.nodes,
        facts=header_facts(table, ensemble.rows),
        summary=tuple(summary[: len(summary) - len(notes)]),
        notes=notes,
        measures=measures,
        edges=edge_rows(ensemble.nodes, edges, threshold, matrices),
        network=_NO_PARAMETERS,
        releases=tuple((r.site, r.what, r.form, r.size) for r in ensemble.disclosure.entries),
        diagnostics=diagnostics,
        threshold=threshold,
        comparison=None if reference is None else compare(graph, reference),
        run_again=again,
        exports=write_exports(graph),
        draw=lambda: svg_graph(graph, strengths=strengths or None),
    )
