"""Reader and writer for graphs in GML, which Gephi, Cytoscape, igraph and networkx open."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any, TypeAlias

from isthmus.errors import FormatError
from isthmus.io.files import KINDS, build, kind_name, read_text, split_edges, write_text

if TYPE_CHECKING:
    from os import PathLike

    from isthmus.io.files import Graph, Kind, Pair

Items: TypeAlias = "list[tuple[str, Any]]"
_NAMED = {"amp": "&", "quot": '"', "lt": "<", "gt": ">", "apos": "'"}
_TOKEN = re.compile(r'#[^\n]*(?=\n|\Z)|"[^"]*"|[\[\]]|[^\s\[\]"]+|"')


def to_gml(graph: Graph) -> str:
    """Return a graph as GML text; undirected edges have the attribute ``undirected 1``."""
    directed, undirected = split_edges(graph)
    place = {name: i for i, name in enumerate(graph.nodes)}
    lines = ["graph [", "  directed 1", f'  isthmusType "{kind_name(graph)}"']
    lines += [f"  node [ id {i} label {_quoted(name)} ]" for name, i in place.items()]
    for edges, extra in ((directed, ""), (undirected, " undirected 1")):
        lines += [f"  edge [ source {place[a]} target {place[b]}{extra} ]" for a, b in edges]
    return "\n".join([*lines, "]", ""])


def from_gml(text: str, kind: Kind | None = None) -> Graph:
    """Read a graph from GML text.

    Parameters
    ----------
    text
        Text with one graph. Nodes without a label are called by their id.
    kind
        `DAG`, `CPDAG` or `PDAG`. By default the type stated in the file if Isthmus wrote it,
        otherwise a DAG, or a PDAG if some edges are undirected.
    """
    graphs = [value for key, value in _parse(text) if key == "graph" and isinstance(value, list)]
    if len(graphs) != 1:
        raise FormatError(f"The GML text must have one graph; it has {len(graphs)}.")
    content = graphs[0]
    whole = dict(content)
    names: dict[str, str] = {}
    directed: list[Pair] = []
    undirected: list[Pair] = []
    for node in (dict(own) for key, own in content if key == "node"):
        names[_get(node, "id", "node")] = str(node.get("label", node.get("id")))
    for edge in (dict(own) for key, own in content if key == "edge"):
        ends = [_get(edge, end, "edge") for end in ("source", "target")]
        unknown = [end for end in ends if end not in names]
        if unknown:
            raise FormatError(f"An edge of the GML text has the unknown node {unknown[0]}.")
        one_way = whole.get("directed", "0") == "1" and edge.get("undirected", "0") != "1"
        (directed if one_way else undirected).append((names[ends[0]], names[ends[1]]))
    stated = KINDS.get(str(whole.get("isthmusType", "")))
    return build(kind or stated, list(names.values()), directed, undirected)


def read_gml(path: str | PathLike[str], kind: Kind | None = None) -> Graph:
    """Read a graph from a GML file; see `from_gml`."""
    return from_gml(read_text(path), kind)


def write_gml(graph: Graph, path: str | PathLike[str]) -> None:
    """Write a graph to a GML file."""
    write_text(to_gml(graph), path)


def _get(item: dict[str, Any], key: str, what: str) -> str:
    if key not in item:
        raise FormatError(f"A {what} of the GML text has no {key}.")
    return str(item[key])


def _parse(text: str) -> Items:
    stack: list[Items] = [[]]
    key: str | None = None
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token.startswith("#"):
            continue
        if key is None and token == "]" and len(stack) > 1:
            stack.pop()
        elif key is None and re.fullmatch(r"[A-Za-z]\w*", token):
            key = token
        elif key is not None and token == "[":
            inner: Items = []
            stack[-1].append((key, inner))
            stack.append(inner)
            key = None
        elif key is not None and token not in ("]", '"'):
            value = _unescaped(token[1:-1]) if token.startswith('"') else token
            stack[-1].append((key, value))
            key = None
        else:
            line = text.count("\n", 0, match.start()) + 1
            raise FormatError(f"Line {line} of the GML text: unexpected {token!r}.")
    if key is not None or len(stack) > 1:
        raise FormatError("The GML text ends too early.")
    return stack[0]


def _quoted(name: str) -> str:
    """Return a name in quotation marks; what is not plain ASCII becomes a character entity."""
    plain = (c if " " <= c <= "~" and c not in '&"' else f"&#{ord(c)};" for c in name)
    return f'"{"".join(plain)}"'


def _unescaped(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        number, name = match.groups()
        if number is None:
            return _NAMED.get(name, match.group())
        return chr(int(number)) if int(number) <= sys.maxunicode else match.group()

    return re.sub(r"&(?:#(\d{1,7})|([a-z]+));", character, text)
