"""Probabilities or shares of edges, printed and written by `sample` and `bootstrap`."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import isthmus as ist
from isthmus.cli.output import give, say
from isthmus.errors import FormatError
from isthmus.sources.tables.write_table import check_place

if TYPE_CHECKING:
    from isthmus.types import Floats

_SHOWN = 0.05
"""Edges with a smaller probability are not printed; files have them all."""

GRAPHS = (".dot", ".gml", ".graphml")
"""Extensions of files that the averaged graph is written to."""


def rows_of(nodes: Sequence[str], edges: Floats, least: float) -> list[tuple[str, str, float]]:
    """Return edges with their probabilities or shares, largest first."""
    places = zip(*(axis.tolist() for axis in (edges >= least).nonzero()), strict=True)
    rows = [(nodes[a], nodes[b], float(edges[a, b])) for a, b in places if a != b]
    return sorted(rows, key=lambda row: -row[2])


def say_edges(
    nodes: Sequence[str], edges: Floats, *, quiet: bool, measure: str = "probability"
) -> None:
    """Print the probable or stable edges, and add them to the JSON document."""
    rows = rows_of(nodes, edges, _SHOWN)
    give(nodes=list(nodes), edges=[{"from": a, "to": b, measure: p} for a, b, p in rows])
    if not quiet:
        for a, b, p in rows:
            say(f"{p:.3f}  {a} → {b}")


def write_edges(
    nodes: Sequence[str], edges: Floats, path: Path, measure: str = "probability"
) -> None:
    """Write the probabilities or shares of all edges that occurred."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("from", "to", measure))
        writer.writerows(rows_of(nodes, edges, math.ulp(0.0)))


def check_formats(paths: Sequence[Path], known: Sequence[str]) -> None:
    """Raise an error if a file has an unknown format or no folder."""
    for path in paths:
        if path.suffix.lower() not in known:
            raise FormatError(
                f"The format of {path.name!r} is unknown here. Give a name that ends in one of "
                f"{', '.join(known)}."
            )
        check_place(path)


def write_graph(graph: ist.DAG, path: Path) -> None:
    """Write a graph in the format of the file."""
    io = ist.io
    writers = {".dot": io.write_dot, ".gml": io.write_gml, ".graphml": io.write_graphml}
    writers[path.suffix.lower()](graph, path)
