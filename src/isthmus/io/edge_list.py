"""Reader and writer for graphs as CSV tables of edges."""

from __future__ import annotations

import csv
from io import StringIO
from typing import TYPE_CHECKING

from isthmus.errors import FormatError
from isthmus.io.files import build, read_text, split_edges, write_text

if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike

    from isthmus.io.files import Graph, Kind, Pair

_DIRECTED, _UNDIRECTED = "directed", "undirected"


def to_edge_list(graph: Graph) -> str:
    """Return a graph as CSV text with one row per edge.

    The columns are ``from`` and ``to``. If some edges are undirected, a third column ``type`` holds
    ``directed`` or ``undirected``. A node without edges has a row with an empty ``to``.
    """
    directed, undirected = split_edges(graph)
    if "" in graph.nodes:
        raise FormatError("A node with an empty name cannot be written as CSV; rename it.")
    connected = {name for edge in (*directed, *undirected) for name in edge}
    out = StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    typed = bool(undirected)
    writer.writerow(["from", "to", "type"] if typed else ["from", "to"])
    writer.writerows([a, b, _DIRECTED] if typed else [a, b] for a, b in directed)
    writer.writerows([a, b, _UNDIRECTED] for a, b in undirected)
    isolated = (node for node in graph.nodes if node not in connected)
    writer.writerows([node, "", ""] if typed else [node, ""] for node in isolated)
    return out.getvalue()


def from_edge_list(
    text: str, kind: Kind | None = None, *, nodes: Iterable[str] | None = None
) -> Graph:
    """Read a graph from CSV text with the columns ``from``, ``to`` and optionally ``type``.

    Parameters
    ----------
    text
        CSV text with a header.
    kind
        `DAG`, `CPDAG` or `PDAG`; by default a DAG, or a PDAG if there are undirected edges.
    nodes
        All nodes in the desired order; by default in order of appearance.
    """
    rows = csv.reader(StringIO(text, newline=""), strict=True)
    names: dict[str, None] = dict.fromkeys(() if nodes is None else nodes)
    directed: list[Pair] = []
    undirected: list[Pair] = []
    try:
        header = next(rows, [])
        if header not in (["from", "to"], ["from", "to", "type"]):
            raise FormatError(
                f"Line 1 of the edge list: the header must be 'from,to' or 'from,to,type', "
                f"got {','.join(header)!r}."
            )
        for row in rows:
            if not row:
                continue
            start, end, edge_type = _cells(row, len(header), rows.line_num)
            names[start] = None
            if end:
                names[end] = None
                (undirected if edge_type == _UNDIRECTED else directed).append((start, end))
    except csv.Error as error:
        raise FormatError(f"Line {rows.line_num} of the edge list: {error}.") from None
    return build(kind, list(names), directed, undirected)


def read_edge_list(
    path: str | PathLike[str], kind: Kind | None = None, *, nodes: Iterable[str] | None = None
) -> Graph:
    """Read a graph from a CSV file of edges; see `from_edge_list`."""
    return from_edge_list(read_text(path), kind, nodes=nodes)


def write_edge_list(graph: Graph, path: str | PathLike[str]) -> None:
    """Write a graph to a CSV file of edges; see `to_edge_list`."""
    write_text(to_edge_list(graph), path)


def _cells(row: list[str], width: int, line: int) -> tuple[str, str, str]:
    if len(row) != width:
        raise FormatError(f"Line {line} of the edge list: expected {width} cells, got {len(row)}.")
    start, end, edge_type = (*row, _DIRECTED)[:3]
    if not start:
        raise FormatError(f"Line {line} of the edge list: 'from' is empty.")
    if end and edge_type not in (_DIRECTED, _UNDIRECTED):
        raise FormatError(
            f"Line {line} of the edge list: the type must be {_DIRECTED!r} or {_UNDIRECTED!r}, "
            f"got {edge_type!r}."
        )
    return start, end, edge_type
