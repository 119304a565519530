"""Measure how well networks describe rows that they were not fitted to."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats
from isthmus.errors import (
    ArgumentError,
    DataError,
    DataWarning,
    MismatchError,
    MissingValuesError,
    ModelWarning,
    a_type,
)
from isthmus.frames import columns_of
from isthmus.graphs import DAG, Knowledge
from isthmus.networks import DiscreteNetwork, MixedNetwork, Network
from isthmus.networks.column_maps import ColumnMap, read_column
from isthmus.networks.columns import (
    Unseen,
    encode_columns,
    is_absent,
    label_array,
    refuse_dates,
    shares,
)
from isthmus.options import check_pseudo_count
from isthmus.results import CrossValidation, Solution
from isthmus.statistics import Kind, Schema, Variable
from isthmus.tables import Frame, Missing, TimeUnit, as_source, transformed
from isthmus.verbs.arguments import (
    AnyScore,
    AnySearch,
    check_count,
    check_kinds,
    check_missing,
    check_score,
    check_seed,
)
from isthmus.verbs.impute import observed_log_likelihood
from isthmus.verbs.learn import learn

_MOST_COMBINATIONS = 1_000_000
"""Maximum number of combinations of levels that the unknown cells of a row may have."""


@overload
def log_likelihood(
    network: Network, data: object, *, per_row: Literal[False] = ..., unseen: Unseen = ...
) -> float: ...
@overload
def log_likelihood(
    network: Network, data: object, *, per_row: Literal[True], unseen: Unseen = ...
) -> Floats: ...
def log_likelihood(
    network: Network, data: object, *, per_row: bool = False, unseen: Unseen = "missing"
) -> float | Floats:
    """Return the log-likelihood of the rows of a table under a fitted network.

    Parameters
    ----------
    network
        From ``solution.fit()``, or read from a file.
    data
        A table with a column for each node; further columns are ignored. Levels are matched by
        their values. Of columns that were learned as normal scores, the density of the scores
        counts.
    per_row
        Whether to return the log-likelihood of each row instead of their sum. Rows with the
        lowest ones are the most unusual.
    unseen
        A level that the network does not have counts as an unknown cell of its row, with a
        warning; ``"error"`` refuses it.

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=1000, seed=1)
    >>> network = ist.learn(data).fit()
    >>> round(ist.log_likelihood(network, data) / 1000, 2)
    -2.19

    The log-likelihood of each row, of which the lowest ones are the most unusual:

    >>> ist.log_likelihood(network, data, per_row=True).shape
    (1000,)
    """
    if not isinstance(network, Network):
        raise ArgumentError(
            f"network must have parameters, as solution.fit() gives; {a_type(network)} was given."
        )
    levels = network.levels
    schema = Schema(
        tuple(
            Variable(v, Kind.DISCRETE, levels[v]) if v in levels else Variable(v, Kind.CONTINUOUS)
            for v in network.dag.nodes
        )
    )
    learned, others = _without_unseen(network, _as_learned(network, data), unseen)
    found = np.array([])
    if learned is not None:
        rows = _rows(learned, schema)
        network = replace(network, maps={})
        if isinstance(network, DiscreteNetwork):
            codes = {v: rows[:, i].astype(np.int64) for i, v in enumerate(network.dag.nodes)}
            found = network.log_densities(codes)
        else:
            found = network.log_densities(_columns(schema, rows))
    each = np.empty(len(found) + len(others))
    new = np.isin(np.arange(len(each)), [*others])
    each[~new], each[new] = found, [*others.values()]
    return each if per_row else float(each.sum())


def _without_unseen(
    network: Network, data: object, unseen: Unseen
) -> tuple[object | None, dict[int, float]]:
    """Return the rows whose levels the network has, if any, and log-likelihoods of the others.

    The probability of a row with a new level is that of its other cells: the sum over all levels
    of the unknown ones.
    """
    columns, _ = columns_of(data)
    if not network.levels or not isinstance(columns, Mapping):
        return data, {}
    cells = {v: np.asarray(columns[v]) for v in network.dag.nodes if v in columns}
    levels = {v: own for v, own in network.levels.items() if v in cells}
    codes = encode_columns(levels, cells, unseen)
    new = {
        v: np.array([k == len(levels[v]) and not is_absent(x) for k, x in pairs], np.bool_)
        for v, own in codes.items()
        if (pairs := list(zip(own, cells[v].tolist(), strict=True)))
    }
    rows = np.flatnonzero(np.any([*new.values()], axis=0)) if new else np.array([], np.intp)
    if not len(rows):
        return data, {}
    single, found = MixedNetwork(network.dag, network.conditionals), {}
    for row in rows.tolist():
        hidden = [v for v, own in new.items() if own[row]]
        sizes = [len(levels[v]) for v in hidden]
        if prod(sizes) > _MOST_COMBINATIONS:
            raise DataError(
                f"Row {row} has {len(hidden)} levels that the network has not seen, and a sum over "
                f"{prod(sizes):,} combinations takes too long. Leave the row out."
            )
        filled = {v: np.repeat(own[row : row + 1], prod(sizes)) for v, own in cells.items()}
        grid = np.indices(sizes).reshape(len(sizes), -1)
        for v, own in zip(hidden, grid, strict=True):
            filled[v] = label_array(levels[v])[own]
        found[row] = float(np.logaddexp.reduce(single.log_densities(filled)))
    kept = np.setdiff1d(np.arange(len(next(iter(cells.values())))), rows)
    return {v: own[kept] for v, own in cells.items()} if len(kept) else None, found


def cross_validate(
    data: object,
    *,
    folds: int = 10,
    score: AnyScore | None = None,
    search: AnySearch | None = None,
    knowledge: Knowledge | None = None,
    kinds: Mapping[str, Kind | TimeUnit | str] | None = None,
    missing: Missing | None = None,
    pseudo_count: float = 1.0,
    seed: int = 0,
) -> CrossValidation:
    """Learn and fit a network without some of the rows, and measure how well it predicts them.

    Parameters
    ----------
    data
        A table in memory.
    folds
        Number of parts into which the rows are divided; each part is left out once.
    score, search, knowledge
        As for :func:`~isthmus.learn`.
    kinds
        How to read some columns.
    missing
        How to handle missing values, as for :func:`~isthmus.learn`; by default they are refused.
        If a strategy keeps incomplete rows, networks are learned and fitted from incomplete rows,
        and the likelihood of a row that was left out is that of the values that are there.
    pseudo_count
        Weight of the prior of parameters, as for ``solution.fit``. With 0, a combination of
        levels that is new in a fold has a log-likelihood of minus infinity.
    seed
        Random seed of the partition and of the search.

    Returns
    -------
    CrossValidation
        The log-likelihood per row of each fold; higher is better. To compare two scores or
        searches, call this function twice with the same seed and take the difference.

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=1000, seed=1)
    >>> print(ist.cross_validate(data, folds=3))
    Log-likelihood per row -2.2209 (standard error 0.082, 3 folds)
    """
    seed = check_seed(seed)
    check_count(folds, "folds", least=2, optional=False)
    check_pseudo_count(pseudo_count)
    check_kinds(kinds)
    integers = None if score is None else check_score(score).kind
    source = as_source(data, kinds=kinds, integers=integers, missing=check_missing(missing))
    schema = source.schema()
    table = source if isinstance(source, Frame) and source.has_missing else None
    holes = table is not None
    try:
        rows = source.rows() if table is None else table.rows_with_holes()
    except MismatchError as refusal:
        raise MismatchError(f"Cross-validation needs rows. {refusal}") from refusal
    except MissingValuesError as refusal:
        if missing is None:
            raise
        raise MismatchError(
            f"Cross-validation needs rows in memory if values are missing, and {missing!r} keeps "
            "incomplete ones. Collect the table first, or use DropRows()."
        ) from refusal
    n = len(rows)
    if n < folds:
        raise ArgumentError(f"{n} rows cannot be divided into {folds} folds.")
    order = np.random.default_rng(seed).permutation(n)
    results, sizes = [], []
    with warnings.catch_warnings():
        # What `learn` warns about in the whole table, it would repeat for every fold.
        warnings.simplefilter("ignore", DataWarning)
        warnings.simplefilter("ignore", ModelWarning)
        for left_out in np.array_split(order, folds):
            kept = np.setdiff1d(order, left_out)
            again = missing if holes else None
            train = Frame(_columns(schema, rows[kept]), schema=schema, missing=again)
            solution = learn(train, score=score, search=search, knowledge=knowledge, seed=seed)
            network = solution.fit(pseudo_count=pseudo_count)
            held_out = _columns(schema, rows[left_out])
            value = observed_log_likelihood if holes else log_likelihood
            results.append(value(network, held_out) / len(left_out))
            sizes.append(len(left_out))
    return CrossValidation(tuple(results), tuple(sizes))


def _as_learned(network: Network, data: object) -> object:
    """Return a table whose columns are what the network has: scores, levels and numbers."""
    if not network.maps:
        return data
    columns, _ = columns_of(data)
    if isinstance(columns, Mapping):
        own = {v: read_column(network.maps, v, c) for v, c in columns.items()}
        return {v: own[v] for v in network.dag.nodes if v in own}
    cut = {v: own for v, own in network.maps.items() if isinstance(own, ColumnMap)}
    return transformed(data, cut).table if cut else data


def _rows(data: object, schema: Schema) -> Floats:
    """Return rows with the levels of a schema, whichever the data have."""
    columns, _ = columns_of(data)
    if isinstance(columns, Mapping):
        for name in set(columns) & set(schema.of_kind(Kind.CONTINUOUS)):
            refuse_dates(name, np.asarray(columns[name]))
    source = as_source(data, schema=schema)
    if source.schema() != schema:
        source = Frame(_columns(source.schema(), source.rows()), schema=schema)
    return source.rows()


def _columns(schema: Schema, rows: Floats) -> dict[str, NDArray[Any]]:
    """Return rows as columns of levels and numbers."""
    columns: dict[str, NDArray[Any]] = {}
    for i, variable in enumerate(schema.variables):
        column = rows[:, i]
        if variable.levels:
            absent = np.isnan(column)
            column = label_array(variable.levels)[np.where(absent, 0, column).astype(np.intp)]
            if absent.any():
                column = column.astype(object)
                column[absent] = None
        columns[variable.name] = column
    return columns


# --- Probabilities of one variable, challenged in the rows that the network was fitted to ---------

_CHALLENGED, _COMPLETE = 1000, 50
"""Number of rows in which probabilities are challenged, and of those that are complete for the
Markov blanket of the target, above which others are left out."""
_WEIGHTS = np.linspace(0.0, 1.0, 41)
_SMALLEST = 1e-300


def for_target(
    network: Network,
    solution: Solution,
    table: Mapping[str, NDArray[Any]],
    target: str,
    pseudo_count: float,
) -> Network:
    """Return a network that predicts a discrete target at least as well as its shares do.

    By the rule of Bayes, the probabilities of levels rest on the density of their children. Where
    these are numbers that are far from normal within levels, such as a mixture of two units,
    probabilities are much too sharp. They are challenged by weights between them and the shares
    of the levels: if less weight describes the rows much better, the target gets a regression on
    its Markov blanket, or on its parents, or its shares.

    Parameters
    ----------
    network
        The network of the solution.
    solution
        The solution that has learned it from these rows.
    table
        The rows, as the network reads them.
    target
        The variable that is predicted.
    pseudo_count
        Weight of the prior, as for `isthmus.fit`.
    """
    own = network.dag
    if not isinstance(network, MixedNetwork) or all(
        network.conditionals[child].levels for child in own.children(target)
    ):
        return network
    parts = _challenging_rows(network, table, target)
    codes = encode_columns(
        {target: network.levels[target]},
        {target: read_column(network.maps, target, parts[target])},
        "error",
    )[target].astype(np.intp)
    n, size = len(codes), len(network.levels[target])
    whole = len(table[target])
    constant = np.log((np.bincount(codes, minlength=size) + 1.0 / size) / (n + 1.0))

    def logs(model: MixedNetwork) -> Floats:
        found: Floats = np.asarray(model.predict_probabilities(parts, target))
        return np.log(np.maximum(found, _SMALLEST))

    def total(logarithms: Floats) -> float:
        return float(logarithms[np.arange(n), codes].sum()) * whole / n

    try:
        stated = logs(network)
    except DataError:  # rows that are too improbable to say anything of
        return network
    tempered = [total(np.log(shares(w * stated + (1.0 - w) * constant))) for w in _WEIGHTS]
    present, price = total(stated), float(np.log(whole))
    if max(tempered) - present <= price:
        return network
    least = total(np.tile(constant, (n, 1))) - 0.5 * price * (size - 1)
    kept = [edge for edge in own.edges if target not in edge]
    for given in dict.fromkeys((own.markov_blanket(target), own.parents(target), ())):
        dag = DAG(own.nodes, [*kept, *((v, target) for v in given)])
        other = replace(solution, dag=dag, equivalent=False, parameters_kept=None)
        model = other.fit(pseudo_count=pseudo_count)
        assert isinstance(model, MixedNetwork)
        score = total(logs(model)) - 0.5 * price * model.conditionals[target].parameters
        if score > present and (score >= least or not given):
            return model
    return network


def _challenging_rows(
    network: MixedNetwork, table: Mapping[str, NDArray[Any]], target: str
) -> dict[str, NDArray[Any]]:
    """Return some rows, complete ones for the Markov blanket of the target if there are enough."""
    near = network.dag.markov_blanket(target)
    absent = [np.array([is_absent(cell) for cell in table[v].tolist()]) for v in (target, *near)]
    rows = np.flatnonzero(~np.any(absent, axis=0))
    if len(rows) < _COMPLETE:
        rows = np.flatnonzero(~absent[0])
    rows = np.random.default_rng(0).permutation(rows)[:_CHALLENGED]
    return {v: table[v][rows] for v in network.dag.nodes}
