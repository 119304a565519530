"""Varsortability and R²-sortability: how well variances or R² reveal the order of a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError, GraphError, MismatchError
from isthmus.graphs import DAG
from isthmus.simulate.result import Simulation
from isthmus.statistics import Moments
from isthmus.types import Floats

TIE = 1e-9
"""Values with a smaller relative difference count as equal."""
NEARLY_SINGULAR = 1e-10


def varsortability(data: Any, dag: DAG | None = None) -> float:
    """Return the varsortability: the fraction of directed paths along which the variance increases.

    For each length k and each ordered pair of nodes connected by a directed path of length k, count
    1 if the variance at the end is larger, 1/2 if equal, and 0 if smaller. The result is the mean
    (Reisach et al. 2021, arXiv 2102.13647). With 1, sorting by variance gives a causal order; with
    1/2, variances carry no information.

    Parameters
    ----------
    data
        A `Simulation`, `Moments`, a mapping or table of named columns, or a two-dimensional array
        with columns in the order of ``dag.nodes``.
    dag
        The true graph; optional for a `Simulation`.

    Returns
    -------
    float
        Between 0 and 1; ``nan`` for a graph without edges.
    """
    graph = _graph(data, dag)
    if isinstance(data, Moments):
        variances = np.diag(second_moments(data, graph.nodes)[0])
    else:
        # Compute the variances only: the covariance matrix of many columns would be large.
        variances = np.square(_centred(data, graph.nodes)).mean(axis=1)
    return order_alignment(variances, graph)


def r2_sortability(data: Any, dag: DAG | None = None) -> float:
    """Return the R²-sortability: the fraction of directed paths along which R² increases.

    R² of a variable is the fraction of its variance explained by a linear regression on all others.
    It does not depend on scale, so standardising does not remove it (Reisach et al. 2023, arXiv
    2303.18211). Paths are counted as in `varsortability`, which has the same parameters.
    """
    graph = _graph(data, dag)
    covariance, _ = second_moments(data, graph.nodes)
    return order_alignment(r_squared(covariance, graph.nodes), graph)


def order_alignment(values: NDArray[Any], dag: DAG) -> float:
    """Return the fraction of directed paths, one per pair and length, along which values increase.

    Parameters
    ----------
    values
        One value per node, in the order of ``dag.nodes``.
    dag
        The graph.
    """
    x = np.asarray(values, dtype=np.float64)
    if x.shape != (len(dag.nodes),):
        raise DataError(f"Expected {len(dag.nodes)} values, one per node; got shape {x.shape}.")
    # Nodes are numbered by rank, so that larger and equal values are ranges of bits in a bitset.
    order = np.argsort(x, kind="stable")
    rank = np.empty(len(x), dtype=np.int64)
    rank[order] = np.arange(len(x))
    low, high = _tied_runs(x[order])
    children: list[list[int]] = [[] for _ in range(len(x))]
    for node, above in enumerate(dag.parent_indices()):
        for parent in above:
            children[rank[parent]].append(int(rank[node]))
    reached = [sum(1 << child for child in below) for below in children]
    paths = doubled = 0
    while any(reached):  # ends, because paths of an acyclic graph are shorter than d
        for start, ends in enumerate(reached):
            if ends:
                paths += ends.bit_count()
                # Count "not smaller" and "larger", so that a tie counts one half.
                doubled += (ends >> low[start]).bit_count() + (ends >> high[start]).bit_count()
        reached = [_union(reached, below) for below in children]
    return doubled / (2 * paths) if paths else float("nan")


def _tied_runs(ascending: Floats) -> tuple[list[int], list[int]]:
    """Return for each value the range of positions of equal values."""
    below = np.where(ascending >= 0, ascending * (1 - TIE), ascending / (1 - TIE))
    above = np.where(ascending >= 0, ascending / (1 - TIE), ascending * (1 - TIE))
    low = np.searchsorted(ascending, below, side="left")
    high = np.searchsorted(ascending, above, side="right")
    return [int(k) for k in low], [int(k) for k in high]


def _union(bitsets: list[int], indices: list[int]) -> int:
    union = 0
    for k in indices:
        union |= bitsets[k]
    return union


def r_squared(covariance: Floats, names: tuple[str, ...]) -> Floats:
    """Return R² of each variable given all others, from the covariance matrix."""
    sd = np.sqrt(np.diag(covariance))
    constant = [name for name, s in zip(names, sd, strict=True) if s == 0.0]
    if constant:
        raise DataError(f"R² is not defined for constant columns; drop {constant}.")
    correlation = covariance / np.outer(sd, sd)
    values, vectors = np.linalg.eigh(correlation)
    if len(values) and values[0] > NEARLY_SINGULAR * values[-1]:
        precision = (vectors**2) @ (1.0 / values)
        return np.clip(1.0 - 1.0 / precision, 0.0, 1.0)
    # Some columns are linear combinations of others: use least squares for each column.
    result = np.empty(len(sd))
    for j in range(len(sd)):
        others = np.arange(len(sd)) != j
        cross = correlation[others, j]
        gram = correlation[np.ix_(others, others)]
        solution = np.linalg.lstsq(gram, cross, rcond=NEARLY_SINGULAR)[0]
        result[j] = cross @ solution
    return np.clip(result, 0.0, 1.0)


def second_moments(data: Any, names: tuple[str, ...]) -> tuple[Floats, int]:
    """Return the covariance matrix of columns (with divisor n), and the number of rows n."""
    if isinstance(data, Moments):
        selected = data.select(names)
        if len(selected.columns) != len(names):
            raise MismatchError("Sortability needs continuous variables with one column each.")
        return selected.covariance(), selected.n
    x = _centred(data, names)
    covariance: Floats = x @ x.T / x.shape[1]
    return covariance, x.shape[1]


def _centred(data: Any, names: tuple[str, ...]) -> Floats:
    """Return the centred columns, as the rows of an array."""
    columns = _columns(data, names)
    x = np.empty((len(columns), len(columns[0]) if columns else 0))
    for j, (name, column) in enumerate(zip(names, columns, strict=True)):
        if not (np.issubdtype(column.dtype, np.number) and column.ndim == 1):
            raise DataError(f"Column {name!r} is not numeric ({column.dtype}).")
        x[j] = column
    if x.shape[1] < 1:
        raise DataError("There are no rows.")
    if not np.isfinite(x).all():
        raise DataError("Sortability needs finite values; remove or fill missing values first.")
    x -= x.mean(axis=1, keepdims=True)
    return x


def column_names(data: Any) -> tuple[str, ...]:
    """Return the names of the columns of data."""
    if isinstance(data, Simulation):
        return data.dag.nodes
    if isinstance(data, Moments):
        return tuple(data.schema.names)
    if isinstance(data, Mapping):
        return tuple(data)
    columns = getattr(data, "columns", None)
    if columns is None:
        raise DataError(f"A {type(data).__name__} has no column names; give a mapping or a table.")
    return tuple(columns)


def _columns(data: Any, names: tuple[str, ...]) -> list[NDArray[Any]]:
    if isinstance(data, Simulation):
        data = data.data
    if isinstance(data, np.ndarray):
        if data.ndim != 2 or data.shape[1] != len(names):
            raise DataError(f"Expected an array with {len(names)} columns; got shape {data.shape}.")
        return [data[:, j] for j in range(len(names))]
    missing = sorted(set(names) - set(column_names(data)))
    if missing:
        raise DataError(f"The graph has nodes that are not columns of the data: {missing}.")
    return [np.asarray(data[name]) for name in names]


def _graph(data: Any, dag: DAG | None) -> DAG:
    if dag is not None:
        return dag
    if isinstance(data, Simulation):
        return data.dag
    raise GraphError("Give the true graph: varsortability(data, dag).")
