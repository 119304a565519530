"""Conversion of graphs to and from networkx."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isthmus.errors import GraphError, MissingExtraError
from isthmus.graphs import DAG, UndirectedGraph
from isthmus.io.files import KINDS, build, kind_name, split_edges

if TYPE_CHECKING:
    import networkx as nx

    from isthmus.io.files import Graph, Kind

_KEY = "isthmus_type"


def to_networkx(graph: Graph | UndirectedGraph) -> nx.DiGraph[str] | nx.Graph[str]:
    """Convert a graph to networkx.

    A DAG, PDAG or CPDAG becomes a ``DiGraph``, in which an undirected edge is a pair of opposite
    edges. An undirected graph becomes a ``Graph``.
    """
    library = _library()
    if isinstance(graph, UndirectedGraph):
        undirected_graph: nx.Graph[str] = library.Graph()
        undirected_graph.add_nodes_from(graph.nodes)
        undirected_graph.add_edges_from(graph.edges)
        return undirected_graph
    directed, undirected = split_edges(graph)
    arrows: nx.DiGraph[str] = library.DiGraph()
    arrows.graph[_KEY] = kind_name(graph)
    arrows.add_nodes_from(graph.nodes)
    arrows.add_edges_from(directed)
    arrows.add_edges_from(undirected)
    arrows.add_edges_from((b, a) for a, b in undirected)
    return arrows


def from_networkx(graph: Any, kind: Kind | None = None) -> Graph | UndirectedGraph:
    """Convert a networkx graph to a graph of Isthmus.

    Parameters
    ----------
    graph
        A networkx graph whose nodes are strings. Attributes of nodes and edges are ignored.
    kind
        `DAG`, `CPDAG` or `PDAG`; for the last two a pair of opposite edges is an undirected edge.
        By default the type that `to_networkx` recorded, otherwise a DAG. An undirected networkx
        graph becomes an `UndirectedGraph`.
    """
    nodes = list(graph.nodes)
    if not graph.is_directed():
        if kind is not None:
            raise GraphError(f"An undirected networkx graph cannot become a {kind.__name__}.")
        return UndirectedGraph(nodes, list(graph.edges()))
    if kind is None:
        kind = KINDS.get(graph.graph.get(_KEY), DAG)
    arrows = dict.fromkeys((a, b) for a, b, *_ in graph.edges())
    if kind is DAG:
        return DAG(nodes, list(arrows))
    place = {node: i for i, node in enumerate(nodes)}
    both = [(a, b) for a, b in arrows if (b, a) in arrows and place[a] < place[b]]
    single = [(a, b) for a, b in arrows if (b, a) not in arrows]
    return build(kind, nodes, single, both)


def _library() -> Any:
    try:
        import networkx as nx
    except ImportError:
        raise MissingExtraError("networkx", "io", "to_networkx()") from None
    return nx
