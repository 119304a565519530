"""Networks with the parameters that statistics give: probability tables and linear regressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from isthmus.arrays import Floats, Integers
from isthmus.graphs import DAG
from isthmus.networks import DiscreteNetwork, GaussianNetwork
from isthmus.networks.conditionals import regress
from isthmus.statistics.schema import Schema


class FamilyCounts(Protocol):
    """Statistics that count families of discrete variables."""

    @property
    def schema(self) -> Schema:
        """The variables."""

    def table(self, names: Sequence[str], /) -> Integers:
        """Return the number of rows for each combination of levels."""


def fit_families(
    counts: FamilyCounts,
    dag: DAG,
    pseudo_count: float,
    expected: Callable[[Sequence[str]], Floats] | None = None,
) -> DiscreteNetwork:
    """Estimate the tables of a graph from counted families, or from their expected counts."""
    families = {node: (*dag.parents(node), node) for node in dag.nodes}
    observed = {node: counts.table(family) for node, family in families.items()}
    tables = {
        node: probabilities(table if expected is None else expected(families[node]), pseudo_count)
        for node, table in observed.items()
    }
    levels = {name: counts.schema[name].levels for name in dag.nodes}
    return DiscreteNetwork(dag, levels, tables, observed)


def probabilities(table: Integers | Floats, pseudo_count: float) -> Floats:
    """Return probabilities over the last axis of a table of counts."""
    smoothed = table + pseudo_count / table.size
    total = smoothed.sum(axis=-1, keepdims=True)
    uniform = np.full(table.shape, 1.0 / table.shape[-1])
    estimated: Floats = np.divide(smoothed, total, out=uniform, where=total > 0)
    return estimated


def fit_regressions(
    dag: DAG,
    estimates: Callable[[Sequence[str]], tuple[Floats, Floats]],
    rows: int | None = None,
) -> GaussianNetwork:
    """Regress each node on its parents.

    Parameters
    ----------
    dag
        The graph of continuous variables.
    estimates
        Returns means and covariances of a family, for the regression of its last variable.
    rows
        Number of rows behind them, if it is the same for all.
    """
    intercepts, coefficients, variances = {}, {}, {}
    for node in dag.nodes:
        mean, covariance = estimates((*dag.parents(node), node))
        fitted = regress(covariance)
        weights = fitted.coefficients
        intercepts[node] = float(mean[-1] - weights @ mean[:-1])
        coefficients[node] = {p: float(w) for p, w in zip(dag.parents(node), weights, strict=True)}
        variances[node] = float(fitted.variance)
    return GaussianNetwork(dag, intercepts, coefficients, variances, rows=rows)
