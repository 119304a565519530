"""Writer for the DOT language of Graphviz, and a reader for the DOT files of Isthmus."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from io import StringIO
from math import isfinite
from typing import TYPE_CHECKING, TypeAlias

from isthmus.errors import FormatError, GraphError
from isthmus.graphs import PAG
from isthmus.io.files import KINDS, build, kind_name, read_text, split_edges, write_text

if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike

    from isthmus.io.files import Graph, Kind, Pair

_NAME = r'"((?:[^"\\]|\\.)*)"'
_HEAD = re.compile(rf"\s*digraph\s+({'|'.join(KINDS)})\s*\{{\s*")
_STATEMENT = re.compile(rf"{_NAME}\s*(?:->\s*{_NAME}\s*(\[\s*dir\s*=\s*none\s*\])?\s*)?;?\s*", re.S)
_END = re.compile(r"\}\s*\Z")


def to_dot(graph: Graph) -> str:
    """Return a graph as DOT text; undirected edges have no arrowheads."""
    directed, undirected = split_edges(graph)
    lines = [f"digraph {kind_name(graph)} {{"]
    lines += [f"  {_quoted(node)};" for node in graph.nodes]
    lines += [f"  {_quoted(a)} -> {_quoted(b)};" for a, b in directed]
    lines += [f"  {_quoted(a)} -> {_quoted(b)} [dir=none];" for a, b in undirected]
    return "\n".join([*lines, "}", ""])


def from_dot(text: str) -> Graph:
    """Read a graph from DOT text that was written by `to_dot`.

    Raises
    ------
    FormatError
        If the text was not written by `to_dot`: only a small part of the DOT language is
        supported. Use Graphviz or networkx to convert other files to GraphML.
    """
    head = _HEAD.match(text)
    if head is None:
        raise FormatError(
            "Line 1 of the DOT text: expected 'digraph dag {', 'digraph cpdag {' or "
            "'digraph pdag {'. Only DOT text written by Isthmus can be read."
        )
    nodes: dict[str, None] = {}
    directed: list[Pair] = []
    undirected: list[Pair] = []
    at = head.end()
    while not _END.match(text, at):
        statement = _STATEMENT.match(text, at)
        if statement is None:
            line = text.count("\n", 0, at) + 1
            raise FormatError(
                f'Line {line} of the DOT text: expected "a"; or "a" -> "b"; with both names in '
                "quotes, or '}' at the end. Only DOT text written by Isthmus can be read."
            )
        at = statement.end()
        start, end, no_head = statement.groups()
        nodes[_unquoted(start)] = None
        if end is not None:
            nodes[_unquoted(end)] = None
            (undirected if no_head else directed).append((_unquoted(start), _unquoted(end)))
    return build(KINDS[head.group(1)], list(nodes), directed, undirected)


def read_dot(path: str | PathLike[str]) -> Graph:
    """Read a graph from a DOT file; see `from_dot`."""
    return from_dot(read_text(path))


def write_dot(graph: Graph, path: str | PathLike[str]) -> None:
    """Write a graph to a DOT file."""
    write_text(to_dot(graph), path)


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _unquoted(name: str) -> str:
    return re.sub(r'\\(["\\])', r"\1", name)


# --- Reader and writer for graphs as CSV tables of edges ----------------------------------------

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


# --- Reader and writer for PAGs in the text format of Tetrad and causal-learn -------------------

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


# --- Reader and writer for local scores, in the text format of GOBNILP, sumu and benchpress -----
#
# The first line is the number of variables. For each variable there is a line with its name and
# the number of its parent sets, followed by one line per set: the score, the number of parents,
# and their names. Lines that start with ``#`` or ``META`` are comments. The usual extension is
# ``.jkl``.

LocalScores: TypeAlias = Mapping[str, Sequence[tuple[float, tuple[str, ...]]]]
"""Parent sets of each variable, as pairs of a score and the names of the parents."""

_COMMENTS = ("#", "META")


def to_local_scores(scores: LocalScores) -> str:
    """Return local scores as text; numbers are written with full precision."""
    for name in scores:
        if not name or name != "".join(name.split()) or name.startswith(_COMMENTS):
            raise FormatError(
                f"The name {name!r} cannot be written as local scores: names must not be empty, "
                "contain spaces, or start with '#' or 'META'. Rename the variable."
            )
    lines = [str(len(scores))]
    for name, sets in scores.items():
        lines.append(f"{name} {len(sets)}")
        lines += [" ".join((repr(float(s)), str(len(ps)), *ps)) for s, ps in sets]
    return "\n".join(lines) + "\n"


def from_local_scores(text: str) -> dict[str, list[tuple[float, tuple[str, ...]]]]:
    """Read local scores from text; see `to_local_scores`."""
    rows = [
        (number, line.split())
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip() and not line.lstrip().startswith(_COMMENTS)
    ]
    if not rows or len(rows[0][1]) != 1:
        raise FormatError("Line 1 of the local scores: expected the number of variables.")
    declared = _count(rows[0][1][0], rows[0][0])
    scores: dict[str, list[tuple[float, tuple[str, ...]]]] = {}
    at = 1
    while at < len(rows):
        number, cells = rows[at]
        if len(cells) != 2 or cells[0] in scores:
            raise FormatError(
                f"Line {number} of the local scores: expected the name of a new variable and the "
                f"number of its parent sets, got {' '.join(cells)!r}."
            )
        name, size = cells[0], _count(cells[1], number)
        if size == 0:
            raise FormatError(
                f"Line {number} of the local scores: {name} has no parent sets; at least one "
                "is needed."
            )
        block = rows[at + 1 : at + 1 + size]
        if len(block) < size:
            raise FormatError(f"{name} should have {size} parent sets; the file has {len(block)}.")
        scores[name] = [_parse(name, cells, number) for number, cells in block]
        at += 1 + size
    if len(scores) != declared:
        raise FormatError(f"The file declares {declared} variables and has {len(scores)}.")
    unknown = {p for sets in scores.values() for _, ps in sets for p in ps} - set(scores)
    if unknown:
        raise FormatError(
            f"These parents are not among the variables of the file: {sorted(unknown)[:5]}."
        )
    return scores


def read_local_scores(path: str | PathLike[str]) -> dict[str, list[tuple[float, tuple[str, ...]]]]:
    """Read local scores from a file; see `to_local_scores`."""
    return from_local_scores(read_text(path))


def write_local_scores(scores: LocalScores, path: str | PathLike[str]) -> None:
    """Write local scores to a file; see `to_local_scores`."""
    write_text(to_local_scores(scores), path)


def _count(text: str, line: int) -> int:
    if not text.isdecimal():
        raise FormatError(f"Line {line} of the local scores: expected a number, got {text!r}.")
    return int(text)


def _parse(child: str, cells: list[str], line: int) -> tuple[float, tuple[str, ...]]:
    try:
        score, size = float(cells[0]), int(cells[1])
    except (ValueError, IndexError):
        score, size = 0.0, -1
    if size != len(cells) - 2:
        raise FormatError(
            f"Line {line} of the local scores: expected a score, the number of parents and "
            f"their names, got {' '.join(cells)!r}."
        )
    parents = tuple(cells[2:])
    if not isfinite(score) or child in parents or len(set(parents)) < size:
        raise FormatError(
            f"Line {line} of the local scores: expected a finite score and unique parents "
            f"other than {child}, got {' '.join(cells)!r}."
        )
    return score, parents
