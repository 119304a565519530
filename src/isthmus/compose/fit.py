"""Estimate the parameters of a given graph from data."""

from __future__ import annotations

from collections.abc import Mapping

from isthmus.compose.arguments import check_dag, check_kinds, check_missing
from isthmus.compose.statistics_kept import fit_network
from isthmus.graphs import DAG
from isthmus.models import Network
from isthmus.options import check_pseudo_count
from isthmus.sources import Missing, TimeUnit, as_source
from isthmus.statistics import Kind


def fit(
    data: object,
    dag: DAG,
    *,
    kinds: Mapping[str, Kind | TimeUnit | str] | None = None,
    missing: Missing | None = None,
    pseudo_count: float = 1.0,
) -> Network:
    """Estimate the parameters of a network with a given graph.

    Parameters
    ----------
    data
        As for :func:`~isthmus.learn`. Columns that are not nodes of the graph are not used.
    dag
        The graph.
    kinds
        How to read some columns, as for :func:`~isthmus.learn`.
    missing
        How to handle missing values: `DropRows`, `MissingAsLevel` or `ExpectationMaximisation`. By
        default they are refused.
    pseudo_count
        Weight of the prior of discrete and mixed variables, in rows; 0 for maximum likelihood.
    """
    check_pseudo_count(pseudo_count)
    check_kinds(kinds)
    graph = check_dag(dag)
    source = as_source(data, kinds=kinds, keep=graph.nodes, missing=check_missing(missing))
    return fit_network(source, graph, pseudo_count)
