"""Estimate the parameters of a given graph from data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from isthmus.compose.arguments import check_dag, check_kinds, check_missing
from isthmus.compose.as_read import as_read
from isthmus.compose.statistics_kept import fit_network
from isthmus.graphs import DAG
from isthmus.models import Network
from isthmus.options import check_pseudo_count
from isthmus.results import Reading
from isthmus.sources import Missing, TimeUnit, as_source
from isthmus.statistics import Kind


def fit(
    data: object,
    dag: DAG,
    *,
    kinds: Mapping[str, Kind | TimeUnit | str] | None = None,
    missing: Missing | None = None,
    groups: str | None = None,
    pseudo_count: float = 1.0,
    curves: bool = True,
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
        How to handle missing values: `DropRows`, `MissingAsLevel` or
        `ExpectationMaximisation`; by default they are refused.
    groups
        Name of the column of groups of a table, as for :func:`~isthmus.learn`: coefficients are
        then those within groups. For tables of continuous columns.
    pseudo_count
        Weight of the prior of discrete and mixed variables, in rows; 0 for maximum likelihood.
    curves
        Whether effects of continuous parents may be curved and interact, where that pays. It
        needs the rows in memory, without groups, and of mixed tables without missing values;
        otherwise effects are straight.
    """
    check_pseudo_count(pseudo_count)
    check_kinds(kinds)
    graph = check_dag(dag)
    source = as_source(
        data, kinds=kinds, columns=graph.nodes, missing=check_missing(missing), groups=groups
    )
    network = fit_network(source, graph, pseudo_count, curves=curves)
    return replace(network, maps=source.reading().network_maps(graph.nodes))


def fit_as_read(
    data: object,
    dag: DAG,
    reading: Reading,
    pseudo_count: float,
    *,
    kinds: Mapping[str, Kind | TimeUnit | str] | None = None,
    missing: Missing | None = None,
    groups: str | None = None,
    curves: bool = True,
) -> Network:
    """Estimate parameters, with columns of the kinds that they had when the graph was learned.

    Parameters
    ----------
    data, dag, pseudo_count, kinds, missing, groups, curves
        As for :func:`fit`.
    reading
        How columns were read. A source and statistics know their kinds.
    """
    data, kinds = as_read(data, reading, dag.nodes, kinds)
    options: dict[str, Any] = {"kinds": kinds, "missing": missing, "groups": groups}
    network = fit(data, dag, pseudo_count=pseudo_count, curves=curves, **options)
    return replace(network, maps={**network.maps, **reading.network_maps(dag.nodes)})
