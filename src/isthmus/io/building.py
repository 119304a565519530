"""Build graphs of the right type from nodes and edges that were read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from isthmus.errors import FormatError, GraphError
from isthmus.graphs import CPDAG, DAG, PDAG

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
