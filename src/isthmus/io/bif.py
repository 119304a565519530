"""Reader and writer for the Bayesian network interchange format (BIF 0.15)."""

from __future__ import annotations

import json
import re
from itertools import islice, product
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from isthmus.errors import DataError, FormatError, GraphError
from isthmus.graphs import DAG
from isthmus.io.files import identifiers, level_texts, read_text, require_discrete, write_text
from isthmus.networks import DiscreteNetwork

if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike

    from numpy.typing import NDArray

_WORD = r'[^\s{}()\[\];,|"]+'
_TOKEN = re.compile(rf'"(?:[^"\\]|\\.)*"|[{{}}()\[\];|]|{_WORD}|"', re.DOTALL)
# A comment starts at the start of a token only, so that a word such as http://x is no comment.
_COMMENT = re.compile(
    r'"(?:[^"\\]|\\.)*"|(?<![^\s{}()\[\];,|])(?://[^\n]*|/\*.*?(?:\*/|\Z))', re.DOTALL
)

_PLAIN = re.compile(r"_*[A-Za-z][A-Za-z0-9_]*(?:[.-][A-Za-z0-9_]+)*|-?[0-9]{1,9}")
_KEYWORDS = frozenset(
    ("network", "variable", "probability", "property", "type", "discrete", "default", "table")
)
_NAMES = re.compile(r"^// Original names: (.*)$", re.MULTILINE)


def read_bif(path: str | PathLike[str], *, normalise: bool = False) -> DiscreteNetwork:
    """Read a discrete network from a BIF file, which may be compressed.

    Parameters
    ----------
    path
        Path of the file.
    normalise
        Scale each row of probabilities to sum to one. By default probabilities are read as
        written, and a row whose sum differs from one by more than 1e-5 is an error.

    Raises
    ------
    FormatError
        If the file is not valid BIF. The message gives the line number.
    """
    return from_bif(read_text(path), normalise=normalise)


def write_bif(network: DiscreteNetwork, path: str | PathLike[str]) -> None:
    """Write a discrete network to a BIF file, compressed if its name ends in ``.gz``."""
    write_text(to_bif(network), path)


def from_bif(text: str, *, normalise: bool = False) -> DiscreteNetwork:
    """Read a discrete network from BIF text; see `read_bif`."""
    return _BifParser(text, normalise=normalise).network()


def to_bif(network: DiscreteNetwork, *, name: str = "unknown") -> str:
    """Return a discrete network as BIF text.

    Numbers are written with full precision. BIF supports text levels only; other levels are
    converted to text. pyAgrum reads no names or levels with spaces or other special characters:
    these are replaced by underscores, as in ``body_mass`` for ``body mass``. The file keeps the
    original ones in a comment, from which `read_bif` restores them.
    """
    require_discrete(network, "BIF")
    words = _words(network.dag.nodes, "n")
    texts = {node: level_texts(node, network.levels[node]) for node in network.dag.nodes}
    levels = {node: _words(own, "s") for node, own in texts.items()}
    labels = {node: list(levels[node].values()) for node in network.dag.nodes}
    lines = [*_original_names(words, levels), f"network {_words([name], 'n')[name]} {{", "}"]
    for node, own in labels.items():
        lines += [
            f"variable {words[node]} {{",
            f"  type discrete [ {len(own)} ] {{ {', '.join(own)} }};",
            "}",
        ]
    for node in network.dag.nodes:
        parents = network.dag.parents(node)
        rows = network.tables[node].reshape(-1, len(labels[node])).tolist()
        if parents:
            above = ", ".join(words[parent] for parent in parents)
            lines.append(f"probability ( {words[node]} | {above} ) {{")
            states = product(*(labels[parent] for parent in parents))
            for state, row in zip(states, rows, strict=True):
                lines.append(f"  ({', '.join(state)}) {', '.join(map(repr, row))};")
        else:
            lines.append(f"probability ( {words[node]} ) {{")
            lines.append(f"  table {', '.join(map(repr, rows[0]))};")
        lines.append("}")
    return "\n".join([*lines, ""])


def _words(texts: Iterable[str], prefix: str) -> dict[str, str]:
    """Return a word for each text that pyAgrum and pgmpy read, the text itself if they do."""

    def plain(text: str) -> bool:
        # A number is a level, and not a name, for pyAgrum.
        number = prefix == "n" and text.lstrip("-").isdigit()
        return bool(_PLAIN.fullmatch(text)) and text not in _KEYWORDS and not number

    return identifiers(texts, prefix, plain)


def _original_names(words: dict[str, str], levels: dict[str, dict[str, str]]) -> list[str]:
    """Return a comment with what was replaced; nothing if nothing was."""
    names = {word: node for node, word in words.items() if word != node}
    states = {
        words[node]: {word: text for text, word in own.items() if word != text}
        for node, own in levels.items()
    }
    states = {word: own for word, own in states.items() if own}
    if not names and not states:
        return []
    text = json.dumps({"variables": names, "levels": states})
    # No reader should take a part of a name for the beginning or the end of a comment.
    text = text.replace("/", r"\/").replace("*", r"\u002a")
    return [f"// Original names: {text}"]


class _BifParser:
    """A parser in one pass over the tokens. Line numbers are computed only for messages."""

    def __init__(self, text: str, *, normalise: bool) -> None:
        self.original = _NAMES.search(text)
        if "//" in text or "/*" in text:
            text = _COMMENT.sub(_blank, text)
        self.text = text
        self.tokens: list[str] = _TOKEN.findall(text)
        self.tokens.append("")
        self.at = 0
        self.normalise = normalise
        self.levels: dict[str, list[str]] = {}
        self.codes: dict[str, dict[str, int]] = {}
        self.parents: dict[str, list[str]] = {}
        self.tables: dict[str, NDArray[np.float64]] = {}

    def network(self) -> DiscreteNetwork:
        blocks = {
            "network": self._network,
            "variable": self._variable,
            "probability": self._probability,
        }
        while token := self.tokens[self.at]:
            if token not in blocks:
                self._fail(f"expected 'network', 'variable' or 'probability', found {token!r}")
            self.at += 1
            blocks[token]()
        if not self.levels:
            self._fail("there is no variable")
        missing = [node for node in self.levels if node not in self.tables]
        if missing:
            self._fail(f"variable {missing[0]!r} has no probability block")
        try:
            self._restore_names()
            edges = [(p, node) for node, own in self.parents.items() for p in own]
            dag = DAG(self.levels, edges)
            tables = {node: self._transposed(dag, node) for node in self.levels}
            levels = {node: tuple(own) for node, own in self.levels.items()}
            return DiscreteNetwork(dag, levels, tables)
        except (GraphError, DataError) as error:
            raise FormatError(f"The BIF text is not a valid network. {error}") from None

    def _restore_names(self) -> None:
        """Put back names and levels that were replaced when the file was written."""
        if self.original is None:
            return
        try:
            replaced = json.loads(self.original.group(1))
            names = {str(word): str(name) for word, name in replaced["variables"].items()}
            for word, own in replaced["levels"].items():
                levels = {str(a): str(b) for a, b in own.items()}
                if word in self.levels:
                    self.levels[word] = [levels.get(text, text) for text in self.levels[word]]
        except (ValueError, KeyError, TypeError, AttributeError):
            line = self.text.count("\n", 0, self.original.start()) + 1
            raise FormatError(
                f"Line {line} of the BIF text: the comment with the original names is damaged. "
                "Remove it to read the file with the names that are in it."
            ) from None
        if len({names.get(word, word) for word in self.levels}) < len(self.levels):
            raise FormatError("The comment with the original names of the BIF text repeats one.")
        self.parents = {
            names.get(node, node): [names.get(parent, parent) for parent in own]
            for node, own in self.parents.items()
        }
        self.levels = {names.get(node, node): own for node, own in self.levels.items()}
        self.tables = {names.get(node, node): own for node, own in self.tables.items()}

    def _transposed(self, dag: DAG, node: str) -> NDArray[np.float64]:
        """Return a table with its axes in the order of the graph instead of the file."""
        own = self.parents[node]
        axes = [own.index(parent) for parent in dag.parents(node)]
        return self.tables[node].transpose(*axes, len(axes))

    def _network(self) -> None:
        while self.tokens[self.at] not in ("{", ""):
            self.at += 1
        self._take("{")
        while self.tokens[self.at] != "}":
            self._property()
        self.at += 1

    def _variable(self) -> None:
        name = self._name("a variable name")
        if name in self.levels:
            self._fail(f"variable {name!r} is defined twice", back=1)
        self._take("{")
        while (token := self.tokens[self.at]) != "}":
            if token == "type":
                self._type(name)
            else:
                self._property()
        self.at += 1
        if name not in self.levels:
            self._fail(f"variable {name!r} has no type", back=1)

    def _type(self, name: str) -> None:
        self.at += 1
        if self.tokens[self.at] != "discrete":
            self._fail(f"only 'type discrete' is supported, found {self.tokens[self.at]!r}")
        self.at += 1
        self._take("[")
        count = self._name("the number of levels")
        self._take("]")
        self._take("{")
        levels = []
        while self.tokens[self.at] != "}":
            levels.append(self._name("a level or '}'"))
        if count != str(len(levels)):
            self._fail(f"variable {name!r} declares {count} levels and lists {len(levels)}")
        if len(set(levels)) != len(levels):
            self._fail(f"variable {name!r} lists a level twice")
        self.at += 1
        self._take(";")
        self.levels[name] = levels
        self.codes[name] = {level: i for i, level in enumerate(levels)}

    def _property(self) -> None:
        if self.tokens[self.at] != "property":
            self._fail(f"expected 'property' or '}}', found {self.tokens[self.at]!r}")
        while self.tokens[self.at] not in (";", ""):
            self.at += 1
        self._take(";")

    def _probability(self) -> None:
        self._take("(")
        node, *parents = self._family()
        if node in self.tables:
            self._fail(f"{node!r} has two probability blocks")
        self._take("{")
        shape = [len(self.levels[name]) for name in (*parents, node)]
        rows = _BifRows(int(np.prod(shape[:-1])), shape[-1])
        while (token := self.tokens[self.at]) != "}":
            if token == "(":
                self._row(node, parents, rows)
            elif token == "table":
                self.at += 1
                # In this format the values of the node vary slowest.
                values = self._numbers(rows.count * rows.width)
                by_parents = np.array(values).reshape(rows.width, rows.count).T
                rows.given = dict(enumerate(by_parents.tolist()))
            elif token == "default":
                self.at += 1
                rows.default = self._numbers(rows.width)
            else:
                self._property()
        table = self._filled(node, parents, rows).reshape(shape)
        self.at += 1
        self.parents[node], self.tables[node] = parents, table

    def _family(self) -> list[str]:
        family: list[str] = []
        while self.tokens[self.at] != ")":
            if self.tokens[self.at] == "|" and len(family) == 1:
                self.at += 1
                continue
            name = self._name("a variable name or ')'")
            if name not in self.levels:
                self._fail(f"{name!r} is not a variable defined above", back=1)
            if name in family:
                self._fail(f"{name!r} is listed twice in one probability block", back=1)
            family.append(name)
        if not family:
            self._fail("a probability block needs a variable")
        self.at += 1
        return family

    def _row(self, node: str, parents: list[str], rows: _BifRows) -> None:
        start = self.at
        self.at += 1
        place = 0
        for parent in parents:
            level = self._name(f"a level of {parent!r}")
            code = self.codes[parent].get(level)
            if code is None:
                self._fail(
                    f"{level!r} is not a level of {parent!r}, which has {self.levels[parent]}",
                    back=1,
                )
            place = place * len(self.levels[parent]) + code
        self._take(")")
        if place in rows.given:
            self.at = start
            self._fail(f"this row of {node!r} is given twice")
        rows.given[place] = self._numbers(rows.width)

    def _filled(self, node: str, parents: list[str], rows: _BifRows) -> NDArray[np.float64]:
        if len(rows.given) < rows.count and rows.default is None:
            place = next(i for i in range(rows.count) if i not in rows.given)
            sizes = [len(self.levels[parent]) for parent in parents]
            codes = np.unravel_index(place, sizes) if sizes else ()
            state = ", ".join(self.levels[p][int(c)] for p, c in zip(parents, codes, strict=True))
            self._fail(
                f"{node!r} has no probabilities for ({state}) "
                f"and {rows.count - len(rows.given) - 1} other rows, and no default"
            )
        default = rows.default or []
        table = np.array([rows.given.get(i, default) for i in range(rows.count)], dtype=np.float64)
        if self.normalise:
            with np.errstate(invalid="ignore"):
                table /= table.sum(axis=1, keepdims=True)
        return table

    def _numbers(self, count: int) -> list[float]:
        values = self.tokens[self.at : self.at + count]
        try:
            numbers = [float(value) for value in values]
        except ValueError:
            wrong = next(i for i, value in enumerate(values) if not _is_number(value))
            self.at += wrong
            if self.tokens[self.at] == ";":
                self._fail(f"expected {count} numbers, found {wrong}")
            self._fail(f"expected a number, found {self.tokens[self.at]!r}")
        self.at += count
        if self.tokens[self.at] != ";":
            self._fail(f"expected ';' after {count} numbers, found {self.tokens[self.at]!r}")
        self.at += 1
        return numbers

    def _name(self, what: str) -> str:
        token = self.tokens[self.at]
        if token.startswith('"') and len(token) > 1:
            token = re.sub(r'\\(["\\])', r"\1", token[1:-1])
        elif not token or token in '{}()[];|"':
            self._fail(f"expected {what}, found {token!r}")
        self.at += 1
        return token

    def _take(self, token: str) -> None:
        if self.tokens[self.at] != token:
            self._fail(f"expected {token!r}, found {self.tokens[self.at]!r}")
        self.at += 1

    def _fail(self, message: str, *, back: int = 0) -> NoReturn:
        place = next(islice(_TOKEN.finditer(self.text), self.at - back, None), None)
        end = len(self.text) if place is None else place.start()
        line = self.text.count("\n", 0, end) + 1
        message = message.replace("found ''", "found the end of the text")
        raise FormatError(f"Line {line} of the BIF text: {message}.")


class _BifRows:
    """Rows of one table that have been read so far."""

    __slots__ = ("count", "default", "given", "width")

    def __init__(self, count: int, width: int) -> None:
        self.count = count
        self.width = width
        self.given: dict[int, list[float]] = {}
        self.default: list[float] | None = None


def _blank(match: re.Match[str]) -> str:
    text = match.group()
    return text if text.startswith('"') else " " + "\n" * text.count("\n")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# --- Reader and writer for graphs as model strings of R's bnlearn: ``[a][b|a][c|a:b]`` ----------

_SPECIAL = re.compile(r"[\[\]|:]")
_NODE = re.compile(r"\[([^\[\]|:]+)(?:\|([^\[\]|]+))?\]")


def to_model_string(dag: DAG) -> str:
    """Return a graph as a model string, causes first.

    Raises
    ------
    FormatError
        If a name contains one of the characters ``[``, ``]``, ``|`` and ``:``.
    """
    for node in dag.nodes:
        if _SPECIAL.search(node):
            raise FormatError(
                f"The name {node!r} has one of the characters [ ] | : in it; rename it."
            )
    parts = []
    for node in dag.topological_order():
        above = dag.parents(node)
        parts.append(f"[{node}|{':'.join(above)}]" if above else f"[{node}]")
    return "".join(parts)


def from_model_string(text: str) -> DAG:
    """Read a graph from a model string; the nodes are in the order of the string."""
    text = text.strip()
    found = list(_NODE.finditer(text))
    if "".join(match.group() for match in found) != text:
        raise FormatError(f"{text[:60]!r} is not a model string such as '[a][b|a][c|a:b]'.")
    edges = [(p, m.group(1)) for m in found for p in (m.group(2) or "").split(":") if p]
    try:
        return DAG([match.group(1) for match in found], edges)
    except GraphError as error:
        raise FormatError(f"The model string is not a graph: {error}") from None
