"""Writer for the DOT language of Graphviz, and a reader for the DOT files of Isthmus."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from isthmus.errors import FormatError
from isthmus.io.files import KINDS, build, kind_name, read_text, split_edges, write_text

if TYPE_CHECKING:
    from os import PathLike

    from isthmus.io.files import Graph, Pair

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
