"""Complete tables with missing values, and score rows by the values that are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, overload

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from isthmus.arrays import Bools, Floats
from isthmus.errors import ArgumentError, a_type
from isthmus.frames import columns_of, completed
from isthmus.networks import DiscreteNetwork, GaussianNetwork, MixedNetwork, Network
from isthmus.networks.column_maps import read_column, table_values
from isthmus.networks.columns import encode_columns, is_absent, label_array, number_column
from isthmus.networks.completion import Completion
from isthmus.results import Solution
from isthmus.statistics.moments import correlate
from isthmus.verbs.arguments import check_count, check_seed

_RIDGE = 1e-12
"""Added to correlations before they are factored: a column may follow exactly from others."""
_SIMULATED = 500
"""Weighted draws of the missing values of a row in a mixed network."""


@overload
def impute(
    data: Any, network: Network | Solution, *, draws: None = ..., seed: int = ...
) -> Any: ...
@overload
def impute(
    data: Any, network: Network | Solution, *, draws: int, seed: int = ...
) -> tuple[Any, ...]: ...
def impute(
    data: Any, network: Network | Solution, *, draws: int | None = None, seed: int = 0
) -> Any:
    """Fill in the missing values of a table by a network, given the other values of their rows.

    Parameters
    ----------
    data
        A table of pandas, Polars or PyArrow, or a mapping of names to columns. Columns that are
        not in the network stay as they are.
    network
        A fitted network, or a solution, whose `fit` is used.
    draws
        Number of completed tables in which missing values are drawn from their distribution given
        the observed values of the row. By default one table, with expected values and most probable
        levels.
    seed
        Random seed of the draws.

    Returns
    -------
    table or tuple of tables
        The same kind of table with the same types of columns. Values that are there are not
        changed. Values of integer columns are rounded.

    Notes
    -----
    A single table with expected values suits predictions; variances and relations of its columns
    are too sharp. For estimates with intervals, use several draws, estimate from each, and combine
    the estimates by Rubin's rules. The parameters of the network are taken as known, so intervals
    are a little too narrow if many values are missing. To include their error, learn each network
    from resampled rows, and draw one table from each.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import simulate
    >>> dag = ist.DAG(["x", "y"], [("x", "y")])
    >>> table = dict(simulate.linear(dag, 300, seed=1).data)
    >>> table["y"] = table["y"].copy()
    >>> table["y"][:30] = float("nan")
    >>> solution = ist.learn(table, missing=ist.ExpectationMaximisation())
    >>> completed = ist.impute(table, solution)
    >>> bool(completed["y"].max() < float("inf"))
    True
    """
    seed = check_seed(seed)
    check_count(draws, "draws", least=1, optional=True)
    fitted = network.fit() if isinstance(network, Solution) else network
    if not isinstance(fitted, Network):
        raise ArgumentError(
            f"network must be a fitted network or a solution; {a_type(network)} was given."
        )
    columns, _ = columns_of(data)
    if not isinstance(columns, Mapping):
        raise ArgumentError(
            "impute needs a table with names: a DataFrame, or a mapping of names to columns; "
            f"{a_type(data)} was given."
        )
    names = [v for v in fitted.dag.nodes if v in columns]
    holes = {v: _absent(columns[v]) for v in names}
    if draws is None:
        filled = {
            v: np.asarray(fitted.predict({u: columns[u] for u in names}, v))[own]
            for v, own in holes.items()
            if own.any()
        }
        return completed(data, holes, filled)
    rng = np.random.default_rng(seed)
    return tuple(completed(data, holes, one) for one in _drawn(fitted, columns, holes, draws, rng))


def observed_log_likelihood(network: Network, columns: Mapping[str, Any], seed: int = 0) -> float:
    """Return the log-likelihood of the values that are there, summed over rows.

    Missing values are integrated out: exactly in Gaussian and discrete networks, and by weighted
    draws in mixed ones.
    """
    if isinstance(network, GaussianNetwork):
        return _of_numbers(network, columns)
    if isinstance(network, DiscreteNetwork):
        completion, tables = _completion(network, columns)
        parts = (completion.batch(k, tables, 0, 0) for k in range(len(completion)))
        return float(sum(part.log_likelihood for part in parts))
    assert isinstance(network, MixedNetwork)
    values, absent = _values(network, columns)
    rng, total = np.random.default_rng(seed), 0.0
    for rows in _parts(absent):
        _, weights = _weighted(network, values, absent, rows, rng)
        highest = weights.max(axis=1)
        total += float(np.sum(highest + np.log(np.exp(weights - highest[:, None]).mean(axis=1))))
    return total


def _of_numbers(network: GaussianNetwork, columns: Mapping[str, Any]) -> float:
    values, absent = _values(network, columns)
    correlation, variances = correlate(network.covariance())
    spread = np.sqrt(variances)
    rows = (np.stack([values[v] for v in network.dag.nodes], axis=1) - network.mean()) / spread
    total = 0.0
    patterns, which = np.unique(absent, axis=0, return_inverse=True)
    for k, pattern in enumerate(patterns):
        there = np.flatnonzero(~pattern)
        if not len(there):
            continue
        away = rows[which.ravel() == k][:, there]
        factor = np.linalg.cholesky(correlation[np.ix_(there, there)] + _RIDGE * np.eye(len(there)))
        scaled = np.linalg.solve(factor, away.T)
        log_scale = np.log(np.diagonal(factor) * spread[there] * np.sqrt(2.0 * np.pi)).sum()
        total -= float(0.5 * (scaled**2).sum() + len(away) * log_scale)
    return total


def _values(
    network: GaussianNetwork | MixedNetwork, columns: Mapping[str, Any]
) -> tuple[dict[str, NDArray[Any]], Bools]:
    """Return columns as numbers and codes, and which values are missing, shape (rows, nodes)."""
    read = {v: read_column(network.maps, v, columns[v]) for v in network.dag.nodes if v in columns}
    n = len(next(iter(read.values())))
    levels = network.levels
    codes = encode_columns({v: own for v, own in levels.items() if v in read}, read)
    values: dict[str, NDArray[Any]] = {}
    absent = np.ones((n, len(network.dag.nodes)), np.bool_)
    for j, v in enumerate(network.dag.nodes):
        if v in codes:
            absent[:, j] = codes[v] == len(levels[v])
            values[v] = np.where(absent[:, j], 0, codes[v])
        elif v in read:
            numbers = number_column(v, read[v])
            absent[:, j] = np.isnan(numbers)
            values[v] = numbers
        else:
            values[v] = np.zeros(n, np.intp if v in levels else np.float64)
    return values, absent


def _completion(
    network: DiscreteNetwork, columns: Mapping[str, Any]
) -> tuple[Completion, list[Floats]]:
    """Return what completes rows of levels, and the probability tables."""
    nodes, levels = network.dag.nodes, network.levels
    read = {v: read_column(network.maps, v, columns[v]) for v in nodes if v in columns}
    coded = encode_columns({v: levels[v] for v in read}, read)
    n = len(next(iter(coded.values())))
    codes = np.stack([coded.get(v, np.full(n, len(levels[v]))) for v in nodes]).astype(np.uint16)
    sizes = [len(levels[v]) for v in nodes]
    # Exact inference divides by probabilities, of which none may be zero.
    tables = [np.maximum(network.tables[v], 1e-300) for v in nodes]
    return Completion(network.dag, sizes, codes, np.ones(n, np.int64)), tables


def _parts(absent: Bools) -> Sequence[NDArray[np.intp]]:
    n = len(absent)
    return np.array_split(np.arange(n), max(1, n * _SIMULATED // 500_000))


def _weighted(
    network: MixedNetwork,
    values: Mapping[str, NDArray[Any]],
    absent: Bools,
    rows: NDArray[np.intp],
    rng: Generator,
) -> tuple[dict[str, NDArray[Any]], Floats]:
    """Draw missing values given the parents, and weigh the draws by the values that are there.

    Returns
    -------
    drawn
        Columns of the rows, each repeated.
    weights
        Logarithms of the weights, shape (rows, draws).
    """
    size = len(rows) * _SIMULATED
    columns: dict[str, NDArray[Any]] = {}
    weights = np.zeros(size)
    for v in network.dag.topological_order():
        own = network.conditionals[v]
        hole = np.repeat(absent[rows, network.dag.index(v)], _SIMULATED)
        given = np.repeat(values[v][rows], _SIMULATED)
        columns[v] = np.where(hole, own.draw(columns, size, rng), given) if hole.any() else given
        density = own.log_density(columns[v], columns)
        weights += np.where(hole, 0.0, density)
    return columns, weights.reshape(len(rows), _SIMULATED)


def _drawn(
    network: Network,
    columns: Mapping[str, Any],
    holes: Mapping[str, Bools],
    draws: int,
    rng: Generator,
) -> list[dict[str, NDArray[Any]]]:
    """Return drawn values of the holes of each column, for each draw."""
    if isinstance(network, DiscreteNetwork):
        return _drawn_levels(network, columns, holes, draws, rng)
    values, absent = _values(network, columns)
    result = []
    for _ in range(draws):
        if isinstance(network, GaussianNetwork):
            drawn = _drawn_numbers(network, values, absent, rng)
        else:
            drawn = _resampled(network, values, absent, rng)
        levels = network.levels
        result.append(
            {
                v: label_array(levels[v])[drawn[v][own].astype(np.intp)]
                if v in levels
                else np.asarray(table_values(network.maps, v, drawn[v][own]))
                for v, own in holes.items()
                if own.any()
            }
        )
    return result


def _drawn_levels(
    network: DiscreteNetwork,
    columns: Mapping[str, Any],
    holes: Mapping[str, Bools],
    draws: int,
    rng: Generator,
) -> list[dict[str, NDArray[Any]]]:
    completion, tables = _completion(network, columns)
    codes = completion.draw(tables, draws, int(rng.integers(2**63)))
    return [
        {
            v: label_array(network.levels[v])[codes[network.dag.index(v), own, k]]
            for v, own in holes.items()
            if own.any()
        }
        for k in range(draws)
    ]


def _drawn_numbers(
    network: GaussianNetwork,
    values: Mapping[str, NDArray[Any]],
    absent: Bools,
    rng: Generator,
) -> dict[str, NDArray[Any]]:
    """Draw from the normal distribution of the missing values given the others of a row.

    A drawn row has the right covariance with itself; adding what its missing values would be
    predicted to be from the difference to the observed values gives a draw given these.
    """
    nodes = network.dag.nodes
    rows = np.stack([values[v] for v in nodes], axis=1)
    simulated = replace(network, maps={}).sample(len(rows), seed=int(rng.integers(2**63)))
    free = np.stack([simulated[v] for v in nodes], axis=1)
    correlation, variances = correlate(network.covariance())
    spread = np.sqrt(variances)
    patterns, which = np.unique(absent, axis=0, return_inverse=True)
    for k, hole in enumerate(patterns):
        if not hole.any():
            continue
        members = np.flatnonzero(which.ravel() == k)
        difference = rows[np.ix_(members, ~hole)] - free[np.ix_(members, ~hole)]
        inverse = np.linalg.pinv(correlation[np.ix_(~hole, ~hole)], hermitian=True)
        expected = difference / spread[~hole] @ inverse @ correlation[np.ix_(~hole, hole)]
        rows[np.ix_(members, hole)] = free[np.ix_(members, hole)] + expected * spread[hole]
    return dict(zip(nodes, rows.T, strict=True))


def _resampled(
    network: MixedNetwork,
    values: Mapping[str, NDArray[Any]],
    absent: Bools,
    rng: Generator,
) -> dict[str, NDArray[Any]]:
    """Choose one of the weighted draws of each row, by its weight."""
    result = {v: own.copy() for v, own in values.items()}
    incomplete = np.flatnonzero(absent.any(axis=1))
    for part in _parts(absent[incomplete]):
        rows = incomplete[part]
        columns, weights = _weighted(network, values, absent, rows, rng)
        noise = rng.gumbel(size=weights.shape)
        chosen = np.arange(len(rows)) * _SIMULATED + (weights + noise).argmax(axis=1)
        for v, own in columns.items():
            result[v][rows] = own[chosen]
    return result


def _absent(column: Any) -> Bools:
    cells = column if isinstance(column, list) else np.asarray(column).tolist()
    return np.array([is_absent(cell) for cell in cells], np.bool_)
