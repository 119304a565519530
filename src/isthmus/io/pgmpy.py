"""Conversion of discrete networks to and from pgmpy."""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.errors import FormatError, MissingExtraError
from isthmus.graphs import DAG
from isthmus.models import DiscreteNetwork


def to_pgmpy(network: DiscreteNetwork) -> Any:
    """Convert a network to a pgmpy ``DiscreteBayesianNetwork``."""
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


def from_pgmpy(model: Any) -> DiscreteNetwork:
    """Convert a pgmpy ``DiscreteBayesianNetwork`` whose nodes are strings."""
    dag = DAG(list(model.nodes()), list(model.edges()))
    levels, tables = {}, {}
    for node in dag.nodes:
        cpd = model.get_cpds(node)
        if cpd is None:
            raise FormatError(f"Node {node!r} of the pgmpy model has no table; add or fit it.")
        levels[node] = tuple(cpd.state_names[node])
        axes = [cpd.variables.index(name) for name in (*dag.parents(node), node)]
        tables[node] = np.asarray(cpd.values, dtype=np.float64).transpose(axes)
    for node in dag.nodes:
        states = model.get_cpds(node).state_names
        for parent in dag.parents(node):
            if tuple(states[parent]) != levels[parent]:
                order = [list(states[parent]).index(level) for level in levels[parent]]
                axis = dag.parents(node).index(parent)
                tables[node] = np.take(tables[node], order, axis=axis)
    return DiscreteNetwork(dag, levels, tables)
