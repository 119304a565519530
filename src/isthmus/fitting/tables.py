"""Estimate conditional probability tables from counts."""

from __future__ import annotations

import numpy as np

from isthmus.graphs import DAG
from isthmus.models import DiscreteNetwork
from isthmus.statistics import Counts


def fit_tables(counts: Counts, dag: DAG, *, pseudo_count: float = 1.0) -> DiscreteNetwork:
    """Estimate the conditional probability tables of ``dag``.

    Parameters
    ----------
    counts
        Counts that cover every family of the graph.
    dag
        The graph; its nodes are variables of ``counts``.
    pseudo_count
        Pseudo-count per table, divided equally among its cells. The estimate is the posterior mean
        under the prior of ``BDeu(ess=pseudo_count)``. With 0 it is the maximum likelihood estimate,
        and parent configurations that do not occur get the uniform distribution.
    """
    tables = {}
    for node in dag.nodes:
        table = counts.table((*dag.parents(node), node)).astype(np.float64)
        table += pseudo_count / table.size
        total = table.sum(axis=-1, keepdims=True)
        uniform = np.broadcast_to(1.0 / table.shape[-1], table.shape)
        tables[node] = np.divide(table, total, out=uniform.copy(), where=total > 0)
    levels = {name: counts.schema[name].levels for name in dag.nodes}
    return DiscreteNetwork(dag, levels, tables)
