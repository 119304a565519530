"""Graphs in GraphML, by a small reader and writer of our own.

The reader refuses document types, so neither entities that blow up nor external files can come in.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.parsers import expat

from isthmus.errors import FormatError, GraphError
from isthmus.io.building import KINDS, build, kind_name, split_edges
from isthmus.io.files import read_text, write_text

if TYPE_CHECKING:
    from os import PathLike

    from isthmus.io.building import Graph, Kind, Pair

_NAMESPACE = "http://graphml.graphdrawing.org/xmlns"
_TYPE_KEY = "isthmus-type"
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}
# attribute values lose these unless they are written as numbers
_ESCAPES |= {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}


def to_graphml(graph: Graph) -> str:
    """Write a graph in GraphML; names are the ids of the nodes."""
    directed, undirected = split_edges(graph)
    kind = kind_name(graph)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<graphml xmlns="{_NAMESPACE}">',
        f'  <key id="{_TYPE_KEY}" for="graph" attr.name="{_TYPE_KEY}" attr.type="string"/>',
        '  <graph edgedefault="directed">',
        f'    <data key="{_TYPE_KEY}">{kind}</data>',
    ]
    lines += [f"    <node id={_attribute(node)}/>" for node in graph.nodes]
    for edges, mark in ((directed, ""), (undirected, ' directed="false"')):
        lines += [
            f"    <edge source={_attribute(a)} target={_attribute(b)}{mark}/>" for a, b in edges
        ]
    return "\n".join([*lines, "  </graph>", "</graphml>", ""])


def from_graphml(text: str, kind: Kind | None = None) -> Graph:
    """Read a graph from GraphML.

    Parameters
    ----------
    text
        One graph; nested graphs, hyperedges and ports are refused, other data are passed over.
    kind
        `DAG`, `CPDAG` or `PDAG`. By default what the file says if Isthmus wrote it, otherwise a
        DAG, or a PDAG if there are undirected edges.
    """
    reader = _Reader()
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.characters
    parser.StartDoctypeDeclHandler = reader.doctype
    try:
        # an XML declaration speaks of bytes that are decoded already
        parser.Parse(text.encode("utf-8"), True)  # noqa: FBT003
    except expat.ExpatError as error:
        raise FormatError(f"Line {error.lineno} of the GraphML text: {error}.") from None
    except (FormatError, GraphError) as error:
        line = parser.CurrentLineNumber
        raise FormatError(f"Line {line} of the GraphML text: {error}") from None
    if not reader.graphs:
        raise FormatError("The GraphML text holds no graph.")
    return build(kind or reader.kind, list(reader.nodes), reader.directed, reader.undirected)


def read_graphml(path: str | PathLike[str], kind: Kind | None = None) -> Graph:
    """Read a graph from a GraphML file; see `from_graphml`."""
    return from_graphml(read_text(path), kind)


def write_graphml(graph: Graph, path: str | PathLike[str]) -> None:
    """Write a graph to a GraphML file."""
    write_text(to_graphml(graph), path)


class _Reader:
    """Collects nodes and edges while the parser goes through the text."""

    def __init__(self) -> None:
        self.nodes: dict[str, None] = {}
        self.directed: list[Pair] = []
        self.undirected: list[Pair] = []
        self.kind: Kind | None = None
        self.graphs = 0
        self._default = True
        self._depth = 0
        self._text: list[str] | None = None

    def doctype(self, *_: object) -> None:
        raise FormatError("document types are not read; delete the <!DOCTYPE ...> part.")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(" ")[2]
        if self._depth == 0 and name != "graphml":
            raise FormatError(f"expected <graphml>, found <{name}>.")
        self._depth += 1
        if name == "graph":
            self.graphs += 1
            if self.graphs > 1:
                raise FormatError("there is more than one graph; give one.")
            self._default = attributes.get("edgedefault", "directed") == "directed"
        elif name == "node":
            node = _needed(attributes, "id", name)
            if node in self.nodes:
                raise FormatError(f"node {node!r} comes twice.")
            self.nodes[node] = None
        elif name == "edge":
            self._edge(attributes)
        elif name in ("hyperedge", "port"):
            raise FormatError(f"<{name}> is not supported.")
        elif name == "data" and attributes.get("key") == _TYPE_KEY:
            self._text = []

    def end(self, tag: str) -> None:
        self._depth -= 1
        if tag.endswith("data") and self._text is not None:
            word = "".join(self._text).strip()
            self._text = None
            if word not in KINDS:
                raise FormatError(f"unknown type of graph {word!r}; known are {', '.join(KINDS)}.")
            self.kind = KINDS[word]

    def characters(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def _edge(self, attributes: dict[str, str]) -> None:
        pair = _needed(attributes, "source", "edge"), _needed(attributes, "target", "edge")
        mark = attributes.get("directed")
        directed = self._default if mark is None else mark in ("true", "1")
        (self.directed if directed else self.undirected).append(pair)


def _needed(attributes: dict[str, str], key: str, tag: str) -> str:
    if key not in attributes:
        raise FormatError(f"<{tag}> has no attribute {key!r}.")
    return attributes[key]


def _attribute(name: str) -> str:
    if _ILLEGAL.search(name):
        raise FormatError(f"The name {name!r} holds characters that XML cannot carry; rename it.")
    escaped = "".join(_ESCAPES.get(letter, letter) for letter in name)
    return f'"{escaped}"'
