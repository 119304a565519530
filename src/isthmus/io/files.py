"""What readers and writers of files share: text, and graphs from lists of edges."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from isthmus.arrays import Floats
from isthmus.errors import FormatError, GraphError, IsthmusError, MismatchError, a_type
from isthmus.graphs import CPDAG, DAG, PDAG
from isthmus.networks import DiscreteNetwork

if TYPE_CHECKING:
    from os import PathLike

    from isthmus.networks import Level

_GZIP = b"\x1f\x8b"


def read_text(path: str | PathLike[str]) -> str:
    """Return the text of a file, which may be compressed; line endings are not changed."""
    raw = Path(path).read_bytes()
    try:
        if raw.startswith(_GZIP):
            raw = gzip.decompress(raw)
        return raw.decode("utf-8-sig")
    except (OSError, EOFError, zlib.error) as error:
        raise FormatError(f"{fspath(path)} cannot be decompressed: {error}.") from None
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise FormatError(
            f"{fspath(path)} is not UTF-8 text (line {line}). Save it as UTF-8 first."
        ) from None


def write_text(text: str, path: str | PathLike[str]) -> None:
    """Write text as UTF-8; the same text always gives the same file."""
    raw = text.encode("utf-8")
    if fspath(path).endswith(".gz"):
        raw = gzip.compress(raw, mtime=0)
    Path(path).write_bytes(raw)


Graph: TypeAlias = DAG | CPDAG | PDAG
Kind: TypeAlias = type[DAG] | type[CPDAG] | type[PDAG]
Pair: TypeAlias = tuple[str, str]

KINDS: dict[str, Kind] = {"dag": DAG, "cpdag": CPDAG, "pdag": PDAG}


def kind_name(graph: Graph) -> str:
    """Return the name of a graph's type that is used in files."""
    for name, kind in KINDS.items():
        if isinstance(graph, kind):
            return name
    raise GraphError(f"Expected a DAG, CPDAG or PDAG, got {type(graph).__name__}.")


def split_edges(graph: Graph) -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
    """Return the directed and the undirected edges."""
    kind_name(graph)
    if isinstance(graph, DAG):
        return graph.edges, ()
    return graph.directed, graph.undirected


def build(
    kind: Kind | None, nodes: Sequence[str], directed: Iterable[Pair], undirected: Iterable[Pair]
) -> Graph:
    """Build a graph of a given type; by default a DAG, or a PDAG if some edges are undirected."""
    undirected = tuple(undirected)
    if kind is None:
        kind = PDAG if undirected else DAG
    if kind is DAG:
        if undirected:
            a, b = undirected[0]
            raise FormatError(
                f"A DAG has no undirected edges, but {a!r} – {b!r} is undirected. "
                "Read the graph as a PDAG or CPDAG."
            )
        return DAG(nodes, directed)
    if kind is CPDAG:
        return CPDAG(nodes, directed, undirected)
    return PDAG(nodes, directed, undirected)


def is_identifier(text: str) -> bool:
    """Return whether a text has only letters, digits and underscores, and a letter first."""
    return re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", text) is not None


def identifiers(
    texts: Iterable[str], prefix: str, fits: Callable[[str], bool] = is_identifier
) -> dict[str, str]:
    """Return for each text a unique identifier: the text itself if it is one.

    Parameters
    ----------
    prefix
        Letter to put before what is still no identifier.
    fits
        Which texts are identifiers; at least those of letters, digits and underscores that begin
        with the prefix and an underscore.
    """
    wanted = list(texts)
    taken = {text for text in wanted if fits(text)}
    found: dict[str, str] = {}
    for text in wanted:
        if fits(text):
            found[text] = text
            continue
        base = re.sub(r"[^A-Za-z0-9_]", "_", text)
        base = base if fits(base) else f"{prefix}_{base}"
        name, number = base, 2
        while name in taken:
            name, number = f"{base}_{number}", number + 1
        taken.add(name)
        found[text] = name
    return found


def level_texts(node: str, levels: Sequence[Level]) -> list[str]:
    """Return levels as text; raise if two of them look the same."""
    texts = [str(level) for level in levels]
    if len(set(texts)) != len(texts):
        raise FormatError(f"The levels of {node!r} are not unique as text: {list(levels)!r}.")
    return texts


# --- Build a discrete network from what a file of tables says -----------------------------------


def require_discrete(network: object, kind: str) -> None:
    """Raise if a network is not one of discrete variables, which is all that a format holds."""
    if not isinstance(network, DiscreteNetwork):
        raise MismatchError(
            f"A {kind} file holds a DiscreteNetwork, and {a_type(network)} was given. "
            "Use write_json, which holds every network, or write the graph alone: "
            "write_graphml(network.dag, path). For solutions, call solution.fit() first."
        )


def network_of(
    levels: Mapping[str, Sequence[str]],
    parents: Mapping[str, Sequence[str]],
    numbers: Mapping[str, Sequence[float]],
    *,
    normalise: bool = False,
) -> DiscreteNetwork:
    """Return a network from the tables of a file.

    Parameters
    ----------
    parents
        Parents of each node, in the order of the axes of its table.
    numbers
        The table of each node: the first parent changes slowest, the node itself fastest.
    """
    try:
        for node in levels:
            if node not in numbers:
                raise FormatError(f"node {node!r} has no table.")
        dag = DAG(list(levels), [(p, v) for v, own in parents.items() for p in own])
        tables = {}
        for node in dag.nodes:
            given = list(parents[node])
            shape = [len(levels[v]) for v in (*given, node)]
            table: Floats = np.array(numbers[node], dtype=np.float64)
            if table.size != int(np.prod(shape)):
                raise FormatError(
                    f"the table of {node!r} has {table.size} numbers; {int(np.prod(shape))} are "
                    f"needed for the shape {tuple(shape)}."
                )
            table = table.reshape(shape)
            if normalise:
                with np.errstate(invalid="ignore", divide="ignore"):
                    table = table / table.sum(axis=-1, keepdims=True)
            axes = [given.index(p) for p in dag.parents(node)]
            tables[node] = table.transpose(*axes, len(axes))
        return DiscreteNetwork(dag, {v: tuple(own) for v, own in levels.items()}, tables)
    except (IsthmusError, KeyError) as error:
        raise FormatError(f"The file does not hold a valid network: {error}") from None


def floats(text: str, where: str) -> list[float]:
    """Return the numbers in a text."""
    try:
        return [float(word) for word in text.split()]
    except ValueError as error:
        raise FormatError(f"{where}: {error}.") from None


def rows_of(network: DiscreteNetwork, node: str) -> list[list[float]]:
    """Return the table of a node as one row per configuration of its parents."""
    table = network.tables[node]
    rows: list[list[float]] = table.reshape(-1, table.shape[-1]).tolist()
    return rows
