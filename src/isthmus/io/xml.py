"""XML as a tree of elements; entities are refused, so that no file can expand or name others."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn, final
from xml.parsers import expat

from isthmus.errors import FormatError
from isthmus.io.files import (
    KINDS,
    build,
    floats,
    identifiers,
    kind_name,
    level_texts,
    network_of,
    read_text,
    require_discrete,
    rows_of,
    split_edges,
    write_text,
)

if TYPE_CHECKING:
    from os import PathLike

    from isthmus.io.files import Graph, Kind, Pair
    from isthmus.networks import DiscreteNetwork

_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}
# XML parsers replace these characters unless they are escaped.
_ESCAPES |= {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}


@final
@dataclass
class Element:
    """An element with its attributes, its text and the elements in it."""

    tag: str
    attributes: dict[str, str]
    line: int
    text: str = ""
    children: list[Element] = field(default_factory=list)

    def all(self, tag: str) -> list[Element]:
        """Return the children with a tag."""
        return [child for child in self.children if child.tag == tag]

    def one(self, tag: str) -> Element:
        """Return the first child with a tag; raise if there is none."""
        found = self.all(tag)
        if not found:
            raise FormatError(f"<{self.tag}> in line {self.line} has no <{tag}>.")
        return found[0]

    def attribute(self, name: str) -> str:
        """Return an attribute; raise if there is none."""
        if name not in self.attributes:
            raise FormatError(f"<{self.tag}> in line {self.line} has no attribute {name!r}.")
        return self.attributes[name]


def parse_xml(text: str, root: str) -> Element:
    """Return the root element of a text, which must have this tag.

    Document types are allowed, but no entities in them.
    """
    stack: list[Element] = []
    roots: list[Element] = []
    parser = expat.ParserCreate("utf-8")  # whatever the declaration says: text is decoded
    parser.buffer_text = True

    def start(tag: str, attributes: dict[str, str]) -> None:
        # Without the prefix of a namespace.
        element = Element(tag.rpartition(":")[2], attributes, parser.CurrentLineNumber)
        (stack[-1].children if stack else roots).append(element)
        stack.append(element)

    def end(_: str) -> None:
        stack.pop()

    def characters(part: str) -> None:
        stack[-1].text += part

    def refuse(*_: object) -> NoReturn:
        raise FormatError("entities are not supported; remove <!ENTITY ...>.")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = characters
    parser.EntityDeclHandler = refuse
    parser.ExternalEntityRefHandler = refuse
    try:
        parser.Parse(text.encode("utf-8"), True)  # noqa: FBT003 - the last part
    except expat.ExpatError as error:
        raise FormatError(f"Line {error.lineno} of the XML text: {error}.") from None
    except FormatError as error:
        raise FormatError(f"Line {parser.CurrentLineNumber} of the XML text: {error}") from None
    if roots[0].tag != root:
        raise FormatError(f"The XML text begins with <{roots[0].tag}>; <{root}> is needed.")
    return roots[0]


def escape_xml(text: str) -> str:
    """Return text that is safe between tags and in attributes."""
    if _ILLEGAL.search(text):
        raise FormatError(f"{text!r} contains characters not allowed in XML; rename it.")
    return "".join(_ESCAPES.get(letter, letter) for letter in text)


# --- Reader and writer for discrete networks in XMLBIF 0.3 --------------------------------------


def to_xmlbif(network: DiscreteNetwork, *, name: str = "unknown") -> str:
    """Return a discrete network as XMLBIF text; levels are converted to text."""
    require_discrete(network, "XMLBIF")
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<BIF VERSION="0.3">', "<NETWORK>"]
    lines.append(f"<NAME>{escape_xml(name)}</NAME>")
    for node in network.dag.nodes:
        texts = level_texts(node, network.levels[node])
        lines += ['<VARIABLE TYPE="nature">', f"  <NAME>{escape_xml(node)}</NAME>"]
        lines += [f"  <OUTCOME>{escape_xml(text)}</OUTCOME>" for text in texts]
        lines.append("</VARIABLE>")
    for node in network.dag.nodes:
        lines += ["<DEFINITION>", f"  <FOR>{escape_xml(node)}</FOR>"]
        lines += [f"  <GIVEN>{escape_xml(p)}</GIVEN>" for p in network.dag.parents(node)]
        rows = [" ".join(map(repr, row)) for row in rows_of(network, node)]
        lines += ["  <TABLE>", *(f"    {row}" for row in rows), "  </TABLE>", "</DEFINITION>"]
    return "\n".join([*lines, "</NETWORK>", "</BIF>", ""])


def from_xmlbif(text: str, *, normalise: bool = False) -> DiscreteNetwork:
    """Read a discrete network from XMLBIF text.

    Parameters
    ----------
    text
        The text. Properties are ignored.
    normalise
        Scale each row of probabilities to sum to one.
    """
    root = parse_xml(text, "BIF").one("NETWORK")
    levels, parents, numbers = {}, {}, {}
    for variable in root.all("VARIABLE"):
        if variable.attributes.get("TYPE", "nature") != "nature":
            raise FormatError(f"Line {variable.line}: only variables of type nature are supported.")
        levels[variable.one("NAME").text] = [own.text for own in variable.all("OUTCOME")]
    for definition in root.all("DEFINITION"):
        node = definition.one("FOR").text
        parents[node] = [given.text for given in definition.all("GIVEN")]
        numbers[node] = floats(definition.one("TABLE").text, f"The table of {node!r}")
    return network_of(levels, parents, numbers, normalise=normalise)


def read_xmlbif(path: str | PathLike[str], *, normalise: bool = False) -> DiscreteNetwork:
    """Read a discrete network from an XMLBIF file; see `from_xmlbif`."""
    return from_xmlbif(read_text(path), normalise=normalise)


def write_xmlbif(network: DiscreteNetwork, path: str | PathLike[str]) -> None:
    """Write a discrete network to an XMLBIF file; for pyAgrum, its name must end in ``.bifxml``."""
    write_text(to_xmlbif(network), path)


# --- Reader and writer for discrete networks in XDSL, the format of GeNIe and SMILE -------------
#
# Nodes and states have identifiers there. Where a name is none, it is kept as a property of its
# node and read back.

_NAME, _LEVELS = "isthmus_name", "isthmus_levels"


def to_xdsl(network: DiscreteNetwork, *, name: str = "network") -> str:
    """Return a discrete network as XDSL text; levels are converted to text."""
    require_discrete(network, "GeNIe")
    ids = identifiers(network.dag.nodes, "n")
    nodes, extensions = [], []
    for node in network.dag.topological_order():
        texts = level_texts(node, network.levels[node])
        states = identifiers(texts, "s")
        nodes.append(f'    <cpt id="{ids[node]}">')
        nodes += [f'      <state id="{states[text]}" />' for text in texts]
        above = network.dag.parents(node)
        if above:
            nodes.append(f"      <parents>{' '.join(ids[p] for p in above)}</parents>")
        flat = " ".join(repr(value) for row in rows_of(network, node) for value in row)
        nodes.append(f"      <probabilities>{flat}</probabilities>")
        if ids[node] != node:
            nodes.append(f'      <property id="{_NAME}">{escape_xml(node)}</property>')
        if list(states.values()) != texts:
            kept = escape_xml(json.dumps(texts))
            nodes.append(f'      <property id="{_LEVELS}">{kept}</property>')
        nodes.append("    </cpt>")
        extensions += [
            f'      <node id="{ids[node]}">',
            f"        <name>{escape_xml(node)}</name>",
            "      </node>",
        ]
    title = escape_xml(name)
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<smile version="1.0" id="{identifiers([name], "n")[name]}">',
            "  <nodes>",
            *nodes,
            "  </nodes>",
            "  <extensions>",
            f'    <genie version="1.0" app="Isthmus" name="{title}">',
            *extensions,
            "    </genie>",
            "  </extensions>",
            "</smile>",
            "",
        ]
    )


def from_xdsl(text: str, *, normalise: bool = False) -> DiscreteNetwork:
    """Read a discrete network from XDSL text.

    Parameters
    ----------
    text
        The text; nodes that are not tables of probabilities are errors.
    normalise
        Scale each row of probabilities to sum to one.
    """
    levels, parents, numbers = {}, {}, {}
    names: dict[str, str] = {}
    nodes = parse_xml(text, "smile").one("nodes").children
    for node in nodes:
        if node.tag != "cpt":
            raise FormatError(f"Line {node.line}: <{node.tag}> is not supported, only <cpt>.")
        names[node.attribute("id")] = _property(node, _NAME) or node.attribute("id")
    for node in nodes:
        name = names[node.attribute("id")]
        kept = _property(node, _LEVELS)
        states = [state.attribute("id") for state in node.all("state")]
        levels[name] = states if kept is None else _levels(kept, len(states))
        above = " ".join(own.text for own in node.all("parents")).split()
        parents[name] = [names.get(p, p) for p in above]
        numbers[name] = floats(node.one("probabilities").text, f"The table of {name!r}")
    return network_of(levels, parents, numbers, normalise=normalise)


def _property(node: Element, key: str) -> str | None:
    return next((p.text for p in node.all("property") if p.attributes.get("id") == key), None)


def _levels(text: str, size: int) -> list[str]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list) or len(found) != size:
        raise FormatError(f"The property {_LEVELS} is {text!r}; a list of {size} names is needed.")
    return [str(level) for level in found]


def read_xdsl(path: str | PathLike[str], *, normalise: bool = False) -> DiscreteNetwork:
    """Read a discrete network from an XDSL file; see `from_xdsl`."""
    return from_xdsl(read_text(path), normalise=normalise)


def write_xdsl(network: DiscreteNetwork, path: str | PathLike[str]) -> None:
    """Write a discrete network to an XDSL file."""
    write_text(to_xdsl(network), path)


# --- Reader and writer for graphs in GraphML ----------------------------------------------------

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
