"""Reader and writer for graphs in GraphML.

The reader rejects document types, which prevents entity expansion attacks and external files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.parsers import expat

from isthmus.errors import FormatError, GraphError
from isthmus.io.files import KINDS, build, kind_name, read_text, split_edges, write_text
from isthmus.io.xml_tree import escape_xml

if TYPE_CHECKING:
    from os import PathLike

    from isthmus.io.files import Graph, Kind, Pair

_NAMESPACE = "http://graphml.graphdrawing.org/xmlns"
_TYPE_KEY = "isthmus-type"


def to_graphml(graph: Graph) -> str:
    """Return a graph as GraphML text; names are the ids of the nodes."""
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
    for edges, extra in ((directed, ""), (undirected, ' directed="false"')):
        lines += [
            f"    <edge source={_attribute(a)} target={_attribute(b)}{extra}/>" for a, b in edges
        ]
    return "\n".join([*lines, "  </graph>", "</graphml>", ""])


def from_graphml(text: str, kind: Kind | None = None) -> Graph:
    """Read a graph from GraphML text.

    Parameters
    ----------
    text
        Text with one graph. Nested graphs, hyperedges and ports are errors; other data are ignored.
    kind
        `DAG`, `CPDAG` or `PDAG`. By default the type stated in the file if Isthmus wrote it,
        otherwise a DAG, or a PDAG if some edges are undirected.
    """
    reader = _Reader()
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.characters
    parser.StartDoctypeDeclHandler = reader.doctype
    try:
        # The encoding in the XML declaration does not apply: the text is already decoded.
        parser.Parse(text.encode("utf-8"), True)  # noqa: FBT003
    except expat.ExpatError as error:
        raise FormatError(f"Line {error.lineno} of the GraphML text: {error}.") from None
    except (FormatError, GraphError) as error:
        line = parser.CurrentLineNumber
        raise FormatError(f"Line {line} of the GraphML text: {error}") from None
    if not reader.graphs:
        raise FormatError("The GraphML text contains no graph.")
    return build(kind or reader.kind, list(reader.nodes), reader.directed, reader.undirected)


def read_graphml(path: str | PathLike[str], kind: Kind | None = None) -> Graph:
    """Read a graph from a GraphML file; see `from_graphml`."""
    return from_graphml(read_text(path), kind)


def write_graphml(graph: Graph, path: str | PathLike[str]) -> None:
    """Write a graph to a GraphML file."""
    write_text(to_graphml(graph), path)


class _Reader:
    """Handlers of an XML parser that collect nodes and edges."""

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
        raise FormatError("document types are not supported; remove <!DOCTYPE ...>.")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(" ")[2]
        if self._depth == 0 and name != "graphml":
            raise FormatError(f"expected <graphml>, found <{name}>.")
        self._depth += 1
        if name == "graph":
            self.graphs += 1
            if self.graphs > 1:
                raise FormatError("there is more than one graph; only one is supported.")
            self._default = attributes.get("edgedefault", "directed") == "directed"
        elif name == "node":
            node = _required(attributes, "id", name)
            if node in self.nodes:
                raise FormatError(f"node {node!r} is defined twice.")
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
            name = "".join(self._text).strip()
            self._text = None
            if name not in KINDS:
                raise FormatError(
                    f"unknown type of graph {name!r}; supported are {', '.join(KINDS)}."
                )
            self.kind = KINDS[name]

    def characters(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def _edge(self, attributes: dict[str, str]) -> None:
        pair = _required(attributes, "source", "edge"), _required(attributes, "target", "edge")
        value = attributes.get("directed")
        directed = self._default if value is None else value in ("true", "1")
        (self.directed if directed else self.undirected).append(pair)


def _required(attributes: dict[str, str], key: str, tag: str) -> str:
    if key not in attributes:
        raise FormatError(f"<{tag}> has no attribute {key!r}.")
    return attributes[key]


def _attribute(name: str) -> str:
    return f'"{escape_xml(name)}"'
