"""Reader and writer for graphs in GraphML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isthmus.errors import FormatError
from isthmus.io.files import KINDS, build, kind_name, read_text, split_edges, write_text
from isthmus.io.xml_tree import Element, escape_xml, parse_xml

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
    root = parse_xml(text, "graphml")
    graphs = root.all("graph")
    if len(graphs) != 1:
        raise FormatError(f"The GraphML text must have one graph; it has {len(graphs)}.")
    (graph,) = graphs
    nodes: dict[str, None] = {}
    for node in graph.all("node"):
        name = node.attribute("id")
        if name in nodes:
            raise FormatError(f"Line {node.line} of the GraphML text: {name!r} is defined twice.")
        nodes[name] = None
        _refuse(node, "graph", "port")
    _refuse(graph, "hyperedge")
    default = graph.attributes.get("edgedefault", "directed") == "directed"
    edges: dict[bool, list[Pair]] = {True: [], False: []}
    for edge in graph.all("edge"):
        value = edge.attributes.get("directed")
        directed = default if value is None else value in ("true", "1")
        edges[directed].append((edge.attribute("source"), edge.attribute("target")))
    return build(kind or _stated_kind(graph), list(nodes), edges[True], edges[False])


def read_graphml(path: str | PathLike[str], kind: Kind | None = None) -> Graph:
    """Read a graph from a GraphML file; see `from_graphml`."""
    return from_graphml(read_text(path), kind)


def write_graphml(graph: Graph, path: str | PathLike[str]) -> None:
    """Write a graph to a GraphML file."""
    write_text(to_graphml(graph), path)


def _refuse(element: Element, *tags: str) -> None:
    for child in element.children:
        if child.tag in tags:
            raise FormatError(
                f"Line {child.line} of the GraphML text: <{child.tag}> within <{element.tag}> is "
                "not supported."
            )


def _stated_kind(graph: Element) -> Kind | None:
    for data in graph.all("data"):
        if data.attributes.get("key") == _TYPE_KEY:
            name = data.text.strip()
            if name not in KINDS:
                raise FormatError(
                    f"Line {data.line} of the GraphML text: unknown type of graph {name!r}; "
                    f"supported are {', '.join(KINDS)}."
                )
            return KINDS[name]
    return None


def _attribute(name: str) -> str:
    return f'"{escape_xml(name)}"'
