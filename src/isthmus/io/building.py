"""From nodes and edges as read to a graph of the right type."""

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
    """Return the word for the type of a graph that files carry."""
    for word, kind in KINDS.items():
        if isinstance(graph, kind):
            return word
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
    """Build a graph; without a kind a DAG, or a PDAG if there are undirected edges."""
    loose = tuple(undirected)
    if kind is None:
        kind = PDAG if loose else DAG
    if kind is DAG:
        if loose:
            raise FormatError(
                f"A DAG has no undirected edges, but {loose[0][0]!r} – {loose[0][1]!r} is one. "
                "Read it as a PDAG or CPDAG."
            )
        return DAG(nodes, directed)
    if kind is CPDAG:
        return CPDAG(nodes, directed, loose)
    return PDAG(nodes, directed, loose)
