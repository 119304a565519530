"""Graphs in the DOT language of Graphviz: written, and read back as written here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from isthmus.errors import FormatError
from isthmus.io.building import KINDS, build, kind_name, split_edges
from isthmus.io.files import read_text, write_text

if TYPE_CHECKING:
    from os import PathLike

    from isthmus.io.building import Graph, Pair

_NAME = r'"((?:[^"\\]|\\.)*)"'
_HEAD = re.compile(rf"\s*digraph\s+({'|'.join(KINDS)})\s*\{{\s*")
_STATEMENT = re.compile(rf"{_NAME}\s*(?:->\s*{_NAME}\s*(\[\s*dir\s*=\s*none\s*\])?\s*)?;?\s*", re.S)
_END = re.compile(r"\}\s*\Z")


def to_dot(graph: Graph) -> str:
    """Write a graph in DOT; undirected edges have no arrow heads."""
    directed, undirected = split_edges(graph)
    lines = [f"digraph {kind_name(graph)} {{"]
    lines += [f"  {_quoted(node)};" for node in graph.nodes]
    lines += [f"  {_quoted(a)} -> {_quoted(b)};" for a, b in directed]
    lines += [f"  {_quoted(a)} -> {_quoted(b)} [dir=none];" for a, b in undirected]
    return "\n".join([*lines, "}", ""])


def from_dot(text: str) -> Graph:
    """Read a graph from the DOT that `to_dot` writes.

    Raises
    ------
    FormatError
        For anything else: the DOT language is much larger than what is understood here. Use
        Graphviz or networkx to turn other files into GraphML.
    """
    head = _HEAD.match(text)
    if head is None:
        raise FormatError(
            "Line 1 of the DOT text: expected 'digraph dag {', 'digraph cpdag {' or "
            "'digraph pdag {'. Only DOT as Isthmus writes it can be read."
        )
    nodes: dict[str, None] = {}
    directed: list[Pair] = []
    undirected: list[Pair] = []
    at = head.end()
    while not _END.match(text, at):
        found = _STATEMENT.match(text, at)
        if found is None:
            line = text.count("\n", 0, at) + 1
            raise FormatError(
                f'Line {line} of the DOT text: expected "a"; or "a" -> "b"; with both names in '
                "quotes, or '}' at the end. Only DOT as Isthmus writes it can be read."
            )
        at = found.end()
        start, end, loose = found.groups()
        nodes[_plain(start)] = None
        if end is not None:
            nodes[_plain(end)] = None
            (undirected if loose else directed).append((_plain(start), _plain(end)))
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


def _plain(name: str) -> str:
    return re.sub(r'\\(["\\])', r"\1", name)
