"""Comparison of a graph with a reference graph, edge by edge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from isthmus.errors import GraphError
from isthmus.graphs.dag import DAG
from isthmus.graphs.names import same_nodes
from isthmus.graphs.partial import CPDAG, PDAG
from isthmus.plurals import a_type

Graph: TypeAlias = DAG | CPDAG | PDAG
Pair: TypeAlias = tuple[str, str]

STATES = {
    "same": "in both graphs",
    "added": "not in the reference",
    "missing": "only in the reference",
    "reversed": "the other way round in the reference",
    "undecided": "directed in one graph only",
}
"""States of an edge in a comparison, and their meanings."""


@dataclass(frozen=True)
class Comparison:
    """How the edges of a graph differ from those of a reference.

    Attributes
    ----------
    states
        One of the keys of `STATES` for each edge of the graph, and for each missing edge.
    missing
        Edges of the reference only; True if directed.
    name
        Name of the reference.
    """

    states: Mapping[Pair, str]
    missing: Mapping[Pair, bool]
    name: str = "the reference graph"

    def count(self, state: str) -> int:
        """Return the number of edges in a state."""
        return sum(value == state for value in self.states.values())

    @property
    def distance(self) -> int:
        """The structural Hamming distance: the number of edges that differ."""
        return len(self.states) - self.count("same")


def compare(graph: Graph, reference: Graph) -> Comparison:
    """Compare the edges of a graph with those of a reference.

    An equivalence class is compared with the equivalence class of the reference, because the
    directions within a class cannot be learned.

    Parameters
    ----------
    graph
        The graph to judge.
    reference
        A graph over the same nodes, in any order.
    """
    if not isinstance(reference, DAG | CPDAG | PDAG):
        raise GraphError(
            f"reference must be a DAG, a CPDAG or a PDAG; {a_type(reference)} was given."
        )
    same_nodes(graph.nodes, reference.nodes, "A comparison")
    if isinstance(reference, DAG) and not isinstance(graph, DAG):
        reference = reference.cpdag()
    own, other = _edges(graph), _edges(reference)
    states: dict[Pair, str] = {}
    for (a, b), directed in own.items():
        states[a, b] = _state((a, b), directed, other)
    missing = {
        pair: directed
        for pair, directed in other.items()
        if pair not in own and pair[::-1] not in own
    }
    return Comparison(states | dict.fromkeys(missing, "missing"), missing)


def _edges(graph: Graph) -> dict[Pair, bool]:
    if isinstance(graph, DAG):
        return dict.fromkeys(graph.edges, True)
    return dict.fromkeys(graph.directed, True) | dict.fromkeys(graph.undirected, False)


def _state(pair: Pair, directed: bool, other: Mapping[Pair, bool]) -> str:  # noqa: FBT001
    if pair in other:
        return "same" if other[pair] == directed else "undecided"
    if pair[::-1] not in other:
        return "added"
    if directed and other[pair[::-1]]:
        return "reversed"
    return "same" if directed == other[pair[::-1]] else "undecided"
