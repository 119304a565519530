"""Estimate conditional probability tables from counts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from isthmus.graphs import DAG
from isthmus.models import DiscreteNetwork
from isthmus.options import check_pseudo_count
from isthmus.statistics import Counts, ExpectedCounts, IncompleteCounts, Regimes
from isthmus.types import Floats, Integers


def fit_tables(
    counts: Counts | ExpectedCounts | IncompleteCounts | Regimes,
    dag: DAG,
    *,
    pseudo_count: float = 1.0,
) -> DiscreteNetwork:
    """Estimate the conditional probability tables of ``dag``.

    Parameters
    ----------
    counts
        Counts that cover every family of the graph. Of incomplete rows, those are counted that are
        complete for the family; of several regimes, those in which the child was not a target.
        From expected counts, probabilities are estimated by the expectations.
    dag
        The graph; its nodes are variables of ``counts``.
    pseudo_count
        Pseudo-count per table, divided equally among its cells. The estimate is the posterior mean
        under the prior of ``BDeu(ess=pseudo_count)``. With 0 it is the maximum likelihood estimate,
        and parent configurations that do not occur get the uniform distribution.
    """
    check_pseudo_count(pseudo_count)
    families = {node: (*dag.parents(node), node) for node in dag.nodes}
    observed = {node: counts.table(family) for node, family in families.items()}
    expected: Mapping[str, Integers | Floats] = observed
    if isinstance(counts, ExpectedCounts):
        expected = {node: counts.expected(family) for node, family in families.items()}
    tables = {node: probabilities(table, pseudo_count) for node, table in expected.items()}
    levels = {name: counts.schema[name].levels for name in dag.nodes}
    return DiscreteNetwork(dag, levels, tables, observed)


def probabilities(table: Integers | Floats, pseudo_count: float) -> Floats:
    """Return probabilities over the last axis of a table of counts."""
    smoothed = table + pseudo_count / table.size
    total = smoothed.sum(axis=-1, keepdims=True)
    uniform = np.full(table.shape, 1.0 / table.shape[-1])
    estimated: Floats = np.divide(smoothed, total, out=uniform, where=total > 0)
    return estimated
