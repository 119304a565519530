"""Reader and writer for discrete networks in Hugin's format, files ``.net``.

Nodes have identifiers there. Where a name is none, it is kept as an attribute of its node and read
back.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, final

from isthmus.errors import FormatError
from isthmus.io.files import (
    KINDS,
    build,
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

Value: TypeAlias = "str | list[Value]"

_NAME = "isthmus_name"
_TOKEN = re.compile(r'%[^\n]*|"(?:[^"\\]|\\.)*"|[{}()=;|]|[^\s{}()=;|"%]+|"', re.DOTALL)


def to_hugin(network: DiscreteNetwork) -> str:
    """Return a discrete network as the text of a ``.net`` file; levels are converted to text."""
    require_discrete(network, "Hugin")
    ids = identifiers(network.dag.nodes, "n")
    lines = ["net", "{", "}", ""]
    for node in network.dag.nodes:
        texts = " ".join(_quoted(text) for text in level_texts(node, network.levels[node]))
        lines += [f"node {ids[node]}", "{", f"  states = ({texts});", f"  label = {_quoted(node)};"]
        if ids[node] != node:
            lines.append(f"  {_NAME} = {_quoted(node)};")
        lines += ["}", ""]
    for node in network.dag.nodes:
        above = network.dag.parents(node)
        given = f" | {' '.join(ids[p] for p in above)}" if above else ""
        sizes = [len(network.levels[p]) for p in above]
        cells = [" ".join(map(repr, row)) for row in rows_of(network, node)]
        lines += [f"potential ({ids[node]}{given})", "{", "  data = " + _nested(cells, sizes) + ";"]
        lines += ["}", ""]
    return "\n".join(lines)


def from_hugin(text: str, *, normalise: bool = False) -> DiscreteNetwork:
    """Read a discrete network from the text of a ``.net`` file.

    Parameters
    ----------
    text
        The text. Decisions, utilities and continuous nodes are errors; attributes of layout are
        ignored.
    normalise
        Scale each row of probabilities to sum to one.
    """
    levels, parents, numbers = {}, {}, {}
    names: dict[str, str] = {}
    potentials: list[tuple[str, list[str], Value]] = []
    parser = _HuginParser(text)
    if not parser.more():
        parser.fail("it is empty")
    while parser.more():
        word = parser.word()
        if word in ("net", "class"):
            if parser.peek() != "{":
                parser.word()
            parser.attributes()
        elif word in ("node", "discrete"):
            if word == "discrete":
                parser.expect("node")
            node = parser.word()
            if node in names:
                parser.fail(f"node {node!r} is defined twice")
            own = parser.attributes()
            states = own.get("states")
            if not isinstance(states, list):
                raise FormatError(f"The node {node!r} of the .net text has no states.")
            kept = own.get(_NAME, node)
            names[node] = kept if isinstance(kept, str) else node
            levels[names[node]] = [str(state) for state in states]
        elif word == "potential":
            node, above = parser.head()
            potentials.append((node, above, parser.attributes().get("data", [])))
        else:
            parser.fail(f"{word!r} is not supported; expected net, node or potential")
    for node, above, data in potentials:
        name = names.get(node, node)
        parents[name] = [names.get(p, p) for p in above]
        numbers[name] = [_number(value) for value in _flat(data)]
    return network_of(levels, parents, numbers, normalise=normalise)


def read_hugin(path: str | PathLike[str], *, normalise: bool = False) -> DiscreteNetwork:
    """Read a discrete network from a ``.net`` file; see `from_hugin`."""
    return from_hugin(read_text(path), normalise=normalise)


def write_hugin(network: DiscreteNetwork, path: str | PathLike[str]) -> None:
    """Write a discrete network to a ``.net`` file."""
    write_text(to_hugin(network), path)


def _nested(cells: list[str], sizes: list[int]) -> str:
    """Return rows in as many pairs of parentheses as there are parents, first parent outside."""
    parts = [f"({cell})" for cell in cells]
    for size in reversed(sizes):
        parts = [f"({' '.join(parts[i : i + size])})" for i in range(0, len(parts), size)]
    return parts[0]


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _flat(value: Value) -> list[str]:
    found: list[str] = []
    stack = [value]
    while stack:
        top = stack.pop()
        if isinstance(top, str):
            found.append(top)
        else:
            stack.extend(reversed(top))
    return found


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise FormatError(f"{word!r} in a table of the .net text is not a number.") from None


@final
class _HuginParser:
    """A parser in one pass over the tokens."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [m for m in _TOKEN.finditer(text) if not m.group().startswith("%")]
        self._at = 0

    def more(self) -> bool:
        return self._at < len(self._tokens)

    def peek(self) -> str:
        return self._tokens[self._at].group() if self.more() else ""

    def word(self) -> str:
        if not self.more():
            self.fail("the text ends too early")
        self._at += 1
        return self._tokens[self._at - 1].group()

    def expect(self, token: str) -> None:
        found = self.word()
        if found != token:
            self.fail(f"expected {token!r}, found {found!r}")

    def fail(self, message: str) -> NoReturn:
        place = self._tokens[max(self._at - 1, 0)].start() if self._tokens else 0
        line = self._text.count("\n", 0, place) + 1
        raise FormatError(f"Line {line} of the .net text: {message}.")

    def head(self) -> tuple[str, list[str]]:
        """Read the node and the parents of a potential."""
        self.expect("(")
        node, above = self.word(), list[str]()
        token = self.word()
        if token == "|":
            while (token := self.word()) != ")":
                above.append(token)
        elif token != ")":
            self.fail(f"expected '|' or ')', found {token!r}: one node per potential is supported")
        return node, above

    def attributes(self) -> dict[str, Value]:
        """Read what is between braces."""
        self.expect("{")
        found: dict[str, Value] = {}
        while (key := self.word()) != "}":
            self.expect("=")
            found[key] = self._value()
            self.expect(";")
        return found

    def _value(self) -> Value:
        token = self.word()
        if token != "(":
            return _unquoted(token)
        outer: list[list[Value]] = [[]]
        while True:
            token = self.word()
            if token == "(":
                outer.append([])
            elif token == ")":
                inner = outer.pop()
                if not outer:
                    return inner
                outer[-1].append(inner)
            else:
                outer[-1].append(_unquoted(token))


def _unquoted(token: str) -> str:
    if len(token) > 1 and token.startswith('"'):
        return re.sub(r"\\(.)", r"\1", token[1:-1], flags=re.DOTALL)
    return token


# --- Reader and writer for graphs in GML, which Gephi, Cytoscape, igraph and networkx open ------

Items: TypeAlias = "list[tuple[str, Any]]"
_NAMED = {"amp": "&", "quot": '"', "lt": "<", "gt": ">", "apos": "'"}
_GML_TOKEN = re.compile(r'#[^\n]*(?=\n|\Z)|"[^"]*"|[\[\]]|[^\s\[\]"]+|"')


def to_gml(graph: Graph) -> str:
    """Return a graph as GML text; undirected edges have the attribute ``undirected 1``."""
    directed, undirected = split_edges(graph)
    place = {name: i for i, name in enumerate(graph.nodes)}
    lines = ["graph [", "  directed 1", f'  isthmusType "{kind_name(graph)}"']
    lines += [f"  node [ id {i} label {_gml_quoted(name)} ]" for name, i in place.items()]
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
    for node in (_fields(own, key) for key, own in content if key == "node"):
        names[_get(node, "id", "node")] = str(node.get("label", node.get("id")))
    for edge in (_fields(own, key) for key, own in content if key == "edge"):
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


def _fields(value: Any, key: str) -> dict[str, Any]:
    if not isinstance(value, list):
        raise FormatError(f"A {key} of the GML text is {value!r}, which is no list in [ ].")
    return dict(value)


def _get(item: dict[str, Any], key: str, what: str) -> str:
    if key not in item:
        raise FormatError(f"A {what} of the GML text has no {key}.")
    return str(item[key])


def _parse(text: str) -> Items:
    stack: list[Items] = [[]]
    key: str | None = None
    for match in _GML_TOKEN.finditer(text):
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


def _gml_quoted(name: str) -> str:
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
