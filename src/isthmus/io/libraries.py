"""Conversion of graphs to and from networkx."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from isthmus.errors import FormatError, GraphError, MismatchError, MissingExtraError, a_type
from isthmus.graphs import DAG, UndirectedGraph
from isthmus.graphs.names import listed
from isthmus.io.files import KINDS, build, kind_name, split_edges
from isthmus.networks import DiscreteNetwork, GaussianNetwork
from isthmus.networks.column_maps import scored_nodes

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


# --- Conversion of discrete and linear Gaussian networks to and from pgmpy ----------------------


def to_pgmpy(network: DiscreteNetwork | GaussianNetwork) -> Any:
    """Convert a network to pgmpy.

    A `DiscreteNetwork` becomes a ``DiscreteBayesianNetwork``, and a `GaussianNetwork` becomes a
    ``LinearGaussianBayesianNetwork``. pgmpy has no networks of mixed variables.
    """
    if scored_nodes(network.maps):
        raise MismatchError(
            f"{listed(scored_nodes(network.maps))} were learned as normal scores, which pgmpy "
            "would take for values of the columns. Write the network with write_json."
        )
    if isinstance(network, GaussianNetwork):
        return _linear_gaussian(network)
    if not isinstance(network, DiscreteNetwork):
        raise MismatchError(
            f"pgmpy has discrete and linear Gaussian networks, and {a_type(network)} was "
            "given. Convert its graph, to_networkx(network.dag), or write it with write_json."
        )
    try:
        from pgmpy.factors.discrete import TabularCPD
        from pgmpy.models import DiscreteBayesianNetwork
    except ImportError:
        raise MissingExtraError("pgmpy", "io", "to_pgmpy()") from None
    model = DiscreteBayesianNetwork()
    model.add_nodes_from(network.dag.nodes)
    model.add_edges_from(network.dag.edges)
    for node in network.dag.nodes:
        parents = network.dag.parents(node)
        table = network.tables[node]
        size = table.shape[-1]
        cpd = TabularCPD(
            node,
            size,
            table.reshape(-1, size).T,
            evidence=list(parents) or None,
            evidence_card=[len(network.levels[p]) for p in parents] or None,
            state_names={v: list(network.levels[v]) for v in (node, *parents)},
        )
        model.add_cpds(cpd)
    return model


def _linear_gaussian(network: GaussianNetwork) -> Any:
    try:
        from pgmpy.factors.continuous import LinearGaussianCPD
        from pgmpy.models import LinearGaussianBayesianNetwork
    except ImportError:
        raise MissingExtraError("pgmpy", "io", "to_pgmpy()") from None
    model = LinearGaussianBayesianNetwork()
    model.add_nodes_from(network.dag.nodes)
    model.add_edges_from(network.dag.edges)
    for node in network.dag.nodes:
        slopes = network.coefficients[node]
        beta = [network.intercepts[node], *slopes.values()]
        model.add_cpds(
            LinearGaussianCPD(node, beta, sqrt(network.variances[node]), evidence=list(slopes))
        )
    return model


def from_pgmpy(model: Any) -> DiscreteNetwork | GaussianNetwork:
    """Convert a discrete or linear Gaussian network of pgmpy whose nodes are strings."""
    dag = DAG(list(model.nodes()), list(model.edges()))
    cpds = {node: model.get_cpds(node) for node in dag.nodes}
    for node, cpd in cpds.items():
        if cpd is None:
            raise FormatError(f"Node {node!r} of the pgmpy model has no table; add or fit it.")
    if any(hasattr(cpd, "beta") for cpd in cpds.values()):
        return GaussianNetwork(
            dag,
            {node: float(cpd.beta[0]) for node, cpd in cpds.items()},
            {
                node: dict(zip(cpd.evidence, map(float, cpd.beta[1:]), strict=True))
                for node, cpd in cpds.items()
            },
            {node: float(cpd.std) ** 2 for node, cpd in cpds.items()},
        )
    levels, tables = {}, {}
    for node, cpd in cpds.items():
        levels[node] = tuple(cpd.state_names[node])
        axes = [cpd.variables.index(name) for name in (*dag.parents(node), node)]
        tables[node] = np.asarray(cpd.values, dtype=np.float64).transpose(axes)
    for node in dag.nodes:
        states = cpds[node].state_names
        for parent in dag.parents(node):
            if tuple(states[parent]) != levels[parent]:
                order = [list(states[parent]).index(level) for level in levels[parent]]
                axis = dag.parents(node).index(parent)
                tables[node] = np.take(tables[node], order, axis=axis)
    return DiscreteNetwork(dag, levels, tables)
