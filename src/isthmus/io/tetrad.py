"""Reader and writer for PAGs in the text format of Tetrad and causal-learn."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from isthmus.errors import FormatError, GraphError
from isthmus.graphs import PAG
from isthmus.io.files import read_text, write_text

if TYPE_CHECKING:
    from os import PathLike

_EDGE = re.compile(r"\d+\.\s+(.+?)\s+([<o-]-[>o-])\s+(.+)")
_PROPERTIES = re.compile(r"(?:\s+(?:dd|nl|pd|pl))+$")


def to_tetrad(pag: PAG) -> str:
    """Return a PAG as text for Tetrad: a list of nodes, and numbered edges such as ``a o-> b``."""
    if not isinstance(pag, PAG):
        raise GraphError(f"to_tetrad writes a PAG, got {type(pag).__name__}.")
    for name in pag.nodes:
        if not name or name != name.strip() or re.search(r"[;\n\r]|\s[<o-]-[>o-]\s", name):
            raise FormatError(
                f"The name {name!r} cannot be written for Tetrad: it is empty, or it has a "
                "semicolon, a line break, an edge, or spaces at an end. Rename the node."
            )
    edges = (f"{k}. {a} {kind} {b}" for k, (a, kind, b) in enumerate(pag.edges, start=1))
    lines = ["Graph Nodes:", ";".join(pag.nodes), "", "Graph Edges:", *edges]
    return "\n".join(lines) + "\n"


def from_tetrad(text: str) -> PAG:
    """Read a PAG from the text that Tetrad writes, and that causal-learn prints.

    Properties of edges (``dd``, ``nl`` …) and attributes of the graph are ignored. Names are
    separated by semicolons or, as in older files, commas.
    """
    lines = [line.strip() for line in text.splitlines()]
    if "Graph Nodes:" not in lines or "Graph Edges:" not in lines:
        raise FormatError(
            "A graph of Tetrad has a line 'Graph Nodes:' and a line 'Graph Edges:'; one is missing."
        )
    first, second = lines.index("Graph Nodes:"), lines.index("Graph Edges:")
    listed = " ".join(lines[first + 1 : second]).strip()
    nodes = [name.strip() for name in re.split(";" if ";" in listed else ",", listed)]
    edges: list[tuple[str, str, str]] = []
    for number, line in enumerate(lines[second + 1 :], start=second + 2):
        if not re.match(r"\d+\.", line):
            if line and not edges:
                raise FormatError(f"Line {number} is not an edge such as '1. a o-> b': {line!r}.")
            if line:
                break  # attributes
            continue
        match = _EDGE.fullmatch(line)
        if match is None:
            raise FormatError(f"Line {number} is not an edge such as '1. a o-> b': {line!r}.")
        a, kind, b = match.groups()
        edges.append((a, kind, b if b in nodes else _PROPERTIES.sub("", b)))
    try:
        return PAG([name for name in nodes if name], edges)
    except GraphError as error:
        raise FormatError(f"The text of Tetrad: {error}") from None


def read_tetrad(path: str | PathLike[str]) -> PAG:
    """Read a PAG from a text file of Tetrad; see `from_tetrad`."""
    return from_tetrad(read_text(path))


def write_tetrad(pag: PAG, path: str | PathLike[str]) -> None:
    """Write a PAG to a text file for Tetrad; see `to_tetrad`."""
    write_text(to_tetrad(pag), path)
